"""Import paths of earlier releases, and the modules that hold those names now.

Each older module is a file of one statement, ``older_names.stand_in(__name__)``.
"""

from __future__ import annotations

import sys
from importlib import import_module

OLDER_NAMES = {
    "ajet.default_config.ajet_default": "ajet.default_config.ajet_config_schema",
    "ajet.tuner_lib.experimental.as_swarm_client": "ajet.tuner_lib.experimental.swarm_client",
    "ajet.tuner_lib.experimental.as_oai_baseurl_apikey": "ajet.tuner_lib.as_oai_baseurl_apikey",
    "ajet.tuner_lib.weight_tuner.as_oai_baseurl_apikey": "ajet.tuner_lib.as_oai_baseurl_apikey",
    "ajet.tuner_lib.weight_tuner.experimental.as_swarm_client": "ajet.tuner_lib.experimental.swarm_client",
    "ajet.tuner_lib.weight_tuner.experimental.interchange_utils": "ajet.tuner_lib.experimental.interchange_utils",
    "ajet.utils.singleton": "ajet.utils.sington",
}
"""Older module: its present one."""


def stand_in(name: str) -> None:
    """Make importing the older module ``name`` give the present one, so that both are one object."""
    sys.modules[name] = import_module(OLDER_NAMES[name])
