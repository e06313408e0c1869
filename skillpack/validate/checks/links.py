"""Links, anchors and files that a skill's pages name: do they lead somewhere."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from skillpack.validate.checks.commands import SHELLS
from skillpack.validate.checks.markdown import Link, scan
from skillpack.validate.checks.reach import check_reach
from skillpack.validate.checks.skill import Skill
from skillpack.validate.problems import Problem, problem

_SCHEME = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*:|^//")
_PLACEHOLDER = re.compile(r"[{}<>$*|]|\.\.\.|…|\bpath/to/")
_FILE = re.compile(r"\.[A-Za-z0-9]{1,10}$")
_OWN = frozenset({"references", "scripts", "assets"})
"""The folders of the specification: a path in them is the skill's own, also where the folder is missing."""

_MODELS = frozenset({"assets", "templates", "examples"})
"""Folders of documents that are copied and filled in."""

_NO_NAME = re.compile(
    r"(?:your|my|some|other|new|the)[-_]?\w*|(?:script|file|module|reference|tool|skill)(?:[-_]?name)?\d*|foo|bar|baz|name|x|\w*xxx\w*"
)
"""What stands for a file's name in an example, without the extension."""

_SKILL_PLACE = re.compile(r"skill|base|here|script|dirname|self|this", re.IGNORECASE)
"""The names of variables and placeholders that people write for a skill's own folder."""

_STARTED = re.compile(
    r"(?:python[\d.]*|bash|sh|node|uv run|deno run|ruby|perl|\b[Rr]un|\b[Ee]xecute|[$>]\s{0,9})"
    r"\W{0,3}(?:\S{1,200}\s{1,9})?$"
)
_CD = re.compile(r"(?:^|[;&|(\s])cd\s+[\"']?(?P<place>[^\s;&|\"']+)")
_APART = re.compile(r"[\s`'\"(\[,;=]")
"""What separates a path from the words in front of it."""

NEAR = 200
"""Characters in front of a path that are looked at to tell whose it is and whether it is started."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A file named in a text: path from the skill's folder, line (from 0), and the words in front of it."""

    path: str
    line: int
    place: str
    """What stands directly in front of the path, such as ``./``."""
    before: str

    @property
    def started(self) -> bool:
        """Whether the file is to be run."""
        return self.place == "./" or _STARTED.search(self.before) is not None

    @property
    def spoken(self) -> bool:
        """Whether an open double quote with words behind it is in front: somebody's example words."""
        quoted = self.before.replace("“", '"').replace("”", '"').split('"')
        return len(quoted) % 2 == 0 and " " in quoted[-1].partition("`")[0].strip()


def check(skill: Skill) -> Iterator[Problem]:
    """Yield problems of links, anchors, files named and not there, and files there and not named.

    Looked at are SKILL.md, the documents in references/ and those that SKILL.md leads to; not so templates, whose
    links are right where they will be copied to.
    """
    main = skill.folder.file_name
    pages = [main, *(file for file in skill.folder.files if file.startswith("references/") and _is_page(file))]
    reached: dict[str, set[str]] = {}
    for page in pages:  # grows behind SKILL.md
        text, first = (skill.body, skill.body_line) if page == main else (skill.text(page).replace("\r\n", "\n"), 0)
        reached[page] = set()
        yield from _check_links(skill, page, text, first, reached[page])
        yield from _check_mentions(skill, page, text, first, reached[page])
        if page == main:
            pages += sorted(file for file in reached[page].difference(pages) if _is_page(file))
    yield from check_reach(skill, reached)


def _is_page(file: str) -> bool:
    return file.lower().endswith((".md", ".mdx", ".markdown")) and file.partition("/")[0] not in _MODELS


def _check_links(skill: Skill, page: str, text: str, first: int, reached: set[str]) -> Iterator[Problem]:
    markdown = scan(text)
    for link in markdown.links:
        target, _, anchor = link.target.partition("#")
        if _SCHEME.match(link.target) or _PLACEHOLDER.search(link.target) or target.startswith("/"):
            continue
        line = first + link.line + 1
        if not target:
            if anchor and unquote(anchor).lower() not in markdown.anchors:
                yield problem("anchor-missing", f"#{anchor}", line=line, file=page)
            continue
        file = _resolve(skill, page, unquote(target.partition("?")[0]))
        if file is None:
            yield from _broken(skill, page, link, line)
            continue
        reached.add(file)
        if anchor and _is_page(file):
            body = skill.body if file == skill.folder.file_name else skill.text(file).replace("\r\n", "\n")
            if unquote(anchor).lower() not in scan(body).anchors:
                yield problem("anchor-missing", link.target, line=line, file=page)


