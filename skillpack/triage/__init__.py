"""Triage: why a training run stopped, and whether one that goes on is healthy."""
