"""An installed script finds the pack's own interpreter, whatever ``python3`` is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ajet
import skillpack
from skillpack.install import sources
from skillpack.install.card import read_card
from skillpack.pack import PACKAGE, skills_dir
from tests.install.kit import Run, make_skill

TEMPLATE = PACKAGE / "templates" / "_pack.py"

SCRIPT = '''
#!/usr/bin/env python3
"""Tell who runs it."""
import sys
sys.dont_write_bytecode = True
import _pack
_pack.enter(__file__)
import json
import ajet, skillpack
print(json.dumps({"ajet": ajet.__file__, "pack": skillpack.__file__, "args": sys.argv[1:]}))
'''


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of somebody's environment, which has no pack in it."""
    folder = tmp_path_factory.mktemp("somebody") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python3"


@pytest.fixture
def of_unknown_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install as a pack that does not know where it came from: this one would be found again in its checkout."""
    monkeypatch.setattr("skillpack.install.actions.origin_to_record", lambda: "")


@pytest.fixture
def asking(tmp_path: Path) -> Path:
    """Return a skill whose script begins as those of this pack do."""
    skill = make_skill(tmp_path / "elsewhere")
    shutil.copy(TEMPLATE, skill / "scripts" / "_pack.py")
    (skill / "scripts" / "count.py").write_text(SCRIPT.lstrip())
    return skill


def start(python: Path | str, script: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script from another folder, with nothing in the environment but what is given."""
    return subprocess.run(
        [python, script, *arguments],
        capture_output=True,
        text=True,
        cwd="/",
        env={"PATH": os.defpath, "HOME": os.environ["HOME"], **env},
        timeout=60,
        check=False,
    )


def answer(run: subprocess.CompletedProcess[str]) -> dict:
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


OURS = {"ajet": ajet.__file__, "pack": skillpack.__file__}


@pytest.mark.parametrize("mode", ["--copy", "--link"])
def test_under_somebodys_python(run: Run, home: Path, asking: Path, bare_python: Path, mode: str) -> None:
    run("install", asking, mode)
    for client in (".claude", ".agents"):
        script = home / client / "skills" / asking.name / "scripts" / "count.py"
        told = answer(start(bare_python, script, "--json", "two words", ""))
        assert told == {**OURS, "args": ["--json", "two words", ""]}


def test_a_linked_script_that_is_called_by_its_real_path(run: Run, home: Path, asking: Path, bare_python: Path) -> None:
    run("install", asking, "--link", "--agent", "codex")
    assert answer(start(bare_python, asking / "scripts" / "count.py"))["pack"] == skillpack.__file__


def test_a_copy_that_came_by_another_way(run: Run, home: Path, asking: Path, bare_python: Path) -> None:
    plugin = shutil.copytree(asking, home / ".claude" / "plugins" / "cache" / "skills" / asking.name)
    script = plugin / "scripts" / "count.py"
    assert start(bare_python, script).returncode == 3
    run("install", asking, "--agent", "codex")
    assert answer(start(bare_python, script))["pack"] == skillpack.__file__


@pytest.mark.parametrize("interpreter", ["bare", "own"])
def test_with_the_real_agentjet_in_the_way(
    run: Run, home: Path, asking: Path, bare_python: Path, tmp_path: Path, interpreter: str
) -> None:
    real = tmp_path / "training" / "ajet"
    real.mkdir(parents=True)
    (real / "__init__.py").write_text("raise SystemExit('the real AgentJet was imported')")
    run("install", asking)
    script = home / ".claude" / "skills" / asking.name / "scripts" / "count.py"
    python = bare_python if interpreter == "bare" else Path(sys.executable)
    assert answer(start(python, script, PYTHONPATH=str(real.parent)))["ajet"] == ajet.__file__


def test_with_a_variable_that_names_the_interpreter(home: Path, asking: Path, bare_python: Path) -> None:
    told = answer(start(bare_python, asking / "scripts" / "count.py", AGENTJET_SKILLS_PYTHON=sys.executable))
    assert told["pack"] == skillpack.__file__


@pytest.mark.usefixtures("of_unknown_origin")
@pytest.mark.parametrize("record", ["gone", "without the pack", "unreadable", "of the wrong shape"])
def test_without_the_interpreter_it_names_the_command_that_mends_it(
    run: Run, home: Path, asking: Path, bare_python: Path, record: str
) -> None:
    run("install", asking, "--agent", "codex")
    place = home / ".agents" / "skills" / asking.name
    path = place / ".agentjet-skills.json"
    known = json.loads(path.read_text())
    known["python"] = {"gone": "/nowhere/python", "without the pack": str(bare_python)}.get(record, known["python"])
    path.write_text({"unreadable": "{", "of the wrong shape": "[3]"}.get(record, json.dumps(known)))
    ended = start(bare_python, place / "scripts" / "count.py", "--json")
    assert (ended.returncode, ended.stdout) == (3, "")
    assert (
        ended.stderr.splitlines()[0]
        == "error: this script needs the agentjet-skills package, and no interpreter has it"
    )
    (mend,) = [line for line in ended.stderr.splitlines() if line.startswith("try: ")]
    assert mend.startswith("try: python3 ")
    assert run("install", asking, "--agent", "codex", "--force").code == 0
    assert start(bare_python, place / "scripts" / "count.py").returncode == 0


