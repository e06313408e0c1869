from ajet.copilot.job import AgentJetJob

job = AgentJetJob(experiment_name="example", backbone="trinity")
