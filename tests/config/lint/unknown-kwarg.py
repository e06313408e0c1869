from ajet.copilot.job import AgentJetJob

job = AgentJetJob(experiment_name="example", max_env_workers=64)
