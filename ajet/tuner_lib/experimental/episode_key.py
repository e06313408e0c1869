"""The api_key of an episode: ``sk-ajet-`` + base64 of a small JSON object.

Released servers issue one key per episode, good for every later claimer. Ours differs with each
claim (the claim number stands in ``episode_address``), so a client that lost its episode can no
longer write into another client's trajectory.
"""

from __future__ import annotations

import base64
import json

PREFIX = "sk-ajet-"
FIELDS = ("agent_name", "target_tag", "episode_uuid", "episode_address")


def issue_key(episode_uuid: str, claim: int) -> str:
    """Return the key for the ``claim``-th claim of an episode."""
    fields = {
        "agent_name": "default_agent_name",
        "target_tag": "default_target_tag",
        "episode_uuid": episode_uuid,
        "episode_address": f"reference://claim/{claim}",
    }
    return PREFIX + base64.b64encode(json.dumps(fields).encode()).decode()


def read_key(key: str) -> dict[str, str]:
    """Return the four fields of a key; raise ValueError that says what is wrong with it."""
    if not key.startswith(PREFIX):
        raise ValueError(f"the api key does not begin with {PREFIX!r}; use the one that begin_episode returned")
    try:
        fields = json.loads(base64.b64decode(key[len(PREFIX) :], validate=True))
    except ValueError as error:
        raise ValueError(f"the api key is not base64 of JSON behind {PREFIX!r} ({error})") from None
    missing = [name for name in FIELDS if not isinstance(fields, dict) or not isinstance(fields.get(name), str)]
    if missing:
        raise ValueError(f"the api key lacks {', '.join(missing)}")
    return {name: fields[name] for name in FIELDS}
