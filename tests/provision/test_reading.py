"""What is read out of tools' output, layout by layout."""

from __future__ import annotations

import ast

import pytest

from skillpack.pack import PACKAGE
from skillpack.provision.containers import read_daemon_json, read_docker
from skillpack.provision.gpus import compute_capability, read_gpus
from skillpack.provision.machine import read_head, read_listening, read_os, read_resources
from skillpack.provision.observe import Answer, Observation, without_password
from tests.provision.smi import Cards

H100 = Cards("NVIDIA H100 80GB HBM3", 81559, "9.0", "580.95.05", "13.0", count=2)
ABSENT = Answer(127, err="nvidia-smi: command not found")


def read(cards: Cards, query: Answer | None = None) -> dict:  # type: ignore[type-arg]
    return read_gpus(Answer(0, cards.table()), query or Answer(**cards.query()), Answer(0, cards.listing()))


@pytest.mark.parametrize(
    ("driver", "cuda"), [("535.129.03", "12.2"), ("570.195.03", "12.8"), ("580.95.05", "13.0"), ("610.43.02", "13.3")]
)
def test_every_generation_of_the_header(driver: str, cuda: str) -> None:
    found = read(Cards("NVIDIA L40S", 46068, "8.9", driver, cuda, count=3, used=512))
    assert (found["driver"], found["cuda"], len(found["gpus"])) == (driver, cuda, 3)
    assert found["gpus"][2] == {
        "index": 2,
        "name": "NVIDIA L40S",
        "memory_mib": 46068,
        "used_mib": 512,
        "compute_cap": "8.9",
    }


@pytest.mark.parametrize("word", ["ERR!", "N/A"])
def test_a_cuda_version_that_is_no_number_is_unknown(word: str) -> None:
    found = read(Cards("NVIDIA H100 80GB HBM3", 81559, "9.0", "580.95.05", word))
    assert found["cuda"] is None
    assert found["driver"] == "580.95.05"


def test_a_query_that_fails_leaves_the_table() -> None:
    found = read(H100, Answer(2, 'Field "compute_cap" is not a valid field to query.\n'))
    assert [gpu["compute_cap"] for gpu in found["gpus"]] == ["9.0", "9.0"]
    assert found["gpus"][0]["memory_mib"] == 81559


def test_failure_lines_on_either_stream_are_no_cards() -> None:
    line = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    for answer in (Answer(9, line), Answer(9, "", line), Answer(0, line)):
        found = read_gpus(answer, answer, answer)
        assert (found["gpus"], found["gpu_fault"]["id"]) == ([], "smi.nodriver")
    assert read_gpus(ABSENT, ABSENT, ABSENT)["gpu_fault"]["id"] == "absent"
    assert read_gpus(Answer(124, err="no answer within 30 s"), ABSENT, ABSENT)["gpu_fault"]["id"] == "failed"


def test_unified_memory_is_unknown_not_zero() -> None:
    query = Answer(
        0, "index, name, memory.total [MiB], compute_cap, driver_version\n0, NVIDIA GB10, [N/A], 12.1, 580.95.05\n"
    )
    assert read(Cards("NVIDIA GB10", 0, "12.1", "580.95.05", "13.0"), query)["gpus"][0]["memory_mib"] is None


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("Tesla T4", "7.5"),
        ("NVIDIA L4", "8.9"),
        ("NVIDIA H100 PCIe", "9.0"),
        ("NVIDIA H20", "9.0"),
        ("NVIDIA A100-SXM4-80GB", "8.0"),
        ("NVIDIA A10G", "8.6"),
        ("NVIDIA GeForce RTX 3090", "8.6"),
        ("NVIDIA B200", "10.0"),
        ("NVIDIA GeForce RTX 5090", "12.0"),
        ("Matrox", None),
    ],
)
def test_compute_capability_by_name(name: str, capability: str | None) -> None:
    assert compute_capability(name) == capability


def test_docker_of_a_daemon_that_is_down() -> None:
    down = Answer(
        1,
        "Client:\n Version:    28.2.2\n\nServer:\n",
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.",
    )
    found = read_docker(down, down, down, Answer(1), Answer(0, "/usr/bin/docker\n"))
    assert (found["cli"], found["server"], found["fault"]["id"]) == ("28.2.2", None, "docker.down")


@pytest.mark.parametrize("text", ["", "not json", "[1]", '{"registry-mirrors": 3}'])
def test_any_daemon_json_is_read(text: str) -> None:
    assert isinstance(read_daemon_json(Answer(0, text))["mirrors"], list)


def test_memory_counts_the_cgroup() -> None:
    memory = Answer(0, "MemTotal: 1073741824 kB\nMemAvailable: 536870912 kB\n")
    limited = read_resources(Answer(0, "64\n"), memory, [Answer(0, str(64 * 1024**3))], Answer(0, "800000 100000"))
    assert (limited["free_memory_gib"], limited["cgroup_gib"], limited["cpus"]) == (64.0, 64.0, 8)
    free = read_resources(
        Answer(0, "64\n"), memory, [Answer(0, "max\n"), Answer(0, str(2**63 - 4096))], Answer(0, "max 100000")
    )
    assert (free["free_memory_gib"], free["cgroup_gib"], free["cpus"]) == (512.0, None, 64)
    assert read_resources(Answer(127), Answer(1), [], Answer(1))["free_memory_gib"] is None


def test_ports_addresses_and_the_rest() -> None:
    table = "  sl\n   0: 0100007F:2766 00000000:0000 0A 0 0\n   1: 0100007F:1F90 0100007F:9999 01 0 0\n"
    assert read_listening(table) == [10086]
    assert read_head(Answer(0, "401 0.25"), "u")["reachable"] is True
    assert read_head(Answer(28, "000 0", "timed out"), "u") == {
        "url": "u",
        "reachable": False,
        "seconds": None,
        "why": "timed out",
    }
    assert read_os("ID=\"rocky\"\nPRETTY_NAME='Rocky'\n")["name"] == "Rocky"
    assert without_password("http://me:secret@proxy:3128/x") == "http://***@proxy:3128/x"


@pytest.mark.parametrize(
    "data", [None, [], {}, {"commands": []}, {"commands": {"x": "y"}}, {"commands": {"x": {"rc": "0"}}}]
)
def test_what_is_no_recording_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match=r"commands|rc"):
        Observation.from_dict(data)  # type: ignore[arg-type]


def test_payload_parses_on_old_pythons() -> None:
    """What a plan lays down runs under whatever python3 a server has: 3.8 and later."""
    for program in (PACKAGE / "provision" / "payload").glob("*.py"):
        ast.parse(program.read_text(encoding="utf-8"), feature_version=(3, 8))
