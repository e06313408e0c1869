"""Older name of ajet.utils.sington (see ajet.older_names)."""

from ajet.older_names import stand_in

stand_in(__name__)
