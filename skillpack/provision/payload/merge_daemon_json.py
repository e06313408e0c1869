#!/usr/bin/env python3
"""Merge registry mirrors into Docker's daemon.json without losing a key of it. Standard library only.

Usage: merge_daemon_json.py FILE [--mirror URL ...] [--runtime NAME] [--check | --restore]
Before the file is changed its text is kept beside it, once, as FILE.before-agentjet (or noted as
absent). A file that is no JSON object is left alone (exit 1). --check changes nothing and exits 0 if
the file has the mirrors and the runtime already (the runtime itself is `nvidia-ctk runtime
configure`'s to write). --restore takes the mirrors and the runtime out again that were not there before; if
nothing else was changed since, the kept text comes back as it was.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ABSENT = "absent\n"


def read(path: Path) -> dict:
    """Return the configuration, empty for a file that is not there. Raises ValueError on anything else."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    config = json.loads(text) if text.strip() else {}
    if not isinstance(config, dict):
        raise ValueError("not a JSON object")
    if not isinstance(config.get("registry-mirrors", []), list) or not isinstance(config.get("runtimes", {}), dict):
        raise ValueError("registry-mirrors is no list, or runtimes no object")
    return config


def merged(config: dict, mirrors: list) -> dict:
    """Return the configuration with the mirrors behind those that it has."""
    if not mirrors:
        return config
    have = [str(mirror).rstrip("/") for mirror in config.get("registry-mirrors", [])]
    new = [mirror for mirror in mirrors if mirror.rstrip("/") not in have]
    return {**config, "registry-mirrors": [*config.get("registry-mirrors", []), *new]}


def without(config: dict, before: dict, mirrors: list, runtime: str) -> dict:
    """Return the configuration without the mirrors and the runtime, but with those that were there before."""
    had = [str(mirror).rstrip("/") for mirror in before.get("registry-mirrors", [])]
    gone = {mirror.rstrip("/") for mirror in mirrors} - set(had)
    parts = {
        "registry-mirrors": [m for m in config.get("registry-mirrors", []) if str(m).rstrip("/") not in gone],
        "runtimes": {
            name: value
            for name, value in config.get("runtimes", {}).items()
            if name != runtime or name in before.get("runtimes", {})
        },
    }
    left = {key: parts.get(key, value) for key, value in config.items()}
    return {key: value for key, value in left.items() if key not in parts or value or key in before}


def replace(path: Path, text: str) -> None:
    """Write a file through a neighbour, keeping its permissions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".agentjet-new")
    new.write_text(text, encoding="utf-8")
    new.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
    new.replace(path)


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--mirror", action="append", default=[])
    parser.add_argument("--runtime", default="")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--restore", action="store_true")
    options = parser.parse_args()
    path = options.file
    kept = path.with_name(path.name + ".before-agentjet")
    try:
        config = read(path)
        if options.restore:
            return restore(path, kept, config, options.mirror, options.runtime)
    except (ValueError, OSError) as error:
        sys.stderr.write(f"error: {path}: {error}\nexpected: a JSON object\ntry: mend it by hand; it was left alone\n")
        return 1
    wanted = merged(config, options.mirror)
    if options.check:
        return 0 if wanted == config and (not options.runtime or options.runtime in config.get("runtimes", {})) else 1
    if not kept.exists():
        replace(kept, path.read_text(encoding="utf-8") if path.exists() else ABSENT)
        print(f"kept: {kept}")
    if wanted != config:
        replace(path, json.dumps(wanted, indent=4) + "\n")
        print(f"merged: {path}")
    return 0


def restore(path: Path, kept: Path, config: dict, mirrors: list, runtime: str) -> int:
    """Take out what was merged. Raises ValueError if the kept text is no configuration."""
    if not kept.exists():
        print(f"nothing was kept for {path}")
        return 0
    text = kept.read_text(encoding="utf-8")
    before = json.loads(text) if text != ABSENT and text.strip() else {}
    wanted = without(config, before, mirrors, runtime)
    if wanted != before:
        replace(path, json.dumps(wanted, indent=4) + "\n")
        print(f"taken out of {path}; it was changed otherwise too, so that stays ({kept} holds the old text)")
        return 0
    if text != ABSENT:
        replace(path, text)
    elif path.exists():
        path.unlink()
    kept.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
