"""Capacity: how many episodes can run at once, what binds, and what a change would bring."""
