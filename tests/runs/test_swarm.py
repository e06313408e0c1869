"""Swarm runs against the reference engine: server and clients in one run, each in its window."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skillpack.runs.engine import ask_engine
from skillpack.runs.process import Identity
from tests.ports import free_port
from tests.runs.conftest import Lab, until

HERE = Path(__file__).parent


def swarm_blueprint(lab: Lab, *clients: str, server: str | None = None, url: str = "") -> Path:
    shutil.copy(HERE / "swarm_client.py", lab.path / "client.py")
    shutil.copy(HERE / "swarm.yaml", lab.path / "swarm.yaml")
    blueprint = lab.path / "swarm.md"
    launch = "\n".join(f"- `{client}`" for client in clients)
    where = f"server command: {server}" if server else f"server url: {url}"
    blueprint.write_text(
        f"""
## exp_purpose
Swarm drill
## exp_codebase_dir
{lab.path}
## exp_venv_exe
{sys.executable}
## exp_yaml_path
swarm.yaml

- {where}

## exp_launch_command
{launch}
## exp_result_dir
{lab.path / "results" / "swarm"}
## exp_max_time
10 min
""",
        encoding="utf-8",
    )
    return blueprint


def engine(port: int) -> str:
    return f"python -m ajet.swarm_cli start --swarm-port {port}"


def started(lab: Lab, blueprint: Path, *options: str) -> Path:
    directory = lab.result("swarm")
    answer = lab.run("start", blueprint, "--observe", "0", "--kill-after", "3s", *options)
    assert answer.code == 0 or not answer.err, answer.err  # what fails at once is told as failed, not as refused
    return directory


def identity(lab: Lab, directory: Path, name: str) -> Identity:
    part = next(part for part in lab.record(directory)["parts"] if part["name"] == name)
    who = Identity.from_json(part["process"])
    assert who
    return who


def test_server_and_two_clients_train_to_the_end(lab: Lab) -> None:
    client = "python client.py 4 --leave"  # whoever stops the engine takes it from the other
    blueprint = swarm_blueprint(lab, client, client, server=engine(free_port()))
    directory = started(lab, blueprint)
    session = lab.record(directory)["session"]
    windows = lab.tmux("list-windows", "-t", f"={session}", "-F", "#{window_name}").stdout.split()
    assert windows == ["server", "client-1", "client-2"]
    seen = set()
    answer = lab.run("watch", directory, "--for", "30s", "--json")
    while answer.code == 4:
        seen |= {event["event"] for event in answer.json["events"]}
        answer = lab.run("watch", directory, "--for", "30s", "--json")
    assert (answer.code, answer.json["state"]) == (0, "finished")
    assert "first-step" in seen
    console = (directory / "console.log").read_text()
    assert "[server] step:1 - " in console
    assert "[client-1] the client is done" in console


def test_a_killed_server_is_named(lab: Lab) -> None:
    directory = started(lab, swarm_blueprint(lab, "python client.py 100000", server=engine(free_port())))
    until(lambda: "step:2" in (directory / "logs" / "server.log").read_text(), "steps")
    identity(lab, directory, "server").signal(signal.SIGKILL)
    record = lab.ended(directory)
    assert record["outcome"] == "part-died"
    answer = lab.run("watch", directory, "--json")
    assert (answer.code, answer.json["state"], answer.json["died"][0]) == (1, "failed", "server")
    assert "server" in answer.json["reason"]


def test_a_killed_client_is_named_and_the_server_ended(lab: Lab) -> None:
    directory = started(lab, swarm_blueprint(lab, "python client.py 100000", server=engine(free_port())))
    until(lambda: "step:2" in (directory / "logs" / "server.log").read_text(), "steps")
    server = identity(lab, directory, "server")
    identity(lab, directory, "client").signal(signal.SIGKILL)
    lab.ended(directory)
    assert not server.alive()
    answer = lab.run("watch", directory, "--json")
    assert (answer.code, answer.json["state"], answer.json["died"]) == (1, "failed", ["client"])
    assert answer.json["causes"][0]["id"] == "killed-137"


def test_one_dead_client_of_two_is_told_while_the_other_goes_on(lab: Lab) -> None:
    clients = ("python client.py 100000", "python client.py 100000")
    directory = started(lab, swarm_blueprint(lab, *clients, server=engine(free_port())))
    until(lambda: "step:2" in (directory / "logs" / "server.log").read_text(), "steps")
    lab.run("watch", directory, "--for", "1s")
    identity(lab, directory, "client-2").signal(signal.SIGKILL)
    until(lambda: lab.record(directory)["parts"][2].get("exit_code"), "the record of the dead client")
    answer = lab.run("watch", directory, "--for", "20s", "--steps", "0", "--json")
    assert answer.code == 4
    assert ("part-died", "client-2 has ended, other parts go on") in [
        (event["event"], event["text"]) for event in answer.json["events"]
    ]
    lab.run("stop", directory)


def test_a_server_that_dies_before_it_is_ready_is_told(lab: Lab) -> None:
    dies = f"""python -c "raise OSError(98, 'Address already in use')" --port {free_port()}"""
    directory = started(lab, swarm_blueprint(lab, "python client.py 2", server=dies))
    record = lab.ended(directory)
    assert record["outcome"] == "part-died"
    answer = lab.run("watch", directory, "--json")
    assert answer.json["died"] == ["server"]
    assert answer.json["causes"][0]["id"] == "port-in-use"


@contextmanager
def foreign_engine(lab: Lab, port: int) -> Iterator[str]:
    """Run an engine that belongs to somebody else; yield its URL."""
    argv = [sys.executable, "-m", "ajet.swarm_cli", "start", "--swarm-port", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(argv, cwd=lab.path, **quiet)
    url = f"http://127.0.0.1:{port}"
    try:
        until(lambda: ask_engine(url), "the engine")
        yield url
    finally:
        server.terminate()
        server.wait(20)


def status_of(url: str) -> str:
    engine = ask_engine(url)
    assert engine
    return engine.status


def test_a_port_that_somebody_else_holds_is_refused_and_his_engine_left_alone(lab: Lab) -> None:
    port = free_port()
    blueprint = swarm_blueprint(lab, "python client.py 2", server=engine(port))
    with foreign_engine(lab, port) as url:
        answer = lab.run("start", blueprint)
        assert answer.code == 1
        assert f"port {port} is taken, by pid" in answer.err
        assert status_of(url) == "ENGINE.OFFLINE"
    assert not lab.result("swarm").exists()


def test_a_foreign_server_that_comes_before_the_runs_own_gets_no_client(lab: Lab) -> None:
    port = free_port()
    blueprint = swarm_blueprint(lab, "python client.py 2", server=f"sleep 600 # {engine(port)}")
    directory = started(lab, blueprint, "--server-timeout", "20s")
    with foreign_engine(lab, port) as url:
        assert lab.ended(directory)["outcome"] == "not-ready"
        assert status_of(url) == "ENGINE.OFFLINE"
    record = lab.record(directory)
    assert "is not this run's" in record["reason"]
    assert [part["process"] is None for part in record["parts"]] == [False, True]


def test_the_next_attempt_looks_at_the_port_too(lab: Lab) -> None:
    port = free_port()
    directory = started(lab, swarm_blueprint(lab, "python client.py 2", server=f"false # {engine(port)}"))
    lab.ended(directory)
    with foreign_engine(lab, port):
        answer = lab.run("attempt", directory, "--tried", "the same")
    assert (answer.code, "is taken" in answer.err) == (1, True)
    assert not (directory / "attempts.md").exists()
    assert lab.record(directory)["attempt"] == 1


def test_remedies_know_the_configuration_of_a_client_script(lab: Lab) -> None:
    oom = "import sys; sys.exit('  in update_actor\\ntorch.OutOfMemoryError: CUDA out of memory. Tried')"
    (lab.path / "job.py").write_text(
        "from ajet.copilot.job import AgentJetJob\n"
        "job = AgentJetJob(max_prompt_length=3000, max_response_length=7000, max_model_len=10000,\n"
        "                  max_response_length_in_one_turn=4096)\n"
    )
    blueprint = swarm_blueprint(lab, "python client.py 2", server=f'python -c "{oom}" --port {free_port()}')
    blueprint.write_text(blueprint.read_text().replace("swarm.yaml", "job.py"))
    directory = started(lab, blueprint)
    lab.ended(directory)
    first = lab.run("watch", directory, "--json").json["causes"][0]
    remedy = first["remedy"][0]
    assert first["id"] == "gpu-oom-train"
    assert (remedy["key"], remedy["current"], remedy["value"]) == ("ajet.rollout.max_model_len", 10000, 7500)
    (lab.path / "job.py").write_text("job = None")  # what it is now says nothing about that run
    assert lab.run("watch", directory, "--json").json["causes"][0]["remedy"][0] == remedy


def test_an_address_without_a_server_is_told(lab: Lab) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    directory = started(lab, swarm_blueprint(lab, "python client.py 2", url=url), "--server-timeout", "2s")
    lab.ended(directory)
    answer = lab.run("watch", directory, "--json")
    assert (answer.code, answer.json["state"]) == (1, "failed")
    assert url in answer.json["reason"]


def test_an_engine_that_somebody_else_runs_is_used_and_left_running(lab: Lab) -> None:
    with foreign_engine(lab, free_port()) as url:
        directory = started(lab, swarm_blueprint(lab, "python client.py 3 --leave", url=url))
        lab.ended(directory)
        answer = lab.run("watch", directory, "--json")
        assert (answer.code, answer.json["state"]) == (0, "finished")
        assert ask_engine(url) is not None
