from ajet.copilot.job import AgentJetJob

job = AgentJetJob(experiment_name="example", swarm_mode=False)
