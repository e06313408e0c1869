"""Older name of ajet.tuner_lib.experimental.swarm_client (see ajet.older_names)."""

from ajet.older_names import stand_in

stand_in(__name__)
