from ajet.copilot.job import AgentJetJob

NUM_REPEAT = 8

job = AgentJetJob(experiment_name="example", num_repeat=NUM_REPEAT, batch_size=32, max_env_worker=NUM_REPEAT * 16)
job.config.ajet.rollout.temperature = 1.0
