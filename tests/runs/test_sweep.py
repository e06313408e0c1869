"""Sweeps: many blueprints over slots, resumable, never two on the same GPUs."""

from __future__ import annotations

import json
import shutil
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from skillpack.pack import SCHEMAS
from skillpack.runs.process import Identity
from skillpack.runs.sweep import Slots
from skillpack.script import BadInput
from tests.ports import free_port
from tests.runs.conftest import Answer, Lab, until

SHORT = """
step(1)
print("gpus", os.environ.get("CUDA_VISIBLE_DEVICES"))
time.sleep(0.5)
"""


def plans(lab: Lab, *names: str, program: str = SHORT) -> Path:
    folder = lab.path / "plans"
    folder.mkdir(exist_ok=True)
    for name in names:
        lab.blueprint(program, name).rename(folder / f"{name}.md")
        lab.result(name)
    return folder


def sweep(lab: Lab, folder: Path, *options: str) -> tuple[Answer, Any]:
    answer = lab.script("sweep", "run", folder, "--no-tmux", "--kill-after", "2s", *options, "--json")
    document = json.loads(answer.out) if answer.out else {}
    if document:
        jsonschema.validate(document, json.loads((SCHEMAS / "run-sweep.schema.json").read_text()))
    return answer, document


def lives(lab: Lab, name: str) -> tuple[float, float]:
    record = lab.record(lab.result(name))
    return record["started_monotonic"], record["started_monotonic"] + record["seconds"]


def test_runs_that_share_a_gpu_never_overlap(lab: Lab) -> None:
    names = ("a", "b", "c", "d")
    folder = plans(lab, *names)
    answer, document = sweep(lab, folder, "--slots", "91,92;93", "--for", "60s")
    assert (answer.code, document["counts"]) == (0, {"finished": 4})
    by_gpus: dict[str, list[tuple[float, float]]] = {}
    for name in names:
        by_gpus.setdefault(lab.record(lab.result(name))["spec"]["gpus"], []).append(lives(lab, name))
    assert sorted(by_gpus) == ["91,92", "93"]
    for times in by_gpus.values():
        ordered = sorted(times)
        assert all(earlier[1] <= later[0] for earlier, later in pairwise(ordered))
    assert "gpus 91,92" in "".join((lab.result(name) / "console.log").read_text() for name in names)


def test_a_sweep_goes_on_where_it_stood_and_never_repeats_a_finished_run(lab: Lab) -> None:
    folder = plans(lab, "a", "b", "c")
    answer, document = sweep(lab, folder, "--jobs", "1", "--for", "0s")
    assert answer.code == 4
    assert document["counts"]["waiting"] == 2
    answer, document = sweep(lab, folder, "--jobs", "1", "--for", "60s")
    assert (answer.code, document["counts"]) == (0, {"finished": 3})
    ids = {name: lab.record(lab.result(name))["id"] for name in "abc"}
    assert sweep(lab, folder, "--jobs", "3", "--for", "5s")[0].code == 0
    assert ids == {name: lab.record(lab.result(name))["id"] for name in "abc"}


def test_a_run_that_fails_is_tried_again_so_often_and_not_more(lab: Lab) -> None:
    folder = plans(lab, "bad", program="step(1); sys.exit(3)")
    answer, document = sweep(lab, folder, "--jobs", "1", "--retries", "2", "--for", "60s")
    assert answer.code == 1
    assert [(run["state"], run["attempt"]) for run in document["runs"]] == [("failed", 3)]
    assert (lab.result("bad") / "attempts" / "2" / "console.log").exists()


def test_a_gpu_that_another_run_leases_is_left_alone(lab: Lab) -> None:
    holder = lab.start("step(1); time.sleep(600)", "holder", "--gpus", "94", "--no-tmux")
    until(lambda: "step:1" in (holder / "console.log").read_text(), "the holder")
    folder = plans(lab, "a")
    answer, document = sweep(lab, folder, "--slots", "94", "--for", "1s")
    assert (answer.code, document["counts"]) == (4, {"waiting": 1})
    supervisor = Identity.from_json(lab.record(holder)["supervisor"])
    assert supervisor
    supervisor.signal(signal.SIGTERM)
    answer, document = sweep(lab, folder, "--slots", "94", "--for", "60s")
    assert (answer.code, document["counts"]) == (0, {"finished": 1})


def test_a_second_start_on_a_leased_gpu_says_so(lab: Lab) -> None:
    lab.start("step(1); time.sleep(600)", "holder", "--gpus", "95", "--no-tmux")
    answer = lab.run("start", lab.blueprint("step(1)", "b"), "--gpus", "95,96", "--no-tmux")
    assert answer.code == 1
    assert "GPU 95 is leased" in answer.err
    assert not lab.result("b").exists()


def test_one_directory_for_two_blueprints_is_refused(lab: Lab) -> None:
    folder = plans(lab, "a")
    (folder / "copy.md").write_text((folder / "a.md").read_text())
    answer, _ = sweep(lab, folder, "--jobs", "1")
    assert answer.code == 2
    assert "same exp_result_dir" in answer.err


@pytest.mark.parametrize("slots", ["0,1;1", ";", "0;;1", ""])
def test_slots_that_overlap_or_are_empty_are_refused(slots: str) -> None:
    with pytest.raises(BadInput):
        Slots.read(slots, None)


def test_servers_of_one_port_take_their_turns(lab: Lab) -> None:
    """Two swarm blueprints with the default port must not end in one training the other's engine."""
    folder = plans(lab)
    port = free_port()
    server = f"python -c 'import http.server as h; h.test(h.SimpleHTTPRequestHandler, port={port})' --port {port}"
    for name in ("a", "b"):
        blueprint = lab.blueprint("step(1); time.sleep(2); step(2)", name)
        text = blueprint.read_text() + f"# exp_server_command\n```\n{server}\n```\n"
        (folder / f"{name}.md").write_text(text)
        lab.result(name)
    (lab.path / "code a" / "get_engine_status").write_text('{"engine_status": "ENGINE.ROLLING", "global_step": 1}')
    shutil.copy(lab.path / "code a" / "get_engine_status", lab.path / "code b")
    answer, document = sweep(lab, folder, "--jobs", "2", "--for", "60s")
    assert answer.code == 0, document
    (first, first_end), (second, second_end) = lives(lab, "a"), lives(lab, "b")
    assert first_end <= second or second_end <= first
