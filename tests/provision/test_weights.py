"""Folders of weights: whole ones, and every way in which a download breaks."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from skillpack.provision.payload import check_weights
from skillpack.provision.payload.check_weights import examine
from tests.provision.machines import make_model

FIRST = "model-00001-of-00002.safetensors"


def cut(folder: Path) -> None:
    shard = folder / FIRST
    shard.write_bytes(shard.read_bytes()[:-1])


def pointer(folder: Path) -> None:
    (folder / FIRST).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")


def linked_away(folder: Path) -> None:
    blobs = folder.parent / "blobs"
    blobs.mkdir()
    (folder / FIRST).rename(blobs / "abc")
    (folder / FIRST).symlink_to(blobs / "abc")


def linked_to_nothing(folder: Path) -> None:
    (folder / FIRST).unlink()
    (folder / FIRST).symlink_to("nowhere")


def hostile_index(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": "../../etc/passwd"}}))


def huge_header(folder: Path) -> None:
    (folder / FIRST).write_bytes(struct.pack("<Q", 2**63) + b"{}")


def no_json_header(folder: Path) -> None:
    (folder / FIRST).write_bytes(struct.pack("<Q", 4) + b"\xff\xff\xff\xff")


BROKEN: dict[str, Callable[[Path], object]] = {
    "missing": lambda folder: (folder / FIRST).unlink(),
    "has 86 bytes": cut,
    "Git LFS pointer": pointer,
    "outside the folder": linked_away,
    "broken link": linked_to_nothing,
    "files outside": hostile_index,
    "cut off": huge_header,
    "header cannot be read": no_json_header,
    "empty": lambda folder: (folder / FIRST).write_bytes(b""),
    "cannot be read": lambda folder: (folder / "model.safetensors.index.json").write_text("[]"),
    "config.json": lambda folder: (folder / "config.json").unlink(),
    "tokenizer": lambda folder: (folder / "tokenizer.json").unlink(),
}


def test_complete(tmp_path: Path) -> None:
    make_model(tmp_path / "m", shards=3)
    assert examine(str(tmp_path / "m")) == {
        "ok": True, "summary": "3 shards, 0.0 GiB, complete", "mend": "", "shards": 3, "bytes": 3 * 87,
    }  # fmt: skip


def test_links_inside_the_folder_are_fine(tmp_path: Path) -> None:
    make_model(tmp_path / "m")
    (tmp_path / "m" / FIRST).rename(tmp_path / "m" / "real")
    (tmp_path / "m" / FIRST).symlink_to("real")
    assert examine(str(tmp_path / "m"))["ok"]


@pytest.mark.parametrize(("said", "damage"), BROKEN.items(), ids=list(BROKEN))
def test_broken(said: str, damage: Callable[[Path], object], tmp_path: Path) -> None:
    make_model(tmp_path / "m")
    damage(tmp_path / "m")
    found = examine(str(tmp_path / "m"))
    assert not found["ok"]
    assert said in found["summary"]
    assert found["mend"]


def test_a_hub_cache_names_its_snapshot(tmp_path: Path) -> None:
    make_model(tmp_path / "models--Qwen" / "snapshots" / "abc")
    found = examine(str(tmp_path / "models--Qwen"))
    assert "hub cache" in found["summary"]
    assert found["mend"].endswith("snapshots/abc")


def test_runs_by_itself_under_a_bare_python(tmp_path: Path) -> None:
    make_model(tmp_path / "m")
    command = [sys.executable, "-I", "-S", check_weights.__file__]
    assert subprocess.run([*command, str(tmp_path / "m")], check=False).returncode == 0
    assert subprocess.run([*command, str(tmp_path)], capture_output=True, check=False).returncode == 1
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2
