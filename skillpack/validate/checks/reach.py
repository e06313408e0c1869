"""Files of a skill that its pages do not speak of, or only a page that SKILL.md leads to does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from skillpack.validate.checks.skill import Skill
from skillpack.validate.problems import Problem, problem

_WORD = re.compile(r"[\w+-]{1,200}(?:\.[\w+-]{1,100}){0,6}")
_IMPORTS = re.compile(r"^[ \t]*(?:from|import|export|const|let|var|source|\.)[ \t{][^\n]{0,300}", re.MULTILINE)
_SPEAKS = (
    ".md",
    ".mdx",
    ".txt",
    ".py",
    ".sh",
    ".bash",
    ".js",
    ".mjs",
    ".ts",
    ".yaml",
    ".yml",
    ".json",
    ".toml",
    ".html",
)
"""Files in which a name counts as a mention: a script may open a template, a template may name a script."""

_SUPPORT = frozenset({"requirements.txt", "package.json", "package-lock.json", "readme.md", "conftest.py", "makefile"})
"""Files that people and tools look for by themselves."""


def check_reach(skill: Skill, reached: Mapping[str, set[str]]) -> Iterator[Problem]:
    """Yield a problem for each script and reference that SKILL.md does not name, or only a file that it names does.

    ``reached`` has the files that each page links to or names by their path, SKILL.md's first.
    """
    main = next(iter(reached))
    unnamed = [file for file in _furnishing(skill) if file not in reached[main] and not _said(skill, file)]
    if not unnamed:
        return
    spoken = _spoken(skill, {word for file in unnamed for word in _names(file)})
    for file in unnamed:
        through = next((page for page, found in reached.items() if page != main and file in found), None)
        if through and file.endswith(".md"):
            yield problem("reference-depth", f"{file}, only {through} names it", file=file)
        elif not through and not any(spoken.get(word, set()) - {file} for word in _names(file)):
            yield problem("file-unmentioned", file, file=file)


def _furnishing(skill: Skill) -> Iterator[str]:
    """Yield the files of scripts/ and references/ that are there for the model to use."""
    for file in skill.folder.files:
        top, _, base = file.partition("/")[0], "/", file.rpartition("/")[2]
        if top not in ("scripts", "references") or base.lower() in _SUPPORT:
            continue
        if base.startswith(("_", ".", "test_")) or base.endswith((".pyc", ".lock", ".toml", "_test.py", ".test.js")):
            continue
        if top == "scripts" and file.count("/") > 1:  # a package's parts
            continue
        yield file


def _said(skill: Skill, file: str) -> bool:
    """Tell whether SKILL.md names a file by its base, or the whole folder that it lies in."""
    folder, _, base = file.rpartition("/")
    return base in skill.named or re.search(rf"\b{re.escape(folder)}/(?![\w.<{{\[])", skill.named) is not None


def _names(file: str) -> tuple[str, ...]:
    """Return the words that name a file: its base, ``scripts.stem`` as of a module, and its stem.

    A stem that is a common word names the file only where it is imported; then it has ``import`` in front.
    """
    folder, _, base = file.rpartition("/")
    stem = base.rpartition(".")[0]
    odd = re.search(r"[a-z0-9][_-][a-z0-9]", stem.lower())
    return base, f"{folder.replace('/', '.')}.{stem}", stem if odd else f"import {stem}"


def _spoken(skill: Skill, wanted: set[str]) -> dict[str, set[str]]:
    """Return the files that say each of these words."""
    found: dict[str, set[str]] = {}
    for file in skill.folder.files:
        if file.lower().endswith(_SPEAKS):
            text = skill.text(file)
            words = set(_WORD.findall(text))
            for line in _IMPORTS.findall(text):
                words.update(f"import {part}" for word in _WORD.findall(line) for part in word.split("."))
            for word in wanted & words:
                found.setdefault(word, set()).add(file)
    return found
