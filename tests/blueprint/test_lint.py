"""Lint names what would make a run fail, before it is started; render writes what reads back."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from skillpack.blueprint.lint import FAIL, OK, WARN, Check, lint_blueprint
from skillpack.blueprint.model import Blueprint, parse_blueprint
from skillpack.blueprint.render import Fields, from_job_script, render_blueprint
from skillpack.script import BadInput

JOB = """
ajet:
  experiment_name: linted
  model: {path: Qwen/Qwen2.5-7B-Instruct}
  trainer_common: {n_gpus_per_node: 2, total_training_steps: 100, save_freq: 20, logger: console}
hydra:
  searchpath: [file://ajet/default_config]
defaults: [verl_default, ajet_default, _self_]
"""


@pytest.fixture
def good(tmp_path: Path) -> Blueprint:
    (tmp_path / "job.yaml").write_text(JOB)
    text = f"""
exp_purpose: lint me
exp_codebase_dir: {tmp_path}
exp_venv_exe: {sys.executable}
exp_yaml_path: job.yaml
exp_launch_command: python -m ajet.launcher --conf ./job.yaml --backbone debug
exp_result_dir: {tmp_path / "results"}
exp_max_time: 24h
"""
    return parse_blueprint(text, tmp_path / "b.md")


def found(blueprint: Blueprint, id_: str) -> Check:
    checks = [check for check in lint_blueprint(blueprint) if check.id == id_]
    assert checks, f"no check {id_}"
    return min(checks, key=lambda check: (FAIL, WARN, OK).index(check.verdict))


def test_a_good_blueprint_has_no_failure(good: Blueprint) -> None:
    assert [check for check in lint_blueprint(good) if check.verdict == FAIL] == []
    assert "reference engine" in found(good, "venv").message


@pytest.mark.parametrize(
    ("change", "id_", "words"),
    [
        ({"codebase_dir": Path("/not/there")}, "codebase", "does not exist"),
        ({"venv_exe": Path("/not/there/python")}, "venv", "does not exist"),
        ({"venv_exe": Path("/usr")}, "venv", "is a directory"),
        ({"yaml_path": Path("/not/there.yaml")}, "yaml", "does not exist"),
        ({"commands": ("ajet-not-there --conf ./job.yaml",)}, "program", "is not found"),
        ({"commands": ("python nothing.py",)}, "script", "nothing.py"),
        ({"commands": ("python -m ajet.launcher --conf ./other.yaml --backbone debug",)}, "names-yaml", "other.yaml"),
        ({"commands": ("python -m ajet.launcher --conf job.yaml --backbone debug",)}, "conf", "no folder part"),
        ({"commands": ("python -m ajet.launcher --backbone debug",)}, "conf", "trains nothing"),
        ({"result_dir": Path("/proc/nothing")}, "result", "may not be written"),
    ],
)
def test_each_fault_fails_by_its_name(good: Blueprint, change: dict[str, object], id_: str, words: str) -> None:
    check = found(replace(good, **change), id_)  # type: ignore[arg-type]
    assert (check.verdict, words in check.message) == (FAIL, True), check
    assert check.mend


@pytest.mark.parametrize(
    ("command", "id_"),
    [
        ("nohup python -m ajet.launcher --conf ./job.yaml --backbone debug &", "background"),
        ("tmux new -d 'ajet'", "background"),
        ("python -m ajet.launcher --conf ./job.yaml --backbone debug --autokill", "kills-by-name"),
        ("pkill -f vllm; python -m ajet.launcher --conf ./job.yaml --backbone debug", "kills-by-name"),
        ("python -m ajet.launcher --conf ./job.yaml --backbone verll", "backbone"),
    ],
)
def test_what_is_only_unwise_is_warned_of(good: Blueprint, command: str, id_: str) -> None:
    assert found(replace(good, commands=(command,)), id_).verdict == WARN


@pytest.mark.parametrize(
    "command",
    [
        "python -m ajet.launcher --conf ./job.yaml --backbone debug > out.txt 2>&1",
        "python -m ajet.launcher --conf ./job.yaml --backbone debug 2>&1 | tee out.txt",
        "python -m ajet.launcher --conf ./job.yaml --backbone debug &> out.txt",
        "nice -n 10 env -u X A=1 python -m ajet.launcher --conf ./job.yaml --backbone debug",
        "timeout -k 5 3h python -m ajet.launcher --conf ./job.yaml --backbone debug",
        "if [ -f job.yaml ]; then python -m ajet.launcher --conf ./job.yaml --backbone debug; fi",
        "for n in 1 2; do\n  python -m ajet.launcher --conf ./job.yaml --backbone debug\ndone",
        "cat > note <<'E'\nno command\nE\npython -m ajet.launcher --conf ./job.yaml --backbone debug # here; is it",
        'python -c "\nimport x; y()\n"\npython -m ajet.launcher --conf ./job.yaml --backbone debug',
        "cd sub && python here.py && python -m ajet.launcher --conf ../job.yaml --backbone debug",
        'python -m ajet.launcher --conf "$exp_yaml_path" --backbone debug',
        "python -m ajet.launcher --conf ${exp_codebase_dir}/job.yaml --backbone debug",
        "true &&\npython -m ajet.launcher --conf ./job.yaml --backbone debug",
        "sleep 1 &\npython -m ajet.launcher --conf ./job.yaml --backbone debug\nwait",
    ],
)
def test_what_a_shell_can_run_is_no_fault(good: Blueprint, command: str) -> None:
    assert good.codebase_dir
    (good.codebase_dir / "sub").mkdir()
    (good.codebase_dir / "sub" / "here.py").touch()
    checks = lint_blueprint(replace(good, commands=(command,)))
    assert [check for check in checks if check.verdict == FAIL or check.id == "background"] == []
    assert [check.verdict for check in checks if check.id == "names-yaml"] == [OK]


@pytest.mark.parametrize(
    ("conf", "verdict"), [("{}", FAIL), ("$exp_yaml_path", FAIL), ("'{}'", OK), ('"$exp_yaml_path"', OK)]
)
def test_a_path_with_a_space_must_be_quoted(good: Blueprint, conf: str, verdict: str) -> None:
    assert good.yaml_path
    path = good.yaml_path.with_name("my job.yaml")
    good.yaml_path.rename(path)
    command = f"python -m ajet.launcher --conf {conf.format(path)} --backbone debug"
    check = found(replace(good, yaml_path=path, commands=(command,)), "names-yaml")
    assert check.verdict == verdict, check
    assert verdict == OK or "quote it" in check.mend


def test_a_program_that_an_environment_may_bring_is_warned_of(good: Blueprint) -> None:
    command = "source activate.sh && ajet-from-there --conf ./job.yaml"
    assert found(replace(good, commands=(command,)), "program").verdict == WARN


CLIENT = "import os\nfrom ajet.tuner_lib.experimental.swarm_client import SwarmClient\n{}\n"


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("SwarmClient('http://127.0.0.1:10086')", FAIL),
        ("URL = 'http://localhost:10086'\nSwarmClient(server_url=URL)", FAIL),
        ("SwarmClient(os.environ.get('MY_URL', 'http://localhost:10086'))", WARN),
        ("SwarmClient(os.environ.get('AJET_SWARM_URL', 'http://localhost:10086'))", None),
        ("SwarmClient(os.environ['AJET_SWARM_URL'])", None),
        ("SwarmClient('http://localhost:10087/')", None),
    ],
)
def test_a_client_that_goes_elsewhere_is_told(good: Blueprint, line: str, verdict: str | None) -> None:
    assert good.codebase_dir
    (good.codebase_dir / "client.py").write_text(CLIENT.format(line))
    server = "python -m ajet.swarm_cli start --swarm-port 10087"
    checks = lint_blueprint(replace(good, commands=("python client.py --x",), server_command=server))
    assert [check.verdict for check in checks if check.id == "client-url"] == ([verdict] if verdict else [])


def test_a_closed_folder_is_one_failed_check(good: Blueprint, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = Path("/closed/bin/python")
    real = Path.stat

    def stat(path: Path, **options: bool) -> os.stat_result:
        if str(path).startswith("/closed/"):  # root, as whom tests may run, is let in everywhere
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, **options)

    monkeypatch.setattr(Path, "stat", stat)
    checks = lint_blueprint(replace(good, venv_exe=closed))
    assert [(check.id, check.verdict) for check in checks if check.verdict == FAIL] == [("venv", FAIL)]
    text = good.text.replace(sys.executable, str(closed))
    assert parse_blueprint(text, good.source).venv_exe == closed


def test_a_server_address_without_a_valid_port_fails(good: Blueprint) -> None:
    assert found(replace(good, server_url="http://gpu1:99999", server_command="x"), "server").verdict == FAIL


def test_kill_by_name_says_who_else_would_die(good: Blueprint) -> None:
    check = found(replace(good, commands=("ajet --conf ./job.yaml --autokill",)), "kills-by-name")
    assert "processes" in check.message  # this very test runs under a process with "python" in its name


def test_a_configuration_with_an_unknown_key_is_told_with_its_line(good: Blueprint) -> None:
    assert good.yaml_path
    good.yaml_path.write_text(JOB.replace("experiment_name", "experiment_nmae"))
    check = found(good, "yaml")
    assert check.verdict in (FAIL, WARN)
    assert "experiment_nmae" in check.message
    assert "job.yaml:3" in check.message


def test_a_directory_with_a_run_in_it_is_told(good: Blueprint) -> None:
    assert good.result_dir
    good.result_dir.mkdir()
    (good.result_dir / "notes.txt").write_text("mine")
    assert found(good, "result").verdict == WARN


def test_checkpoints_that_do_not_fit_are_told(good: Blueprint, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=50 << 30))
    real = replace(good, commands=("ajet --conf ./job.yaml",))
    check = found(real, "disk")
    assert check.verdict == WARN
    assert "5 checkpoints x 7.0 billion parameters (as its name says) x 12 bytes = 391.2 GiB" in check.message


def nvidia_smi(folder: Path, rows: str) -> None:
    stub = folder / "nvidia-smi"
    stub.write_text(f"#!/bin/sh\ncat <<'E'\n{rows}\nE\n")
    stub.chmod(0o755)


@pytest.mark.parametrize(
    ("rows", "verdict", "words"),
    [
        ("0, 81559, 4\n1, 81559, 4", OK, "2 GPUs are free"),
        ("0, 81559, 4\n1, 81559, 40000", FAIL, "GPU 1 51% free"),
        ("0, 81559, 4", FAIL, "1 GPUs are visible, n_gpus_per_node is 2"),
        ("NVIDIA-SMI has failed", WARN, "does not answer"),
    ],
)
def test_gpus(
    good: Blueprint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: str, verdict: str, words: str
) -> None:
    nvidia_smi(tmp_path, rows)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    check = found(replace(good, commands=("ajet --conf ./job.yaml",)), "gpus")
    assert (check.verdict, words in check.message) == (verdict, True), check


def test_a_port_that_is_taken_fails_a_server_that_the_run_would_start(good: Blueprint) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        port = one.getsockname()[1]
        taken = replace(good, server_command=f"ajet-swarm start --swarm-port {port}")
        assert found(taken, "server").verdict == FAIL
        elsewhere = replace(good, server_url=f"http://127.0.0.1:{port + 1}")
    assert found(elsewhere, "server").verdict == WARN


def test_what_is_rendered_reads_back(tmp_path: Path) -> None:
    fields = Fields(
        purpose="Compare: two\nlearning rates",
        codebase_dir="/my code",
        venv_exe="/my code/venv/bin/python",
        yaml_path="/my code/job.yaml",
        commands=("cd x\npython a.py \\\n  --b", "python c.py"),
        result_dir="~/results (new)/x",
        max_time="36 h",
        server_command="ajet-swarm start",
        notes="## exp_purpose is above",
    )
    blueprint = parse_blueprint(render_blueprint(fields), tmp_path / "b.md")
    assert blueprint.commands == fields.commands
    assert blueprint.purpose == fields.purpose
    assert blueprint.result_dir == Path.home() / "results (new)/x"
    assert blueprint.max_time == 36 * 3600
    assert blueprint.server_command == "ajet-swarm start"


@pytest.mark.parametrize(
    "change",
    [
        {"commands": ("echo '\n```\n'",)},
        {"purpose": "# exp_launch_command\nrm"},
        {"max_time": "soon"},
        {"result_dir": "a\nb"},
    ],
)
def test_what_would_not_read_back_is_refused(change: dict[str, object]) -> None:
    fields = Fields("p", "/c", "/v", "/y", ("x",), "/r", "1h")
    with pytest.raises(BadInput):
        render_blueprint(replace(fields, **change))  # type: ignore[arg-type]


def test_a_real_swarm_server_is_no_rehearsal(good: Blueprint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi(tmp_path, "0, 81559, 4")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    swarm = replace(good, commands=("python client.py",), server_command="python -m ajet.swarm_cli start")
    assert not [check for check in lint_blueprint(swarm) if check.id == "gpus"]
    real = tmp_path / "python"
    real.write_text("""#!/bin/sh\necho '{"python": "3.10", "ajet": "/real/ajet/__init__.py", "versions": {}}'\n""")
    real.chmod(0o755)
    assert found(replace(swarm, venv_exe=real), "gpus").verdict == FAIL


def test_a_tools_address_is_not_taken_for_the_swarm_servers(tmp_path: Path) -> None:
    script = tmp_path / "client.py"
    script.write_text(CLIENT.format("from ajet.copilot.job import AgentJetJob\nTOOL = 'http://localhost:8000'"))
    with script.open("a") as more:
        more.write("client = SwarmClient(os.environ['AJET_SWARM_URL'])\njob = AgentJetJob(batch_size=16)\n")
    assert from_job_script(script)["server_url"] == ""


def test_a_client_of_another_folder_is_named_by_its_path(tmp_path: Path) -> None:
    script = tmp_path / "clients" / "one.py"
    script.parent.mkdir()
    script.write_text("from ajet.copilot.job import AgentJetJob\njob = AgentJetJob(batch_size=16)\n")
    assert from_job_script(script, tmp_path)["commands"] == ("python clients/one.py",)
    assert from_job_script(script, tmp_path / "elsewhere")["commands"] == (f"python {script}",)


def test_a_client_script_fills_in_a_blueprint_without_being_run(tmp_path: Path) -> None:
    script = tmp_path / "my client.py"
    script.write_text(
        "from ajet.copilot.job import AgentJetJob\n"
        "from ajet.tuner_lib.experimental.swarm_client import SwarmClient\n"
        "raise SystemExit('not run')\n"
        "client = SwarmClient('http://gpu1:10086')\n"
        "job = AgentJetJob(project_name='p', experiment_name='e', batch_size=16, num_repeat=8, max_env_worker=64)\n"
    )
    known = from_job_script(script)
    assert known["commands"] == ("python 'my client.py'",)
    assert (known["purpose"], known["server_url"]) == ("Train p / e", "http://gpu1:10086")
    assert "ajet.rollout.max_env_worker = 64" in known["notes"]
