"""What counts as one JSON document, and as a document of its schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from skillpack.validate.evals import CaseResult
from skillpack.validate.evals.judge import one_document

Try = Callable[..., CaseResult]


@pytest.mark.parametrize("text", ['{"a": 1}\n', "\n [1, 2]\n\n", '"text"', "3", "null"])
def test_one_document_with_blanks_around_it(text: str) -> None:
    assert one_document(text) == json.loads(text)


@pytest.mark.parametrize("text", ["", "  \n", "{", "done", "{} {}", "{}\n{}", "{} done", "ok {}", "Infinity", "[NaN]"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="JSON"):
        one_document(text)


def schema(skill: Path, document: object, name: str = "number.schema.json") -> str:
    (skill / "evals" / name).write_text(json.dumps(document))
    return f"evals/{name}"


def test_the_place_of_the_fault_is_named(try_case: Try, skill: Path) -> None:
    path = schema(skill, {"properties": {"n": {"maximum": 3}}})
    assert try_case("", "--n", "3", schema=path).why == ""
    result = try_case("", "--n", "4", schema=path)
    assert result.why == "invalid against number.schema.json: $.n: 4 is greater than the maximum of 3"


def test_a_schema_may_refer_to_its_neighbour_and_to_nothing_else(try_case: Try, skill: Path) -> None:
    schema(skill, {"maximum": 3}, "small.schema.json")
    path = schema(skill, {"properties": {"n": {"$ref": "small.schema.json"}}})
    assert "4 is greater than the maximum of 3" in try_case("", "--n", "4", schema=path).why
    path = schema(skill, {"$ref": "http://127.0.0.1:9/remote.json"})
    assert try_case("", schema=path).why.startswith("the schema number.schema.json cannot be used: Unresolvable")
    path = schema(skill, {"type": "numbre"})
    assert "the schema number.schema.json cannot be used: 'numbre' is not valid" in try_case("", schema=path).why


def test_a_document_that_was_written_to_a_file_is_judged_there(try_case: Try, skill: Path) -> None:
    path = schema(skill, {"properties": {"n": {"maximum": 3}}})
    do = """
    open('out.json', 'w').write('{"n": 4}')
    print(json.dumps({"written_to": os.path.abspath('out.json'), "characters": 8}))
    sys.exit()
    """
    assert "4 is greater than the maximum of 3" in try_case(do, schema=path).why
    gone = 'print(json.dumps({"written_to": "/etc/hostname", "characters": 8})); sys.exit()'
    assert "its JSON names the file /etc/hostname, which does not exist" in try_case(gone, schema=path).why


def test_help_must_say_what_show_how_and_list_codes(try_case: Try, skill: Path) -> None:
    script = skill / "scripts" / "number.py"
    script.write_text("import argparse; argparse.ArgumentParser().parse_args()")
    from skillpack.validate.evals import run_scripts

    helped = run_scripts([skill])[skill][0]
    assert helped.why == ""
    assert helped.advice == (
        "it does not say what the script does; it shows no example; it does not list the exit codes"
    )
