"""Judges: they give a reward to an episode whose workflow gave none."""
