"""What every command line of the pack does when something is not as it should be."""

from __future__ import annotations

import click
import pytest

from skillpack.script import UNAVAILABLE, Command, run


@click.command(cls=Command)
@click.argument("module")
def import_it(module: str) -> None:
    """Import a module."""
    __import__(module)


def run_with(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["script", *arguments])
    with pytest.raises(SystemExit) as ended:
        run(import_it)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_a_package_of_an_extra_that_is_missing_is_named_with_what_brings_it(monkeypatch, capsys):
    assert run_with(monkeypatch, "a_package_that_nobody_has.part") == UNAVAILABLE
    out, err = capsys.readouterr()
    assert out == ""
    assert "a_package_that_nobody_has, which is not installed" in err
    assert "pip install 'agentjet-skills[all]'" in err


def test_a_module_of_the_pack_itself_that_is_missing_is_a_fault_and_shown_as_one(monkeypatch):
    monkeypatch.setattr("sys.argv", ["script", "skillpack.no_such_module"])
    with pytest.raises(ModuleNotFoundError):
        run(import_it)
