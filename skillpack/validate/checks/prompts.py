"""Where a Python script asks a person, and whether it does so without having been told to."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

ASKS = frozenset(
    {
        "input",
        "getpass",
        "getpass.getpass",
        "click.prompt",
        "click.confirm",
        "click.pause",
        "typer.prompt",
        "typer.confirm",
        "Prompt.ask",
        "Confirm.ask",
        "questionary.confirm",
    }
)
_WANTED = re.compile(r"interactive|wizard|(?:^|_)(?:ask|prompt)", re.IGNORECASE)
"""Names in a condition by which somebody asked to be asked."""

MAX_CALLERS = 50


def question(text: str, tree: ast.Module) -> tuple[str, int] | None:
    """Return the first call by which a script asks without having been told to, and its line; None if there is none.

    A question counts as wanted where it stands in a branch on ``interactive`` or the like, or in a
    function that is called from such branches only. A script that looks for a terminal has thought of there being none.
    """
    if "isatty" in text or not any(name.rpartition(".")[2] in text for name in ASKS):
        return None
    above: dict[ast.AST, ast.AST] = {}
    called: defaultdict[str, list[ast.AST]] = defaultdict(list)
    asked: list[tuple[ast.Call, str]] = []
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            above[child] = node
        if isinstance(node, ast.Call):
            name = _dotted(node.func)
            called[name.rpartition(".")[2]].append(node)
            if name in ASKS:
                asked.append((node, name))
    for node, name in sorted(asked, key=lambda found: found[0].lineno):
        if not _wanted(node, above, called, set()):
            return f"{name}()", node.lineno
    return None


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id])) if isinstance(node, ast.Name) else ".".join(reversed(parts))


def _wanted(node: ast.AST, above: dict[ast.AST, ast.AST], called: dict[str, list[ast.AST]], seen: set[str]) -> bool:
    """Tell whether a node is only reached where the script was told to ask."""
    while (parent := above.get(node)) is not None:
        if isinstance(parent, ast.If | ast.IfExp | ast.While) and node is not parent.test:
            if any(_WANTED.search(name) for name in _names_in(parent.test)):
                return True
        elif isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            if parent.name in seen or len(seen) > MAX_CALLERS:
                return False
            seen.add(parent.name)
            callers = called.get(parent.name, [])
            return 0 < len(callers) <= MAX_CALLERS and all(_wanted(caller, above, called, seen) for caller in callers)
        node = parent
    return False


def _names_in(test: ast.expr) -> Iterator[str]:
    for node in ast.walk(test):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
