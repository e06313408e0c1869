"""The graph of a skill's files: links, anchors, files that are named and files that are not."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from skillpack.validate.checks.commands import SHELLS
from skillpack.validate.checks.markdown import Link, scan
from skillpack.validate.checks.skill import Skill
from skillpack.validate.problems import Problem, problem

_SCHEME = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*:|^//")
_PLACEHOLDER = re.compile(r"[{}<>$*|]|\.\.\.|…")
_PARTS = "scripts|references|assets|templates|examples|agents|evals"
_MENTION = re.compile(
    rf"(?P<before>[^\s`'\"(\[,;=]*?)(?P<path>\b(?:{_PARTS})/(?:[\w.+-]+/)*[\w+-]+(?:\.[\w+-]+)*\.[A-Za-z]\w{{0,5}})(?![\w/*<{{\[])"
)
_OWN_FOLDER = re.compile(r"(?:^|[/}\])>])$|\./$")
_STARTED = re.compile(
    r"(?:python[\d.]*|bash|sh|node|uv run|deno run|ruby|perl|\b[Rr]un|\b[Ee]xecute|[$>]\s*)\W{0,3}(?:\S+\s+)?$"
)


@dataclass(frozen=True, slots=True)
class Mention:
    """A file named in a text: path from the skill's folder, line (from 0), and whether it is to be started."""

    path: str
    line: int
    started: bool


def check(skill: Skill) -> Iterator[Problem]:
    """Yield problems of links, anchors, files named and not there, and files there and not named."""
    main = skill.folder.file_name
    documents = [file for file in skill.folder.files if file.endswith(".md") and file.count("/") <= 2 and file != main]
    pages = [main, *(file for file in documents if file.startswith("references/") or "/" not in file)]
    reached: dict[str, set[str]] = {}
    for page in pages:
        text, first = (skill.body, skill.body_line) if page == main else (skill.text(page).replace("\r\n", "\n"), 0)
        reached[page] = set()
        yield from _check_links(skill, page, text, first, reached[page])
        yield from _check_mentions(skill, page, text, first, reached[page])
    yield from _check_reach(skill, main, reached)


def _check_links(skill: Skill, page: str, text: str, first: int, reached: set[str]) -> Iterator[Problem]:
    markdown = scan(text)
    for link in markdown.links:
        target, _, anchor = link.target.partition("#")
        if _SCHEME.match(link.target) or _PLACEHOLDER.search(link.target) or target.startswith("/"):
            continue
        line = first + link.line + 1
        if not target:
            if anchor and unquote(anchor).lower() not in markdown.anchors():
                yield problem("anchor-missing", f"#{anchor}", line=line, file=page)
            continue
        file = _resolve(skill, page, unquote(target.partition("?")[0]))
        if file is None:
            yield from _broken(skill, page, link, line)
            continue
        reached.add(file)
        if anchor and file.endswith(".md"):
            body = skill.body if file == skill.folder.file_name else skill.text(file).replace("\r\n", "\n")
            if unquote(anchor).lower() not in scan(body).anchors():
                yield problem("anchor-missing", link.target, line=line, file=page)


def _resolve(skill: Skill, page: str, target: str) -> str | None:
    """Return the skill's file or folder that a link on a page leads to, with its exact case, or None."""
    for base in (posixpath.dirname(page), ""):
        path = posixpath.normpath(posixpath.join(base, target))
        if path in _paths(tuple(skill.folder.files)):
            return path
    return None


@lru_cache(maxsize=4)
def _paths(files: tuple[str, ...]) -> frozenset[str]:
    """Return files and all folders that they lie in."""
    found = {"."}
    for file in files:
        while file:
            found.add(file)
            file = posixpath.dirname(file)
    return frozenset(found)


def _broken(skill: Skill, page: str, link: Link, line: int) -> Iterator[Problem]:
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(link.target.partition("#")[0])))
    if path.startswith(".."):
        yield problem("link-outside", link.target, line=line, file=page)
        return
    looks_like_file = "." in posixpath.basename(path) or "/" in path
    if looks_like_file:
        rule = "script-missing" if path.startswith("scripts/") else "link-missing"
        yield problem(rule, link.target, line=line, file=page)


