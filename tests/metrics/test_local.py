"""Run files as the real SDKs write them, damaged ones, and logs: all without a network."""

import math
import shutil
import socket
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from skillpack.metrics.local import read_local
from skillpack.script import BadInput
from tests.metrics.commands import fetch, fetch_json
from tests.metrics.sdks import OLDEST

WRITER = """
import sys, swanlab
swanlab.init(project="agent", experiment_name="exp, 名字", mode=sys.argv[1], logdir="swanlog",
             config={"lr": 1e-4, "judge": {"api_key": "sk-123"}})
for step in range(60):
    values = {"critic/rewards/mean": step * 0.5}
    if step % 5 == 0:
        values["response_length/mean"] = 100.0 + step
    if step in (3, 4):
        values["actor/entropy"] = float("nan") if step == 3 else float("inf")
    swanlab.log(values, step=step)
swanlab.finish()
"""


def write_run(folder: Path, python: Path, mode: str = "offline") -> Path:
    """Let an SDK write a run; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([python, "-c", WRITER, mode], cwd=folder, check=True, capture_output=True, timeout=100)
    return next((folder / "swanlog").glob("run-*"))


@pytest.fixture(scope="module")
def new_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("new"), Path(sys.executable), "local")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


def check(folder: Path) -> None:
    (run,) = read_local(folder)
    assert run.ok
    assert run.label == "exp, 名字"
    assert run.meta["state"] == "FINISHED"
    assert run.meta["config"]["lr"] == 1e-4
    assert run.meta["config"]["judge"]["api_key"] == "[hidden]"
    assert len(run.frame) == 60
    assert run.frame["critic/rewards/mean"][59] == 29.5
    assert run.frame["response_length/mean"].count() == 12
    assert math.isnan(run.frame["actor/entropy"][3])
    assert math.isinf(run.frame["actor/entropy"][4])
    assert (run.status["actor/entropy"].points, run.status["actor/entropy"].nan) == (2, 1)
    assert run.long["timestamp"].notna().all()


def test_the_installed_sdk_s_file(new_run: Path, no_network: None) -> None:
    check(new_run)
    check(next(new_run.glob("*.swanlab")))
    check(new_run.parent)
    check(new_run.parent.parent)


def test_the_oldest_sdk_s_file(python_with_sdk: Callable[[str], Path], tmp_path: Path) -> None:
    folder = write_run(tmp_path, python_with_sdk(OLDEST))
    assert (folder / "backup.swanlab").exists()
    check(folder)
    assert read_local(folder)[0].meta["path"] == "run file, format 1"


def test_a_file_that_is_cut_or_damaged_gives_what_is_whole(new_run: Path, tmp_path: Path) -> None:
    content = next(new_run.glob("*.swanlab")).read_bytes()
    cut = tmp_path / "cut.swanlab"
    cut.write_bytes(content[: len(content) // 2])
    (run,) = read_local(cut)
    assert 0 < len(run.frame) < 60
    assert "is unfinished" in run.meta["ends_early"]
    assert run.meta["state"] == "UNFINISHED"
    damaged = tmp_path / "damaged.swanlab"
    damaged.write_bytes(content[:4000] + b"\x00" * 50 + content[4050:])
    (run,) = read_local(damaged)
    assert "is damaged" in run.meta["ends_early"]
    code, out, _ = fetch(["local", str(damaged)])
    assert code == 0
    assert "is damaged: what follows is lost" in out


def test_the_board_s_files_alone(new_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run-20260301_080000-abc"
    shutil.copytree(new_run, folder)
    next(folder.glob("*.swanlab")).unlink()
    (run,) = read_local(folder)
    assert len(run.frame) == 60
    assert all(key.startswith("logs/") for key in run.frame)


def test_several_runs_of_a_folder(new_run: Path, tmp_path: Path) -> None:
    for name in ("run-1-a", "run-2-b"):
        shutil.copytree(new_run, tmp_path / name)
    assert len(read_local(tmp_path)) == 2


def test_an_empty_run_folder_does_not_hide_the_others(new_run: Path, tmp_path: Path) -> None:
    shutil.copytree(new_run, tmp_path / "swanlog" / "run-1-a")
    (tmp_path / "swanlog" / "run-2-b").mkdir()
    code, out, _ = fetch(["local", str(tmp_path), "--keys", "reward"])
    assert code == 1
    assert "60 of 60 points" in out
    assert "no run in" in out


def test_a_whole_record_that_cannot_be_decoded(tmp_path: Path) -> None:
    for version, content in ((1, b'{"model_type": "Scalar", "data": 5}\n'), (2, b"\xff\xff\xff\xff")):
        path = tmp_path / f"odd{version}.swanlab"
        record = struct.pack("<IHB", zlib.crc32(content, zlib.crc32(b"\x01")), len(content), 1) + content
        path.write_bytes(struct.pack("<4sHB", b":SWL", 0xE1D6, version) + record)
        (run,) = read_local(path)
        assert run.meta["ends_early"] == "a record cannot be decoded: what follows is lost"
        assert not run.ok


def test_a_console_log(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text("hello\nstep:1 - critic/rewards/mean:0.5\nstep:2 - critic/rewards/mean:0.7\n")
    for path in (tmp_path, tmp_path / "console.log"):
        code, document, _ = fetch_json(["local", str(path), "--keys", "reward"])
        assert code == 0
        assert document["data"][0]["series"] == {"critic/rewards/mean": [0.5, 0.7]}
        assert document["runs"][0]["path"] == "console log"


def test_the_other_commands_take_a_path_too(new_run: Path) -> None:
    code, out, _ = fetch(["summary", str(new_run), "--keys", "reward"])
    assert code == 0
    assert "29.5" in out
    code, out, _ = fetch(["sparkline", str(new_run), "--keys", "reward", "--width", "10"])
    assert code == 0
    assert "▁" in out


def test_what_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.log").write_text("no metrics here\n")
    (tmp_path / "other.swanlab").write_bytes(b"something else")
    for name, why in {
        "absent": "does not exist",
        "empty": "no run in",
        "text.log": "no metric line",
        "other.swanlab": "not a SwanLab run file",
    }.items():
        with pytest.raises(BadInput, match=why):
            read_local(tmp_path / name)
    assert fetch(["local", str(tmp_path / "absent")])[0] == 2


def test_a_key_that_is_not_in_the_file(new_run: Path) -> None:
    code, out, _ = fetch(["local", str(new_run), "--keys", "reward,critic/reward/mean"])
    assert code == 1
    assert "did you mean critic/rewards/mean?" in out
