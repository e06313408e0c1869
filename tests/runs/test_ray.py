"""Runs as Ray jobs, on a real cluster of two nodes on this machine. Needs the extra ``ray``."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runs.conftest import Lab, until

pytest.importorskip("ray.job_submission", reason="the extra ray is not installed")
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without room for jobs, and two workers: one to lose, one to go on with."""
    from ray.cluster_utils import Cluster

    os.environ |= {"RAY_DISABLE_IMPORT_WARNING": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    head = {"num_cpus": 2, "include_dashboard": True, "dashboard_port": port, "object_store_memory": 80_000_000}
    both = Cluster(initialize_head=True, head_node_args=head)
    both.address_of_jobs = f"http://127.0.0.1:{port}"
    both.worker = both.add_node(num_cpus=2, object_store_memory=80_000_000)
    yield both
    both.shutdown()


def job_nodes(address: str) -> dict[str, str]:
    """Return the node of every running job, by its submission id."""
    from ray.job_submission import JobSubmissionClient

    client = JobSubmissionClient(address)
    return {job.submission_id: job.driver_node_id for job in client.list_jobs() if str(job.status) == "RUNNING"}


def test_a_run_as_a_ray_job(lab: Lab, cluster: Any) -> None:
    directory = lab.start("step(1); step(2); print('on ray')", "one", "--on", cluster.address_of_jobs, "--no-tmux")
    until(lambda: lab.record(directory)["phase"] == "ended", "the job", 120)
    answer = lab.run("watch", directory, "--json")
    assert (answer.code, answer.json["state"], answer.json["steps"]) == (0, "finished", 2)
    assert "on ray" in (directory / "console.log").read_text()


def test_the_exit_code_of_a_ray_job_comes_back(lab: Lab, cluster: Any) -> None:
    directory = lab.start("step(1); sys.exit(3)", "one", "--on", cluster.address_of_jobs, "--no-tmux")
    until(lambda: lab.record(directory)["phase"] == "ended", "the job", 120)
    assert lab.record(directory)["exit_code"] == 3


def test_stop_stops_the_ray_job(lab: Lab, cluster: Any) -> None:
    from ray.job_submission import JobSubmissionClient

    directory = lab.start("while True: step(1); time.sleep(0.2)", "one", "--on", cluster.address_of_jobs, "--no-tmux")
    until(lambda: "step:1" in (directory / "console.log").read_text(), "a step", 120)
    assert lab.run("stop", directory, timeout=100).code == 0
    identity = f"{lab.record(directory)['id']}-train"
    assert str(JobSubmissionClient(cluster.address_of_jobs).get_job_status(identity)) == "STOPPED"


def test_a_cluster_that_does_not_answer_is_told(lab: Lab) -> None:
    answer = lab.run("start", lab.blueprint("step(1)"), "--on", "http://127.0.0.1:9", "--no-tmux", timeout=120)
    assert (answer.code, "no job can be submitted" in answer.err) == (3, True)
    assert not lab.result().exists()


def test_a_sweep_of_twelve_survives_the_loss_of_a_worker(lab: Lab, cluster: Any) -> None:
    folder = lab.path / "plans"
    folder.mkdir()
    for number in range(12):
        name = f"run{number:02}"
        lab.blueprint("step(1); time.sleep(6); step(2)", name).rename(folder / f"{name}.md")
        lab.result(name)
    many = ("--jobs", "4", "--retries", "3", "--no-tmux", "--kill-after", "5s", "--json")
    options = ("--on", cluster.address_of_jobs, *many)
    deadline = time.monotonic() + 500
    killed = False
    while True:
        answer = lab.script("sweep", "run", folder, *options, "--for", "5s", timeout=120)
        document = json.loads(answer.out)
        if not killed and cluster.worker.node_id in job_nodes(cluster.address_of_jobs).values():
            cluster.remove_node(cluster.worker, allow_graceful=False)
            killed = True
        if answer.code != 4:
            break
        assert time.monotonic() < deadline, document["counts"]
    assert killed
    assert (answer.code, document["counts"]) == (0, {"finished": 12})
    assert any(run["attempt"] > 1 for run in document["runs"])
    assert all(Path(run["dir"], "console.log").read_text().count("step:2") == 1 for run in document["runs"])
