from ajet.copilot.job import AgentJetJob

job = AgentJetJob(experiment_name="example", base_yaml_config="configs/nowhere.yaml")
