from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from skillpack.pack import SCHEMAS
from skillpack.validate import rules as catalogue
from skillpack.validate.pages import stale
from skillpack.validate.rules import rules

ROOT = Path(catalogue.__file__).parents[2]


def test_the_catalogue_keeps_its_schema_and_ids_are_unique():
    entries = yaml.safe_load(catalogue.PATH.read_text(encoding="utf-8"))
    jsonschema.validate(entries, json.loads((SCHEMAS / "validate-rules.schema.json").read_text()))
    assert len({entry["id"] for entry in entries}) == len(entries)


def test_the_pages_are_as_the_catalogue_says():
    assert stale(ROOT / "docs" / "rules") == [], "run: python -m skillpack.validate.pages"


def test_every_rule_is_used_by_the_validator():
    parts = [
        *(ROOT / "skillpack" / "validate").rglob("*.py"),
        ROOT / "skillpack" / "validate" / "safety.yaml",
        SCHEMAS / "frontmatter.schema.json",
    ]
    source = "\n".join(path.read_text(encoding="utf-8") for path in parts)
    assert [name for name in rules() if f'"{name}"' not in source and f"rule: {name}\n" not in source] == []


@pytest.mark.parametrize("name", rules())
def test_each_rule_can_be_explained(name, run):
    told = run("validate", "--explain", name)
    assert told.exit_code == 0
    assert rules()[name].means in told.output
    assert rules()[name].mend in told.output


def test_the_figures_are_about_rules_that_exist():
    measured = yaml.safe_load((ROOT / "skillpack" / "validate" / "measured.yaml").read_text(encoding="utf-8"))["rules"]
    assert set(measured) <= set(rules())
    assert all(seen["right"] <= seen["read"] <= seen["found"] for seen in measured.values())


def test_explain_prints_what_a_rule_means_and_suggests_near_ids(run):
    told = run("validate", "--explain", "yaml-colon")
    assert told.exit_code == 0
    assert "double quotes" in told.output
    assert json.loads(run("validate", "--explain", "yaml-colon", "--json").output)["severity"] == "error"
    every = run("validate", "--explain", "all").output.splitlines()
    assert [line.split()[0] for line in every] == list(rules())
    assert "--explain all" in run("validate", "--explain", "zzz").stderr
    wrong = run("validate", "--explain", "yaml-collon")
    assert wrong.exit_code == 2
    assert "--explain yaml-colon" in wrong.stderr
