"""Triage on fragments of logs: the root cause of each failing one, and no false alarm on the healthy ones."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
import yaml

from skillpack.triage.facts import Facts
from skillpack.triage.judge import Verdict, judge
from skillpack.triage.remedy import config_lookup
from skillpack.triage.scan import scan_log

CORPUS = Path(__file__).parent / "corpus"
FAILING: dict[str, Any] = yaml.safe_load((CORPUS / "failing.yaml").read_text(encoding="utf-8"))
HEALTHY: dict[str, Any] = yaml.safe_load((CORPUS / "healthy.yaml").read_text(encoding="utf-8"))
CONFIG = """
ajet:
  data: {train_batch_size: 33, max_prompt_length: 3000, max_response_length: 15000}
  rollout: {gpu_memory_utilization: 0.85, max_model_len: 16000}
"""


def triage(log: Path, facts: Facts, config: Path | None = None) -> Verdict:
    return judge({log.name: scan_log(log)}, facts, config_lookup(config))


@pytest.mark.parametrize("name", FAILING)
def test_the_root_cause_comes_first(name: str, tmp_path: Path) -> None:
    expected = FAILING[name]
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    facts = Facts(ended=expected.get("ended"), exit_code=expected.get("exit_code"), silent=1.0)
    verdict = triage(CORPUS / "failing" / f"{name}.log", facts, config)
    assert verdict.verdict == expected["verdict"]
    assert not verdict.well
    first = verdict.causes[0] if verdict.causes else {"id": None}
    assert first["id"] == expected["cause"]
    for key in ("stage", "confidence", "kind"):
        if key in expected:
            assert first[key] == expected[key]
    if "health" in expected:
        assert expected["health"] in [finding.id for finding in verdict.health if finding.fails]
    if "line_text" in expected:
        assert first["evidence"][0]["text"] == expected["line_text"]
    values = {remedy.get("key"): remedy.get("value") for remedy in first.get("remedy", [])}
    for key, value in expected.get("remedy", {}).items():
        assert values[key] == value


@pytest.mark.parametrize("name", HEALTHY)
def test_scary_words_raise_no_alarm(name: str) -> None:
    verdict = triage(CORPUS / "healthy" / f"{name}.log", Facts(silent=1.0))
    assert verdict.verdict == HEALTHY[name]["verdict"]
    assert verdict.well
    assert verdict.causes == []


@pytest.mark.parametrize("name", ["oom_in_update", "user_bug_in_workflow", "just_stops"])
def test_an_archive_reads_the_same(name: str, tmp_path: Path) -> None:
    packed = tmp_path / f"{name}.log.gz"
    packed.write_bytes(gzip.compress((CORPUS / "failing" / f"{name}.log").read_bytes()))
    verdict = triage(packed, Facts(ended=True))
    assert verdict.verdict == FAILING[name]["verdict"]
    assert (verdict.causes[0]["id"] if verdict.causes else None) == FAILING[name]["cause"]


def test_evidence_names_the_line() -> None:
    log = CORPUS / "failing" / "oom_in_update.log"
    evidence = triage(log, Facts()).causes[0]["evidence"][0]
    line = log.read_text(encoding="utf-8").split("\n")[evidence["line"] - 1]
    assert "Tried to allocate 18.55 GiB" in line
    assert evidence["who"] == "WorkerDict pid=41877"
