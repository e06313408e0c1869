"""Modules that earlier releases kept here (see ajet.older_names)."""
