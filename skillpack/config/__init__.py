"""Reading, explaining, comparing and linting configurations: YAML files and the AgentJetJob calls of client scripts."""
