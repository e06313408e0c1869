"""Runs: launch an experiment, own it to its end, and tell the truth about it from its directory."""
