from ajet.copilot.job import AgentJetJob

job = AgentJetJob(experiment_name="example", num_repeat=8)
job.config.ajet.rollout.num_repeat = 4
