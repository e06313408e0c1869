"""Write ``references/failures.md`` of the run skills from the signatures: ``python -m skillpack.triage.reference``."""

from __future__ import annotations

from skillpack.files import write_atomically
from skillpack.pack import skills_dir
from skillpack.triage.health import checks
from skillpack.triage.signatures import signatures

SKILLS = ("run-classic", "run-swarm")
HEAD = """# What triage knows

Made from `skillpack/triage/signatures.yaml` and `health.yaml`. `root` is a cause; `aftermath` follows from one and is
named only where no root is found; `warning` ends no run. What a training step follows was survived and is no cause.
"""


def failures() -> str:
    """Return the reference: a table of signatures with cause and first remedy, and one of the health checks."""
    lines = [HEAD, "| id | role | kind | cause | first remedy |", "| --- | --- | --- | --- | --- |"]
    for one in signatures().values():
        if one.role != "end":
            remedy = one.remedy[0] if one.remedy else {"do": ""}
            first = remedy.get("do") or f"`{remedy['key']}`" + (f": {remedy['why']}" if remedy.get("why") else "")
            lines.append(f"| {one.id} | {one.role} | {one.kind} | {_cell(one.cause)} | {_cell(first)} |")
    lines += [
        "",
        "## Health, from the metrics",
        "",
        "| id | metric | window | not well | meaning |",
        "| --- | --- | --- | --- | --- |",
    ]
    for check in checks():
        limit = {
            "finite": "NaN or infinity",
            "above": f"mean above {check.get('limit')}",
            "below": f"mean below {check.get('limit')}",
            "growth": f"more than {check.get('factor')} times the first steps' mean",
            "shrink": f"less than {check.get('factor')} times the first steps' mean",
            "equal": "all equal",
            "flat": "spread of at most 1 % of the scale",
        }[check["kind"]]
        remark = "" if check["fails"] else " (remark only)"
        lines.append(
            f"| {check['id']} | {', '.join(check['keys'])} | {check['window']} | {limit}{remark} | {check['meaning']} |"
        )
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    for skill in SKILLS:
        write_atomically(skills_dir() / skill / "references" / "failures.md", failures())
