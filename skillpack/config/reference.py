"""Write ``references/keys.md`` of the swarm-configuration skill from the schema and the default files.

``python -m skillpack.config.reference`` writes it, ``--check`` only tells whether it is up to date.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ajet.default_config import kwarg_table
from skillpack.config.keys import KEYLESS_KWARGS, Key, all_keys
from skillpack.files import write_atomically
from skillpack.pack import skills_dir
from skillpack.script import NO, Command, run

HEAD = """\
# All keys

Generated from the schema and the default files (`python -m skillpack.config.reference`); do not edit.
`python3 scripts/config.py explain KEY [FILE]` tells the same of one key, and who set it.

- [Kwargs of AgentJetJob](#kwargs-of-agentjetjob): what can be set when the job is constructed
- [Keys of the ajet tree](#keys-of-the-ajet-tree): everything; a key without a kwarg is set by
  `job.config.<key> = value` after construction, or in the YAML
- [Keys that reach verl](#keys-that-reach-verl): set these below `ajet`, never in verl's own tree

Defaults are those of swarm mode; classic mode's are given where they differ.
"""


def reference() -> str:
    """Return the text of the key reference."""
    keys = all_keys()
    parts = [
        HEAD,
        "\n## Kwargs of AgentJetJob\n\n",
        _table(("Kwarg", "YAML key", "Type", "Default"), map(_kwarg, kwarg_table())),
    ]
    parts.append("\n## Keys of the ajet tree\n")
    sections: dict[str, list[Key]] = {}
    for key in keys.values():
        if not key.is_section:
            sections.setdefault(_section(key.name), []).append(key)
    for name, members in sections.items():
        about = keys[name].description
        parts.append(f"\n### {name}\n\n{about}\n\n")
        parts.append(_table(("Key", "Default", "Takes", "What it does"), (_row(key, name) for key in members)))
    parts.append("\n## Keys that reach verl\n\n")
    parts.append("The engine copies these when it starts; what stands at the right is overwritten.\n\n")
    copied = ((f"`{key.name}`", ", ".join(f"`{target}`" for target in key.verl)) for key in keys.values() if key.verl)
    parts.append(_table(("ajet", "verl"), copied))
    return "".join(parts)


def _section(name: str) -> str:
    """Return the section that a key is listed under: the first below ``ajet``, or ``ajet`` itself."""
    parts = name.split(".")
    return ".".join(parts[:2]) if len(parts) > 2 else "ajet"


def _kwarg(name: str) -> tuple[str, ...]:
    row = kwarg_table()[name]
    if row["key"] is None:
        special = KEYLESS_KWARGS[name]
        return (f"`{name}`", f"none: {special['description']}", row["type"], _shown(special["default"]))
    return (f"`{name}`", f"`{row['key']}`", row["type"], _shown(all_keys()[row["key"]].default("swarm")))


def _row(key: Key, section: str) -> tuple[str, ...]:
    swarm, classic = key.default("swarm"), key.default("classic")
    default = _shown(swarm) if swarm == classic else f"{_shown(swarm)} (classic {_shown(classic)})"
    takes = key.takes + (f" ({key.schema['x-otherwise']})" if "x-otherwise" in key.schema else "")
    kwarg = f" Kwarg `{key.kwarg}`." if key.kwarg else ""
    return (f"`{key.name.removeprefix(f'{section}.')}`", default, takes, key.description + kwarg)


def _shown(value: Any) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _table(head: tuple[str, ...], rows: Any) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


@click.command(
    cls=Command, example="python -m skillpack.config.reference --check", exit_codes={NO: "the file is out of date"}
)
@click.option("--check", is_flag=True, help="Write nothing.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Another file than the skill's.")
@click.pass_context
def main(context: click.Context, check: bool, out: Path | None) -> None:
    """Write the key reference of the swarm-configuration skill."""
    path = out or skills_dir() / "swarm-configuration" / "references" / "keys.md"
    text = reference()
    if check:
        context.exit(0 if path.is_file() and path.read_text(encoding="utf-8") == text else NO)
    write_atomically(path, text)
    click.echo(path)


if __name__ == "__main__":
    run(main)
