from ajet.copilot.job import AgentJetJob

job = AgentJetJob(experiment_name="example", lora_rank=16, lr=1e-4)
