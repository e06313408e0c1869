"""The command line of ``blueprint.py``: write a blueprint, check it, show what is read from it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from skillpack.script import NO, YES, BadInput, Group, emit, json_option


@click.group("blueprint", cls=Group, epilog="scripts/blueprint.py lint blueprint.md")
def blueprint_group() -> None:
    """Write, check and read experiment blueprints."""


@blueprint_group.command(
    "new",
    example=(
        'scripts/blueprint.py new --purpose "lr 1e-6" --codebase-dir ~/AgentJet --venv-exe ~/venv/bin/python \\\n'
        '  --yaml ./job.yaml --command "ajet --conf ./job.yaml" --result-dir ./results/lr --max-time 24h --out lr.md'
    ),
    exit_codes={NO: "the file is there already"},
)
@click.option("--purpose", help="What the experiment shall find out.")
@click.option("--codebase-dir", help="Where the code lies; commands run there.")
@click.option("--venv-exe", required=True, help="The python executable of the training environment.")
@click.option("--yaml", "yaml_path", help="The configuration.")
@click.option("--command", "commands", multiple=True, help="The launch command; swarm: one per client.")
@click.option("--server-command", default="", help="Swarm: how to start the server here.")
@click.option("--server-url", default="", help="Swarm: where a server answers that others run.")
@click.option("--result-dir", required=True, help="Where everything about the run is kept.")
@click.option("--max-time", required=True, help="24h, 90min, 1.5 hours, or none.")
@click.option("--notes", default="", help="Anything else.")
@click.option("--from-job", type=click.Path(path_type=Path), help="Swarm: a client script; fills in what is not given.")
@click.option("--out", type=click.Path(path_type=Path), help="The file to write (default: print it).")
@click.option("--force", is_flag=True, help="Replace the file.")
@json_option
def new(out: Path | None, force: bool, from_job: Path | None, as_json: bool, **given: object) -> None:
    """Write a blueprint from flags; for swarm also from a client script with an AgentJetJob."""
    from skillpack.blueprint.paths import FILE, at_home, kind
    from skillpack.blueprint.render import Fields, from_job_script, render_blueprint
    from skillpack.files import write_atomically

    if from_job:
        from_job = at_home(str(from_job)).absolute()
        if kind(from_job) != FILE:
            raise BadInput(f"{from_job} {kind(from_job)}", expected="a Python file that builds an AgentJetJob")
        folder = given.get("codebase_dir")
        known = from_job_script(from_job, at_home(str(folder)).absolute() if folder else None)
        if given.get("server_command"):
            known["server_url"] = ""  # its own server's, by the port of the command
        if known.pop("mode") == "swarm" and not (given["server_command"] or given["server_url"] or known["server_url"]):
            raise BadInput(
                f"{from_job} is a swarm client, and nothing says where its server is",
                expected='--server-command "ajet-swarm start --swarm-port 10086" to start it here, '
                "or --server-url http://HOST:10086 for one that runs",
            )
        given |= {name: value for name, value in known.items() if not given.get(name)}
    flags = {"purpose": "--purpose", "codebase_dir": "--codebase-dir", "yaml_path": "--yaml", "commands": "--command"}
    missing = [flag for name, flag in flags.items() if not given.get(name)]
    if missing:
        raise BadInput(f"missing: {', '.join(missing)}", hint="scripts/blueprint.py new --help")
    text = render_blueprint(Fields(**given))  # type: ignore[arg-type]
    if out is None:
        emit({"blueprint": text, "path": None, "written": False}, as_json=as_json, text=text.rstrip("\n"))
        return
    if out.exists() and not force:
        emit(
            {"blueprint": text, "path": str(out), "written": False},
            as_json=as_json,
            text=f"{out} is there already; --force replaces it",
        )
        sys.exit(NO)
    write_atomically(out, text)
    emit(
        {"blueprint": text, "path": str(out), "written": True},
        as_json=as_json,
        text=f"written to {out}; next: scripts/blueprint.py lint {shlex.quote(str(out))}",
    )


@blueprint_group.command(
    "lint",
    example="scripts/blueprint.py lint blueprint.md --json",
    exit_codes={YES: "nothing would make the run fail", NO: "something would"},
)
@click.argument("blueprint", type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@click.option("--host", metavar="[USER@]HOST", help="Look for the files there by ssh, as run.py start --host will.")
@json_option
def lint(blueprint: Path, strict: bool, host: str | None, as_json: bool) -> None:
    """Check everything that a blueprint names against this machine, before anything is started."""
    from skillpack.blueprint.lint import FAIL, WARN, lint_blueprint
    from skillpack.blueprint.model import read_blueprint

    plan = read_blueprint(blueprint)
    checks = lint_blueprint(plan, host)
    bad = (FAIL, WARN) if strict else (FAIL,)
    ok = not any(check.verdict in bad for check in checks)
    counts = {verdict: sum(check.verdict == verdict for check in checks) for verdict in ("ok", WARN, FAIL)}
    document = {"path": str(plan.source), "ok": ok, "counts": counts, "checks": [check.as_json() for check in checks]}
    lines = []
    for check in sorted(checks, key=lambda one: ("fail", "warn", "ok").index(one.verdict)):
        lines.append(f"{check.verdict:<4}  {check.id}: {check.message}")
        if check.mend and check.verdict != "ok":
            lines.append(f"      try: {check.mend}")
    emit(document, as_json=as_json, text="\n".join(lines))
    sys.exit(YES if ok else NO)


@blueprint_group.command("interpreter", example='PYTHON="$(python3 scripts/blueprint.py interpreter)"')
@json_option
def interpreter(as_json: bool) -> None:
    """Print the interpreter of this pack, whose ajet is the reference engine: exp_venv_exe of a rehearsal."""
    emit({"python": sys.executable}, as_json=as_json, text=sys.executable)


@blueprint_group.command("show", example="scripts/blueprint.py show blueprint.md --json")
@click.argument("blueprint", type=click.Path(path_type=Path))
@json_option
def show(blueprint: Path, as_json: bool) -> None:
    """Show what is read from a blueprint, however it is written."""
    from skillpack.blueprint.model import read_blueprint

    document = read_blueprint(blueprint).as_json()
    lines = []
    for name, value in document.items():
        values = value if isinstance(value, list) else [value]
        lines += [f"{name}: {one}" for one in values if one not in (None, "")]
    emit(document, as_json=as_json, text="\n".join(lines))
