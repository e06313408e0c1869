"""daemon.json is merged, never replaced."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from skillpack.provision.payload import merge_daemon_json

MIRROR = "https://mirror.example"


def merge(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", merge_daemon_json.__file__, str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "daemon.json"
    path.write_text('{"data-root": "/data", "registry-mirrors": ["https://kept.example/"]}')
    path.chmod(0o600)
    return path


def test_other_keys_and_mirrors_stay(config: Path) -> None:
    assert merge(config, "--mirror", MIRROR).returncode == 0
    assert json.loads(config.read_text()) == {
        "data-root": "/data",
        "registry-mirrors": ["https://kept.example/", MIRROR],
    }
    assert config.stat().st_mode & 0o777 == 0o600


def test_twice_is_once_and_a_slash_makes_no_difference(config: Path) -> None:
    merge(config, "--mirror", MIRROR)
    text = config.read_text()
    assert merge(config, "--mirror", MIRROR + "/", "--mirror", "https://kept.example").returncode == 0
    assert config.read_text() == text


def test_the_first_text_is_kept_and_comes_back(config: Path) -> None:
    text = config.read_text()
    merge(config, "--mirror", MIRROR)
    merge(config, "--mirror", "https://second.example", "--mirror", "https://kept.example")
    assert merge(config, "--mirror", "https://second.example", "--restore").returncode == 0
    assert MIRROR in config.read_text()
    assert merge(config, "--mirror", MIRROR, "--mirror", "https://kept.example", "--restore").returncode == 0
    assert config.read_text() == text
    assert [path.name for path in config.parent.iterdir()] == ["daemon.json"]


def test_a_file_that_was_not_there_is_taken_away_again(tmp_path: Path) -> None:
    path = tmp_path / "docker" / "daemon.json"
    merge(path, "--mirror", MIRROR)
    assert json.loads(path.read_text()) == {"registry-mirrors": [MIRROR]}
    path.write_text(json.dumps({**json.loads(path.read_text()), "runtimes": {"nvidia": {"path": "x"}}}))
    merge(path, "--mirror", MIRROR, "--runtime", "nvidia", "--restore")
    assert not path.exists()


def test_what_others_changed_since_stays(config: Path) -> None:
    merge(config, "--mirror", MIRROR)
    now = json.loads(config.read_text())
    theirs = {"log-driver": "local", "runtimes": {"crun": {"path": "crun"}}}
    config.write_text(json.dumps({**now, **theirs}))
    done = merge(config, "--mirror", MIRROR, "--runtime", "nvidia", "--restore")
    assert done.returncode == 0
    assert "changed otherwise" in done.stdout
    left = json.loads(config.read_text())
    assert left == {"data-root": "/data", "registry-mirrors": ["https://kept.example/"], **theirs}
    config.write_text("{")
    assert merge(config, "--restore").returncode == 1
    assert config.read_text() == "{"


@pytest.mark.parametrize("text", ['{"a": 1,}', "[]", '{"registry-mirrors": "https://x"}', '{"runtimes": []}', "\x00"])
def test_what_is_no_configuration_is_left_alone(text: str, config: Path) -> None:
    config.write_text(text)
    done = merge(config, "--mirror", MIRROR)
    assert done.returncode == 1
    assert "left alone" in done.stderr
    assert "Traceback" not in done.stderr
    assert config.read_text() == text


def test_check_changes_nothing(config: Path) -> None:
    text = config.read_text()
    assert merge(config, "--mirror", MIRROR, "--check").returncode == 1
    assert merge(config, "--runtime", "nvidia", "--check").returncode == 1
    assert merge(config, "--mirror", "https://kept.example", "--check").returncode == 0
    assert config.read_text() == text