def mentions(skill: Skill, text: str) -> Iterator[Mention]:
    """Yield the skill's own files that a text names, as far as their paths say so."""
    for number, line in enumerate(text.split("\n")):
        if "/" not in line:
            continue
        for match in _MENTION.finditer(line):
            before = match["before"]
            own = not before or _OWN_FOLDER.search(before) or before.endswith(f"{skill.folder.name}/")
            if not own or "://" in before or (before.endswith("/") and _is_other_place(before, skill.folder.name)):
                continue
            started = before == "./" or _STARTED.search(line[: match.start()]) is not None
            yield Mention(match["path"], number, started)


def _is_other_place(before: str, name: str) -> bool:
    """Tell whether a path's beginning is a place that cannot be the skill's own folder."""
    last = before.rstrip("/").rpartition("/")[2]
    return last not in (".", name) and not last.endswith(("}", ">", ")")) and not last.startswith("$")


def _check_mentions(skill: Skill, page: str, text: str, first: int, reached: set[str]) -> Iterator[Problem]:
    files = frozenset(skill.folder.files)
    told = {posixpath.normpath(link.target.partition("#")[0]) for link in scan(text).links}
    shown: set[int] = set()  # lines of examples in other languages than a shell's
    for code in scan(text).codes:
        if code.language not in SHELLS:
            shown.update(range(code.line, code.line + len(code.lines)))
    for mention in mentions(skill, text):
        if mention.path in files:
            reached.add(mention.path)
        elif mention.line in shown:
            continue
        elif page == skill.folder.file_name and mention.path not in told:
            told.add(mention.path)
            is_script = mention.path.startswith("scripts/")
            severity = "" if is_script and mention.started else "warn"
            rule = "script-missing" if is_script else "link-missing"
            yield problem(rule, mention.path, line=first + mention.line + 1, file=page, severity=severity)


def _check_reach(skill: Skill, main: str, reached: dict[str, set[str]]) -> Iterator[Problem]:
    """Yield problems of files that SKILL.md does not name, or only a file that it names does."""
    named = skill.body + "\n" + skill.description
    for file in skill.folder.files:
        folder, _, base = file.rpartition("/")
        if folder.split("/")[0] not in ("scripts", "references") or _is_support(base):
            continue
        if file in reached[main] or base in named or f"{folder}/*" in named or _imported(skill, file, folder):
            continue
        stem = base.rpartition(".")[0]
        if folder.startswith("references") and (re.search(rf"{folder}/(?![\w])", named) or f"{folder}/{stem}" in named):
            continue
        through = next((page for page, found in reached.items() if page != main and file in found), None)
        if through and file.endswith(".md"):
            yield problem("reference-depth", f"{file}, only {through} names it", file=file)
        elif not through and not _named_elsewhere(skill, base, file):
            yield problem("file-unmentioned", file, file=file)


def _is_support(base: str) -> bool:
    return (
        base.startswith(("_", ".", "test_"))
        or base in ("requirements.txt", "package.json", "package-lock.json")
        or base.endswith((".pyc", ".lock", ".toml"))
    )


def _imported(skill: Skill, file: str, folder: str) -> bool:
    """Tell whether another script imports a Python module, or names a package's folder."""
    if not file.endswith(".py"):
        return folder.count("/") > 0
    stem = file.rpartition("/")[2].removesuffix(".py")
    pattern = re.compile(
        rf"^\s*(?:from|import)\s+[\w.]*\b{re.escape(stem)}\b|import_module\(.*{re.escape(stem)}", re.MULTILINE
    )
    others = (other for other in skill.folder.files if other.endswith(".py") and other != file)
    return folder.count("/") > 0 or any(pattern.search(skill.text(other)) for other in others)


def _named_elsewhere(skill: Skill, base: str, file: str) -> bool:
    others = (
        other
        for other in skill.folder.files
        if other != file and other.endswith((".md", ".py", ".sh", ".js", ".ts", ".yaml", ".json"))
    )
    return any(base in skill.text(other) for other in others)
