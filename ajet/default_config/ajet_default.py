"""Older name of ajet.default_config.ajet_config_schema (see ajet.older_names)."""

from ajet.older_names import stand_in

stand_in(__name__)
