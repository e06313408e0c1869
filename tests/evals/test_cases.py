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
        (
            "cases: [{name: a, script: number.py, fixture: {run: [scripts/number.py], ready: '('}}]",
            "case 'a': fixture.ready '(' is no regular expression",
        ),
    ],
)
def test_a_bad_file_is_told(skill: Path, text: str, why: str) -> None:
    (skill / "evals" / "scripts.yaml").write_text(text)
    *implicit, result = run_scripts([skill])[skill]
    assert all(case.ok for case in implicit)
    assert (result.case, result.ok, result.exit_code) == ("evals/scripts.yaml", False, None)
    assert why in result.why


GOOD = "cases:\n  - name: good\n    script: number.py\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (GOOD + "  - name: bad\n    script: [\n", 6),
        (GOOD + "  - name: bad\n    script: number.py\n    timeout: soon\n", 6),
        (GOOD + "  - name: bad\n    script: number.py\n    argz: []\n", 4),
        (GOOD + "\n  # the next\n  - script: other.py\n    name: bad\n", 6),
        (GOOD + "  - name: bad\n    script: number.py\n    args: [--n, 1, [2]]\n", 6),
        (GOOD + "  - name: bad\n    script: number.py\n    files:\n      one: x\n      two: 5\n", 8),
        (GOOD + GOOD.partition("\n")[2], 4),
        ("", 1),
    ],
)
def test_the_line_of_the_fault_is_told(skill: Path, text: str, line: int) -> None:
    (skill / "evals" / "scripts.yaml").write_text(text)
    result = run_scripts([skill])[skill][-1]
    assert (result.case, result.file, result.line) == ("evals/scripts.yaml", "evals/scripts.yaml", line)


def test_each_case_knows_where_it_is_written_down(skill: Path) -> None:
    (skill / "evals" / "scripts.yaml").write_text(GOOD + "\n  - script: number.py\n    name: other\n    exit_code: 9\n")
    places = [(result.case, result.file, result.line) for result in run_scripts([skill])[skill]]
    assert places == [
        ("number.py help", "scripts/number.py", 1),
        ("number.py unknown flag", "scripts/number.py", 1),
        ("good", "evals/scripts.yaml", 2),
        ("other", "evals/scripts.yaml", 5),
    ]


def test_what_is_no_file_is_told(skill: Path) -> None:
    os.mkfifo(skill / "evals" / "scripts.yaml")
    assert "expected a file" in run_scripts([skill])[skill][-1].why


def test_bytes_that_are_no_text_are_told(skill: Path) -> None:
    (skill / "evals" / "scripts.yaml").write_bytes(b"cases: \xff\xfe")
    assert "cannot be read as UTF-8 text" in run_scripts([skill])[skill][-1].why


def test_numbers_need_no_quotes(skill: Path) -> None:
    (skill / "evals" / "scripts.yaml").write_text("cases: [{name: a, script: number.py, args: [--n, 5], env: {A: 1}}]")
    assert run_scripts([skill])[skill][-1].why == ""
