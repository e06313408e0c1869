from ajet.copilot.job import AgentJetJob

job = AgentJetJob(experiment_name="example", max_prompt_length=2000, max_model_len=18000)
