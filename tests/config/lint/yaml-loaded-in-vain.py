from ajet.copilot.job import AgentJetJob

job = AgentJetJob(experiment_name="example")
job.build_job_from_yaml("mine.yaml")
