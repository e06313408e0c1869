"""Where this pack itself came from."""

from __future__ import annotations

import json
import re
import subprocess
from importlib import metadata
from pathlib import Path

from skillpack.install.itself import skills
from skillpack.install.record import OWN
from skillpack.pack import skills_dir
from skillpack.script import BadInput


def pack_origin() -> str:
    """Return where this pack came from: a checkout's remote or folder, or what it was installed from.

    Raises BadInput if that is not known.
    """
    pack = skills_dir().parent
    if (pack / "pyproject.toml").is_file():
        asked = _git(pack, "remote", "get-url", "origin") if _git(pack, "rev-parse", "--show-prefix") == "" else None
        return _without_password(asked) if asked else str(pack)
    try:
        # PEP 610: https://packaging.python.org/en/latest/specifications/direct-url/
        url = json.loads(metadata.distribution(OWN).read_text("direct_url.json") or "{}").get("url")
    except metadata.PackageNotFoundError:
        url = None
    if url is None:
        raise BadInput(
            "where this pack is published is not known", expected="--source", hint=skills("prompt", "--source", "URL")
        )
    return _without_password(str(url)).removeprefix("file://")


def origin_to_record() -> str:
    """Return ``pack_origin``, or nothing if that is not known."""
    try:
        return pack_origin()
    except BadInput:
        return ""


def _without_password(url: str) -> str:
    """Return an address without the name and password or the token that git was given in it."""
    return re.sub(r"^(https?://)[^/@]*@", r"\1", url)


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git answers about a folder; None if it fails or there is no git."""
    try:
        asked = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return asked.stdout.strip()
