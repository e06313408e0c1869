"""A plan: the exact commands that take a machine to an installation, in order."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from skillpack.provision.data import FOLDER as DATA
from skillpack.provision.expressions import holds, render

FOLDER = Path(__file__).resolve().parent
ROOT = "sudo -n "
HEREDOC = "AGENTJET_FILE_END"
OCCUPIED = "is there already and was not made by a plan in this folder: it is left alone"


class Step(NamedTuple):
    """One step: shell texts for bash with ``-euo pipefail``, and what a person should know first.

    ``check`` exits 0 when the step's result is there already; ``verify`` when the step worked; ``existed``
    when what ``undo`` would take away was there before the step: then it is not undone. ``minutes`` and
    ``disk_gib`` are estimates. ``signatures`` says which known failures to look for.
    """

    id: str
    title: str
    why: str
    check: str
    run: str
    verify: str
    undo: str
    minutes: float
    disk_gib: float
    signatures: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Files that the step lays down; it does nothing else then."""
    existed: str = ""
    refusal: str = ""
    """What to say instead of running the step over something that existed; empty: it is run all the same."""

    @property
    def undoes(self) -> bool:
        """Whether there is anything to take back."""
        return self.undo != "true"

    @property
    def root(self) -> bool:
        """Whether the step uses sudo."""
        return ROOT in self.run and not self.files


class Plan(NamedTuple):
    """Steps and the files that they lay down (path → content), for one recipe and one set of answers."""

    recipe: str
    title: str
    workdir: str
    answers: dict[str, Any]
    chosen: dict[str, Any]
    steps: tuple[Step, ...]
    files: dict[str, str]

    @property
    def digest(self) -> str:
        """A name for the questions that this plan answers: recipe, folder and answers."""
        told = json.dumps([self.recipe, self.workdir, self.answers], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return {**self._asdict(), "steps": [step._asdict() for step in self.steps]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """Return a plan that ``to_dict`` wrote. Raises KeyError or TypeError on anything else."""
        lists = ("signatures", "files")
        steps = tuple(Step(**{**step, **{name: tuple(step[name]) for name in lists}}) for step in data["steps"])
        return cls(**{**data, "steps": steps})


def build(context: Mapping[str, Any]) -> Plan:
    """Return the plan of a recipe. ``context`` holds recipe, r, a, m, c, s and workdir."""
    recipe, workdir = context["r"], context["workdir"]
    files: dict[str, str] = {}
    helpers: dict[str, str] = {}
    steps = []
    for entry in recipe["steps"]:
        if not holds(str(entry.get("when", "true")), context):
            continue
        if "files" in entry:
            made = {f"{workdir}/{name}": render(template(source), context) for name, source in entry["files"].items()}
            files.update(made)
            steps.append(_file_step(entry, made, context))
            continue
        helpers.update({f"{workdir}/{name}": helper(name) for name in entry.get("helpers", ())})
        steps.append(_step(entry, context))
    if helpers:
        names = ", ".join(sorted(Path(path).name for path in helpers))
        lay = {"id": "helpers", "title": f"Lay down {names}", "why": "Later steps run them; they need Python alone."}
        steps.insert(0, _file_step(lay, helpers, context))
    files.update(helpers)
    return Plan(
        context["recipe"], recipe["title"], workdir, dict(context["a"]), dict(context["c"]), tuple(steps), files
    )


def template(name: str) -> str:
    """Return the text of a template for a file that a plan lays down."""
    return (FOLDER / "files" / name).read_text(encoding="utf-8")


def helper(name: str) -> str:
    """Return the text of a helper: a program for a foreign interpreter, or a table that it reads."""
    folder = FOLDER / "payload" if name.endswith(".py") else DATA
    return (folder / name).read_text(encoding="utf-8")


def _step(entry: Mapping[str, Any], context: Mapping[str, Any]) -> Step:
    def text(key: str) -> str:
        return render(str(entry[key]), context).strip()

    makes = text("makes") if "makes" in entry else ""
    return Step(
        entry["id"],
        text("title"),
        text("why"),
        text("check"),
        text("run"),
        text("verify"),
        text("undo"),
        float(text("minutes")),
        float(text("disk_gib")),
        tuple(entry.get("signatures", ())),
        existed=taken(makes) if makes else text("existed") if "existed" in entry else "",
        refusal=f"{makes} {OCCUPIED}" if makes else "",
    )


def taken(path: str) -> str:
    """Return a shell test for a path that is a file, or a folder with something in it."""
    quoted = shlex.quote(path)
    return f'[ -e {quoted} ] && {{ [ ! -d {quoted} ] || [ -n "$(ls -A {quoted})" ]; }}'


def _file_step(entry: Mapping[str, Any], files: Mapping[str, str], context: Mapping[str, Any]) -> Step:
    sums = "\n".join(f"{hashlib.sha256(content.encode()).hexdigest()}  {path}" for path, content in files.items())
    check = f"sha256sum --check --status <<'{HEREDOC}'\n{sums}\n{HEREDOC}"
    writes = [f"mkdir -p {shlex.quote(context['workdir'])}"]
    for path, content in files.items():
        body = content if content.endswith("\n") else content + "\n"
        if HEREDOC in body.splitlines():
            raise ValueError(f"{path} holds the line {HEREDOC}")
        quoted = shlex.quote(path)
        writes.append(f"cat > {quoted}.new <<'{HEREDOC}'\n{body}{HEREDOC}\nmv {quoted}.new {quoted}")
    undo = "rm -f " + " ".join(shlex.quote(path) for path in files)
    existed = " || ".join(f"[ -e {shlex.quote(path)} ]" for path in files)
    title, why = (render(entry[key], context) for key in ("title", "why"))
    return Step(entry["id"], title, why, check, "\n".join(writes), check, undo, 0.0, 0.0, (), tuple(files), existed)
