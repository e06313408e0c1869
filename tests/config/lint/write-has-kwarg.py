from ajet.copilot.job import AgentJetJob

job = AgentJetJob(experiment_name="example")
job.config.ajet.rollout.num_repeat = 8
