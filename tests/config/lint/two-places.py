from ajet.copilot.job import AgentJetJob

job = AgentJetJob(experiment_name="example", base_yaml_config="base/hand_edited.yaml", batch_size=64)