@pytest.mark.usefixtures("of_unknown_origin")
def test_in_a_checkout_it_names_the_setup_of_that_checkout(
    run: Run, home: Path, asking: Path, bare_python: Path, tmp_path: Path
) -> None:
    (tmp_path / "check out").mkdir()
    (tmp_path / "check out" / "bootstrap.py").write_text("")
    run("install", asking, "--agent", "codex")
    path = home / ".agents" / "skills" / asking.name / ".agentjet-skills.json"
    gone = str(tmp_path / "check out" / ".venv" / "bin" / "python")
    path.write_text(json.dumps({**json.loads(path.read_text()), "python": gone}))
    ended = start(bare_python, path.parent / "scripts" / "count.py")
    assert ended.returncode == 3
    assert ended.stderr.splitlines()[-1] == f"try: python3 '{tmp_path}/check out/bootstrap.py' setup"


def npx_lock(path: Path, name: str, **entry: str) -> None:
    """Write what `npx skills add` leaves beside its copies, as its version 1.7.4 does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"version": 1, "skills": {name: {"computedHash": "", **entry}}}))


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize(
    ("entry", "package"),
    [
        ({"source": "me/pack", "sourceType": "github"}, " @ git+https://github.com/me/pack"),
        (
            {"source": "pack", "sourceType": "git", "sourceUrl": "https://example.org/pack.git"},
            " @ git+https://example.org/pack.git",
        ),
        (
            {"source": "pack", "sourceType": "git", "sourceUrl": "git@example.org:me/pack.git"},
            " @ git+ssh://git@example.org/me/pack.git",
        ),
        ({"source": "/nowhere", "sourceType": "local"}, ""),
        ({"source": 5}, ""),
    ],
)
def test_a_copy_by_npx_names_where_it_came_from(
    home: Path, asking: Path, bare_python: Path, scope: str, entry: dict, package: str
) -> None:
    base = home if scope == "user" else home / "work"
    copy = shutil.copytree(asking, base / ".agents" / "skills" / asking.name)
    npx_lock(base / (".agents/.skill-lock.json" if scope == "user" else "skills-lock.json"), asking.name, **entry)
    ended = start(bare_python, copy / "scripts" / "count.py")
    assert ended.returncode == 3
    own = "~/.local/share/agentjet-skills"
    assert ended.stderr.splitlines()[-1] == (
        f"try: python3 -m venv {own} && {own}/bin/pip install 'agentjet-skills[all]{package}'"
    )


def test_a_copy_by_npx_from_a_checkout_runs_once_that_is_set_up(
    home: Path, asking: Path, bare_python: Path, tmp_path: Path
) -> None:
    checkout = tmp_path / "check out"
    checkout.mkdir()
    (checkout / "bootstrap.py").write_text("")
    copy = shutil.copytree(asking, home / "work" / ".claude" / "skills" / asking.name)
    npx_lock(home / "work" / "skills-lock.json", asking.name, source="../../check out", sourceType="local")
    ended = start(bare_python, copy / "scripts" / "count.py")
    assert ended.stderr.splitlines()[-1] == f"try: python3 '{checkout}/bootstrap.py' setup"
    (checkout / ".venv" / "bin").mkdir(parents=True)
    python = checkout / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    assert answer(start(bare_python, copy / "scripts" / "count.py"))["pack"] == skillpack.__file__


@pytest.mark.parametrize(
    "folder",
    [
        ".local/share/agentjet-skills",
        ".local/share/pipx/venvs/agentjet-skills",
        ".local/share/uv/tools/agentjet-skills",
    ],
)
def test_the_environments_that_are_made_for_the_pack_are_found(
    home: Path, asking: Path, bare_python: Path, folder: str
) -> None:
    python = home / folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    assert answer(start(bare_python, asking / "scripts" / "count.py"))["pack"] == skillpack.__file__


def test_the_record_names_where_the_pack_came_from(run: Run, home: Path, asking: Path, bare_python: Path) -> None:
    run("install", asking, "--agent", "codex")
    path = home / ".agents" / "skills" / asking.name / ".agentjet-skills.json"
    known = json.loads(path.read_text())
    assert known["origin"]
    path.write_text(json.dumps({**known, "python": "/nowhere/python", "origin": "https://example.org/pack.git"}))
    ended = start(bare_python, path.parent / "scripts" / "count.py")
    assert ended.stderr.splitlines()[-1].endswith("'agentjet-skills[all] @ git+https://example.org/pack.git'")


def test_a_record_that_is_out_of_date_is_renewed_by_update(run: Run, home: Path, asking: Path) -> None:
    run("install", asking, "--agent", "codex")
    path = home / ".agents" / "skills" / asking.name / ".agentjet-skills.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "python": "/nowhere/python"}))
    assert [action for action, _ in run("update", "--json").actions] == ["updated"]
    assert json.loads(path.read_text())["python"] == sys.executable


OWN_SCRIPTS = [
    skills_dir() / name / "scripts" / script
    for name in sources.own_names()
    for script in read_card(skills_dir() / name).scripts
]


@pytest.mark.parametrize("script", OWN_SCRIPTS, ids=lambda path: f"{path.parts[-3]}/{path.name}")
def test_each_script_of_the_pack_works_when_installed(run: Run, home: Path, bare_python: Path, script: Path) -> None:
    skill = script.parents[1].name
    run("install", skill, "--agent", "claude-code")
    ended = start(bare_python, home / ".claude" / "skills" / skill / "scripts" / script.name, "--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Exit codes" in ended.stdout


@pytest.mark.parametrize("copy", sorted(skills_dir().glob("*/scripts/_pack.py")), ids=lambda path: path.parts[-3])
def test_every_copy_of_the_preamble_is_the_template(copy: Path) -> None:
    assert copy.read_bytes() == TEMPLATE.read_bytes()
