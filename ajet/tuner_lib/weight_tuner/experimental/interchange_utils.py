"""Older name of ajet.tuner_lib.experimental.interchange_utils (see ajet.older_names)."""

from ajet.older_names import stand_in

stand_in(__name__)
