#!/usr/bin/env python3
"""Check a model folder: every file that the index names is there and whole. Standard library only.

Usage: check_weights.py FOLDER
Prints one line, "ok: ..." or "no: ...", and exits 0 or 1. A plan lays this file beside itself, so
that it runs under whatever python3 a server has.
"""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

HEADER_LIMIT = 100_000_000  # the safetensors format's own limit for its JSON header
DOWNLOAD = (
    "download it again: `hf download OWNER/NAME --local-dir FOLDER` "
    "or `modelscope download --model OWNER/NAME --local_dir FOLDER`"
)


def examine(folder: str) -> dict:
    """Return {ok, summary, mend, shards, bytes} for a folder; ``summary`` names the first thing wrong."""
    path = Path(folder)
    if not path.is_dir():
        return _no(f"{folder} is not there", "download the model into it")
    if not (path / "config.json").is_file():
        nested = sorted(str(found.parent) for found in path.glob("snapshots/*/config.json"))
        if nested:
            return _no(f"{folder} is a hub cache, not a model", f"give the snapshot: {nested[0]}")
        return _no(f"{folder} holds no config.json", "give the folder that holds config.json and the weights")
    if not any(
        (path / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.json", "tokenizer_config.json")
    ):
        return _no(f"{folder} holds no tokenizer", DOWNLOAD)
    try:
        shards = _shards(path)
    except ValueError as error:
        return _no(str(error), DOWNLOAD)
    if not shards:
        return _no(f"{folder} holds no weights (*.safetensors)", DOWNLOAD)
    size = 0
    for name in shards:
        shard = path / name
        problem = _missing(shard) or _outside(path, shard) or (_broken(shard) if name.endswith(".safetensors") else "")
        if problem:
            mend = "copy it with its links resolved: cp -rL" if "link" in problem else DOWNLOAD
            return _no(f"{name}: {problem}", mend)
        size += shard.stat().st_size
    return {
        "ok": True,
        "summary": f"{len(shards)} shard{'' if len(shards) == 1 else 's'}, {size / 1024**3:.1f} GiB, complete",
        "mend": "",
        "shards": len(shards),
        "bytes": size,
    }


def _no(summary: str, mend: str) -> dict:
    return {"ok": False, "summary": summary, "mend": mend, "shards": 0, "bytes": 0}


def _shards(path: Path) -> list:
    for index in ("model.safetensors.index.json", "pytorch_model.bin.index.json"):
        if (path / index).is_file():
            try:
                names = json.loads((path / index).read_text(encoding="utf-8"))["weight_map"].values()
                shards = sorted({str(name) for name in names})
            except (ValueError, KeyError, TypeError, AttributeError):
                raise ValueError(f"{index} cannot be read") from None
            if not shards or any(name != Path(name).name for name in shards):
                raise ValueError(f"{index} names no shards, or files outside the folder")
            return shards
    single = [name for name in ("model.safetensors", "pytorch_model.bin") if (path / name).exists()]
    return single[:1]


def _missing(shard: Path) -> str:
    if shard.is_symlink() and not shard.exists():
        return "a broken link"
    return "" if shard.is_file() else "missing"


def _outside(folder: Path, shard: Path) -> str:
    if shard.is_symlink() and folder.resolve() not in shard.resolve().parents:
        return "a link to a file outside the folder, which a container that mounts the folder cannot follow"
    return ""


def _broken(shard: Path) -> str:
    size = shard.stat().st_size
    with shard.open("rb") as stream:
        head = stream.read(8)
        if head.startswith(b"version "):
            return "a Git LFS pointer, not the weights"
        if len(head) < 8:
            return "empty or cut off"
        length = struct.unpack("<Q", head)[0]
        if length > min(HEADER_LIMIT, size - 8):
            return "no safetensors file, or cut off"
        try:
            header = json.loads(stream.read(length).decode("utf-8"))
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return "its header cannot be read"
    expected = 8 + length + max(ends, default=0)
    return "" if size == expected else f"has {size} bytes, its header promises {expected}"


def main() -> int:
    """Examine the folder named on the command line and say what was found."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: check_weights.py FOLDER\n")
        return 2
    found = examine(sys.argv[1])
    print(("ok: " if found["ok"] else "no: ") + found["summary"])
    if found["mend"]:
        print("try: " + found["mend"])
    return 0 if found["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
