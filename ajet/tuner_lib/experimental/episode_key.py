"""The api_key of an episode: ``sk-ajet-`` + base64 of a small JSON object.

Released servers issue one key per episode, good for every later claimer. Ours differs with each
claim (the claim number stands in ``episode_address``), so a client that lost its episode can no
longer write into another client's trajectory.
"""

from __future__ import annotations

import base64
import json
from typing import Any

PREFIX = "sk-ajet-"
FIELDS = ("agent_name", "target_tag", "episode_uuid", "episode_address")
DEFAULT_TARGET = {"agent_name": "default_agent_name", "target_tag": "default_target_tag"}


def issue_key(episode_uuid: str, claim: int) -> str:
    """Return the key for the ``claim``-th claim of an episode."""
    return _encode({**DEFAULT_TARGET, "episode_uuid": episode_uuid, "episode_address": f"reference://claim/{claim}"})


def with_target(key: str, agent_name: str, target_tag: str, *, trained: bool = True) -> str:
    """Return a key for the same claim whose calls name their agent; unless ``trained`` they are not learned from."""
    fields: dict[str, str] = {**read_key(key), "agent_name": agent_name, "target_tag": target_tag}
    return _encode(fields if trained else {**fields, "trained": "no"})


def base_key(key: str) -> tuple[str, bool]:
    """Return the key that the claim was issued, and whether calls with ``key`` are trained on. Raises ValueError."""
    fields = read_key(key)
    return _encode({**fields, **DEFAULT_TARGET}), _decode(key).get("trained") != "no"


def read_key(key: str) -> dict[str, str]:
    """Return the four fields of a key; raise ValueError that says what is wrong with it."""
    fields = _decode(key)
    missing = [name for name in FIELDS if not isinstance(fields, dict) or not isinstance(fields.get(name), str)]
    if missing:
        raise ValueError(f"the api key lacks {', '.join(missing)}")
    return {name: fields[name] for name in FIELDS}


def _encode(fields: dict[str, str]) -> str:
    return PREFIX + base64.b64encode(json.dumps(fields).encode()).decode()


def _decode(key: str) -> Any:
    if not key.startswith(PREFIX):
        raise ValueError(f"the api key does not begin with {PREFIX!r}; use the one that begin_episode returned")
    try:
        return json.loads(base64.b64decode(key[len(PREFIX) :], validate=True))
    except ValueError as error:
        raise ValueError(f"the api key is not base64 of JSON behind {PREFIX!r} ({error})") from None
