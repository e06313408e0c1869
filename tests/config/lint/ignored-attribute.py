from ajet.copilot.job import AgentJetJob

job = AgentJetJob(experiment_name="example")
job.batch_size = 64
