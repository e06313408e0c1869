"""The API key of one host, and texts with no secret in them.

The SDK takes a key from the environment or from the last login and sends it to whatever host it
is told. Our host comes out of a pasted address, so a key is used only where it is known to belong.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ajet.utils.loopback import is_loopback_name
from skillpack.metrics.urls import CLOUD_API, origins
from skillpack.script import Unavailable

SIGNED = re.compile(r"\b((?:https?://|/)[^\s\"'<>?]+)\?[^\s\"'<>]+")
COOKIE = re.compile(r"(\bsid=)[^\s;,\"']+")
SECRET_NAME = re.compile(
    r"(^|[_.-])(api_?key|access_?key|secret(_?key)?|password|passwd|token|authorization|cookie|credentials?)$",
    re.IGNORECASE,
)
HIDDEN = "[hidden]"


@dataclass(frozen=True)
class ApiKey:
    """A key for one host; ``source`` says where it was found. Its text form hides the key."""

    value: str
    source: str

    def __repr__(self) -> str:
        return f"ApiKey({HIDDEN}, source={self.source!r})"


def find_key(api: str, environ: Mapping[str, str] | None = None) -> ApiKey:
    """Return the key for the API origin ``api``, from the environment or a netrc file.

    ``SWANLAB_API_KEY`` belongs to the host that ``SWANLAB_API_HOST`` (or ``SWANLAB_WEB_HOST``)
    names, without one to swanlab.cn; loopback accepts it too, for no key leaves the machine there.
    A netrc entry belongs to its machine, whose scheme and port count where it has them.
    Raises Unavailable, which says what would make a key known.
    """
    env = os.environ if environ is None else environ
    value = _unquoted(env.get("SWANLAB_API_KEY"))
    named = _unquoted(env.get("SWANLAB_API_HOST")) or _unquoted(env.get("SWANLAB_WEB_HOST"))
    if value and _env_key_belongs(api, named):
        return ApiKey(value, "SWANLAB_API_KEY")
    unreadable = []
    for path in netrc_files(env):
        try:
            entry = _netrc_entry(path, api)
        except NetrcParseError as error:  # its text may hold a piece of the key
            unreadable.append(f"{path} (line {error.lineno})")
            continue
        except OSError as error:
            unreadable.append(f"{path} ({error.strerror})")
            continue
        if entry:
            return ApiKey(entry, str(path))
    problems = [f"cannot read {', '.join(unreadable)}"] if unreadable else []
    if value:
        owner = named or "https://swanlab.cn"
        problems.append(f"SWANLAB_API_KEY is set, but for {owner}; to say that it is for this host: "
                        f"export SWANLAB_API_HOST={api}")  # fmt: skip
    raise Unavailable(
        f"no API key for {api}" + "".join(f"; {problem}" for problem in problems),
        expected="SWANLAB_API_KEY in the environment, or an entry for this host in ~/.swanlab/.netrc",
        hint=f"swanlab login --host {api}" if api != CLOUD_API else "swanlab login",
    )


def netrc_files(env: Mapping[str, str]) -> Iterator[Path]:
    """Yield the netrc files that exist, in the SDK's order, then the user's own."""
    home = Path(env.get("HOME") or Path.home())
    folders = [Path(env[name]) for name in ("SWANLAB_ROOT", "SWANLAB_SAVE_DIR") if env.get(name)]
    candidates = [folder / ".netrc" for folder in [Path(".swanlab"), *folders, home / ".swanlab"]]
    candidates += [Path(env["NETRC"])] if env.get("NETRC") else [home / ".netrc"]
    yield from dict.fromkeys(path for path in candidates if path.is_file())


def without_secrets(config: Any) -> Any:
    """Return a run's configuration with the values hidden whose names say that they are secrets."""
    if isinstance(config, dict):
        return {
            name: HIDDEN
            if isinstance(value, str) and value and SECRET_NAME.search(str(name))
            else without_secrets(value)
            for name, value in config.items()
        }
    return [without_secrets(item) for item in config] if isinstance(config, list) else config


def redact(text: object, *secrets: str) -> str:
    """Return ``text`` without the given secrets, session cookies and the signatures of presigned links."""
    clean = str(text)
    for secret in secrets:
        if secret:
            clean = clean.replace(secret, HIDDEN)
    return COOKIE.sub(rf"\1{HIDDEN}", SIGNED.sub(r"\1", clean))


def _env_key_belongs(api: str, named: str) -> bool:
    if not named:
        return api == CLOUD_API or is_loopback_name(urlsplit(api).hostname or "")
    return _same_host(named, api)


def _same_host(named: str, api: str) -> bool:
    try:
        return origins(named.rstrip("/").removesuffix("/api"))[1] == api
    except ValueError:
        return False


def _netrc_entry(path: Path, api: str) -> str | None:
    for machine, (_, _, password) in netrc(str(path)).hosts.items():
        if machine != "default" and password and _machine_matches(machine, api):
            return password
    return None


def _machine_matches(machine: str, api: str) -> bool:
    """A machine with scheme or port must match them; a bare name stands for https, or any port of loopback."""
    if _same_host(machine, api):
        return True
    parts = urlsplit(api)
    return "://" not in machine and machine == parts.hostname and is_loopback_name(machine)


def _unquoted(value: str | None) -> str:
    text = (value or "").strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
