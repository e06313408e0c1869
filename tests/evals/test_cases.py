"""A file of cases that cannot be used is one failure that says where and why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillpack.validate.evals import run_scripts


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("cases: [", "not YAML: while parsing a flow node"),
        ("", "$: None is not of type 'object'"),
        ("a: " + "[" * 20_000, "not YAML: "),
        (
            "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]),
            "its aliases expand to more than anybody would write",
        ),
        ("cases: &c [*c]", "cases[0]: "),
        ("cases: [{name: a, script: number.py, schema: /etc/hostname}]", "there is no schema '/etc/hostname'"),
        ("cases: {}", "cases: {} is not of type 'array'"),
        ("cases: [{name: a}]", "cases[0]: 'script' is a required property"),
        ("cases: [{name: a, script: number.py, timeout: soon}]", "cases[0].timeout: 'soon' is not of type 'number'"),
        ("cases: [{name: a, script: number.py, argz: []}]", "'argz' was unexpected"),
        ("cases: [{name: a, script: other.py}]", "case 'a': 'scripts/other.py' does not exist in the skill"),
        ("cases: [{name: a, script: number.py, stubs: [../..]}]", "case 'a': '../..' does not exist in the skill"),
        ("cases: [{name: a, script: number.py, schema: no.json}]", "case 'a': there is no schema 'no.json'"),
        ("cases: [{name: a, script: number.py}, {name: a, script: number.py}]", "two cases are called 'a'"),
        (
            "cases: [{name: a, script: number.py, fixture: {run: [scripts/number.py], ready: up}}]",
            "case 'a': fixture.ready 'up' has no group",
        ),
    ],
)
def test_a_bad_file_is_told(skill: Path, text: str, why: str) -> None:
    (skill / "evals" / "scripts.yaml").write_text(text)
    *implicit, result = run_scripts([skill])[skill]
    assert all(case.ok for case in implicit)
    assert (result.case, result.ok, result.exit_code) == ("evals/scripts.yaml", False, None)
    assert why in result.why


def test_what_is_no_file_is_told(skill: Path) -> None:
    os.mkfifo(skill / "evals" / "scripts.yaml")
    assert "expected a file" in run_scripts([skill])[skill][-1].why


def test_bytes_that_are_no_text_are_told(skill: Path) -> None:
    (skill / "evals" / "scripts.yaml").write_bytes(b"cases: \xff\xfe")
    assert "cannot be read as UTF-8 text" in run_scripts([skill])[skill][-1].why


def test_numbers_need_no_quotes(skill: Path) -> None:
    (skill / "evals" / "scripts.yaml").write_text("cases: [{name: a, script: number.py, args: [--n, 5], env: {A: 1}}]")
    assert run_scripts([skill])[skill][-1].why == ""