def _resolve(skill: Skill, page: str, target: str) -> str | None:
    """Return the skill's file or folder that a link on a page leads to, with its exact case, or None."""
    for base in (posixpath.dirname(page), ""):
        path = posixpath.normpath(posixpath.join(base, target))
        if path in skill.paths:
            return path
    return None


def _broken(skill: Skill, page: str, link: Link, line: int) -> Iterator[Problem]:
    target = unquote(link.target.partition("#")[0].partition("?")[0])
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
    if path.startswith(".."):
        other = posixpath.normpath(posixpath.join(skill.folder.path.as_posix(), path))
        if skill.is_neighbour(other):
            detail = f"{link.target}, another skill, there only where that is installed too"
            yield problem("link-outside", detail, line=line, file=page, severity="info")
        else:
            yield problem("link-outside", link.target, line=line, file=page)
    elif _FILE.search(target) or "/" in target.strip("/"):
        rule = "script-missing" if path.startswith("scripts/") else "link-missing"
        yield problem(rule, _with_likely(skill, link.target, path), line=line, file=page)


def _with_likely(skill: Skill, named: str, path: str) -> str:
    """Return what was named and, where the skill has a file of that name elsewhere, or in other case, its path."""
    likely = next(iter(skill.by_name.get(posixpath.basename(path).lower(), ())), "")
    return f"{named} (there is {likely})" if likely else named


def mentions(skill: Skill, text: str) -> Iterator[Mention]:
    """Yield the skill's own files that a text names, as far as their paths say so."""
    pattern = _mention(_OWN | {file.partition("/")[0] for file in skill.folder.files if "/" in file})
    for number, line in enumerate(text.split("\n")):
        if "/" not in line:
            continue
        for match in pattern.finditer(line):
            near = line[max(0, match.start() - NEAR) : match.start()]
            place = _APART.split(near)[-1]
            if not _is_own(place, skill.folder.name):
                continue
            yield Mention(match["path"], number, place, near.removesuffix(place))


@lru_cache(maxsize=64)
def _mention(folders: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern of a path to a file in one of these folders."""
    names = "|".join(sorted(map(re.escape, folders), key=len, reverse=True))
    return re.compile(
        rf"(?<![\w-])(?P<path>(?:{names})/(?:[\w.+-]{{1,100}}/){{0,8}}[\w+-]{{1,100}}(?:\.[\w+-]{{1,50}}){{0,4}}\.[A-Za-z]\w{{0,5}})"
        r"(?![\w/*<{\[])"
    )


def _is_own(place: str, name: str) -> bool:
    """Tell whether what stands directly in front of a path leads to the skill's own folder."""
    if not place:
        return True
    if "://" in place or not place.endswith("/"):
        return place[-1:] in "}])>"
    last = place.rstrip("/").rpartition("/")[2]
    stands_for = last.startswith("$") or last.endswith(("}", ">", ")", "]")) or last.isupper()
    return last in (".", name) or (stands_for and _SKILL_PLACE.search(last) is not None)


def _elsewhere(skill: Skill, text: str) -> set[int]:
    """Return the lines of code whose paths are not the skill's: no shell's, behind a ``cd``, in a comment."""
    markdown = scan(text)
    found = set(markdown.commented)
    for code in markdown.codes:
        away = code.language not in SHELLS
        for number, line in enumerate(code.lines, code.line):
            moved = _CD.search(line) if "cd" in line else None
            if moved:
                place = moved["place"].rstrip("/")
                away = not (_SKILL_PLACE.search(place) or place.endswith(skill.folder.name))
            if away:
                found.add(number)
    return found


def _check_mentions(skill: Skill, page: str, text: str, first: int, reached: set[str]) -> Iterator[Problem]:
    markdown = scan(text)
    elsewhere = _elsewhere(skill, text)
    told = {posixpath.normpath(link.target.partition("#")[0]) for link in markdown.links}
    for mention in mentions(skill, text):
        if mention.path in skill.paths:
            reached.add(mention.path)
        elif mention.line not in elsewhere and page == skill.folder.file_name and mention.path not in told:
            stem = posixpath.basename(mention.path).rpartition(".")[0]
            started = mention.started
            if _NO_NAME.fullmatch(stem.lower()) or (mention.spoken and not started):
                continue
            told.add(mention.path)
            is_script = mention.path.startswith("scripts/")
            severity = "" if is_script and started else "warn"
            rule = "script-missing" if is_script else "link-missing"
            detail = _with_likely(skill, mention.path, mention.path)
            yield problem(rule, detail, line=first + mention.line + 1, file=page, severity=severity)
