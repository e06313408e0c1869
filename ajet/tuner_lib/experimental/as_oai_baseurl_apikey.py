"""Older name of ajet.tuner_lib.as_oai_baseurl_apikey (see ajet.older_names)."""

from ajet.older_names import stand_in

stand_in(__name__)
