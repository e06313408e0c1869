"""Hypothesis strategies for SKILL.md files: mostly what people write, with the slips that people make."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

WORDS = [
    "a",
    "the",
    "skill",
    "use",
    "when",
    "user",
    "asks",
    "for",
    "data",
    "files",
    "and",
    "run",
    "tests",
    "PDF",
    "review",
    "code",
    "deploy",
    "API",
    "to",
    "docker",
    "it's",
    "e.g.",
    "v1.2",
    "https://x.io/a?b=c#d",
    "10:30",
    "a/b",
    "foo_bar",
    "C++",
    "50%",
    "(see",
    "below)",
    "技能",
    "文档",
    "café",
    "naïve",
    "“quoted”",
    "—",
    "→",
    "🚀",
    "“a:",
    "b”",
    "<tag>",
    "&",
    "Q&A",
    "key=value",
    "$HOME",
    "{x}",
    "[WIP]",
    "*bold*",
    "**b**",
    "`cmd`",
    "@scope/pkg",
    "#1",
    "C#",
    "--flag",
    "--",
    "-x",
]
SLIPS = (
    ": ", ":", " #", "#", " - ", "- ", "@", "`", "[", "]", "{", "}", "{{", "}}", "*", "&", "!", "|", ">", "%", '"', "'", '\\', "---",
    " --- ", "\t", ":\t", ", ", ",", "?", "? ", "~", "\u00a0", "\u200b", "\u202e", "\u2028", "\x85", "\ufeff", "\x07", "\x7f", "<b>",
)  # fmt: skip
SPECIAL_VALUES = (
    "", "~", "null", "true", "false", "yes", "No", "on", "42", "3000", "0", "1.5", "1e3", "0x1F", "0o17", "017", "1_000", ".inf",
    "2024-01-01", "12:30:45", "[]", "{}", "[a, b]", "[a]", "{a: b}", "{{NAME}}", "[TODO: x]", "<placeholder>", '""', "''",
    '"   "', "|", ">", "-", "- a", "? a", "*a", "&a b", "&a", "!foo d", "!!str 5", "!!int 5", "=", "<<", "'it''s'", '"a\\nb"', '"a\\qb"',
    '"\\u4e2d"', "'a' b", '"a" b', '"a: b', "'a", "a:", ": a", "#a", "a #b", "%a", "@a", "`a`", ", a", "] a", "} a",
)  # fmt: skip
KEYS = (
    "license", "version", "author", "allowed-tools", "metadata", "compatibility", "tags", "model", "when_to_use", "argument-hint",
    "disable-model-invocation", "user-invocable", "homepage", "x", "Name", "triggers", "dependencies", "context",
)  # fmt: skip

safe_words = st.sampled_from([word for word in WORDS if word.isascii() and word.isalnum()])
words = st.sampled_from(WORDS)


@dataclass(frozen=True)
class Generated:
    """A file to lay into a folder of this name."""

    folder: str
    data: bytes


@st.composite
def sentences(draw: st.DrawFn) -> str:
    """Return a line of words, rarely with something in it that YAML reads as its own."""
    parts = draw(st.lists(safe_words if draw(st.booleans()) else words, min_size=1, max_size=12))
    text = " ".join(parts)
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2)))):
        at = draw(st.one_of(st.just(0), st.just(len(text)), st.integers(0, len(text))))
        text = text[:at] + draw(st.sampled_from(SLIPS)) + text[at:]
    if draw(st.integers(0, 40)) == 7:
        text += " word" * draw(st.sampled_from((190, 205, 300, 320, 1300)))
    return text


@st.composite
def values(draw: st.DrawFn, indent: str = "  ") -> str:
    """Return a value as it stands behind ``key:``, in any of YAML's styles."""
    style = draw(
        st.sampled_from(("plain", "plain", "plain", "double", "single", "block", "lines", "quoted lines", "special"))
    )
    text = draw(sentences())
    if style == "plain":
        return f" {text}"
    if style == "double":
        return (
            ' "'
            + text.replace("\\", "\\\\").replace('"', '\\"')
            + '"'
            + draw(st.sampled_from(("", "", "", " tail", " # c", " ")))
        )
    if style == "single":
        return " '" + text.replace("'", "''") + "'" + draw(st.sampled_from(("", "", "", " tail", " # c", "x")))
    if style == "special":
        return " " + draw(st.sampled_from(SPECIAL_VALUES))
    more = draw(st.lists(sentences(), min_size=1, max_size=3))
    gap = draw(st.sampled_from((indent, indent, indent, indent + "  ", " ", "", "\t")))
    if style == "block":
        header = draw(st.sampled_from(("|", ">", "|-", ">-", "|+", ">+", "|2", "> ", "|  # c", "> text")))
        blank = draw(st.sampled_from(("\n", "\n", "\n\n", "\n  \n")))
        return f" {header}\n" + blank.join(gap + line for line in (text, *more))
    if style == "lines":
        return f" {text}\n" + "\n".join(gap + line for line in more)
    quote = draw(st.sampled_from("\"'"))
    escaped = [line.replace("\\", "").replace(quote, "") for line in (text, *more)]
    return f" {quote}" + f"\n{gap}".join(escaped) + quote


@st.composite
def extra_fields(draw: st.DrawFn) -> str:
    """Return one more key with a scalar, a list or a mapping."""
    key = draw(st.sampled_from(KEYS))
    shape = draw(st.sampled_from(("scalar", "scalar", "list", "flow", "map", "hint", "map in list", "comment")))
    if shape == "scalar":
        return f"{key}:{draw(values())}"
    if shape == "comment":
        return draw(st.sampled_from(("# comment", "  # indented: comment", "", "   ", "\t", "#no blank", "# a: b # c")))
    if shape == "hint":
        return f"{key}: " + draw(
            st.sampled_from(("[a] [b]", "[file]", "<a> [b]", "[a|b]", "{a} | {b}", "Bash(git: *), Read", "Read, Write"))
        )
    items = draw(st.lists(st.one_of(safe_words, sentences()), min_size=1, max_size=3))
    if shape == "flow":
        return f"{key}: " + draw(
            st.sampled_from(("[{}]", "[{},]", "[ {} ]", "[{}", "[\n  {}\n  ]", "[\n{}\n]"))
        ).format(", ".join(items))
    if shape == "list":
        gap = draw(st.sampled_from(("", "  ", "    ", "\t")))
        return f"{key}:\n" + "\n".join(f"{gap}- {item}" for item in items)
    names = draw(
        st.lists(
            st.sampled_from(("author", "version", "internal", "short-description", "a", "b")), min_size=1, max_size=3
        )
    )
    gap = draw(st.sampled_from(("  ", "  ", "    ", " ", "\t")))
    if shape == "map in list":
        return f"{key}:\n" + "\n".join(f"{gap}- {name}:{draw(values(gap + '    '))}" for name in names)
    return f"{key}:\n" + "\n".join(f"{gap}{name}:{draw(values(gap + '  '))}" for name in names)


@st.composite
def blocks(draw: st.DrawFn, name: str) -> str:
    """Return a frontmatter without its fences."""
    if draw(st.integers(0, 6)) == 0:
        name = draw(st.one_of(st.sampled_from(SPECIAL_VALUES), sentences()))
    name = draw(st.sampled_from((name, name, name, f'"{name}"', f"'{name}'", f" {name} ", f"{name}  # c")))
    fields = [f"name: {name}", f"description:{draw(values())}", *draw(st.lists(extra_fields(), max_size=4))]
    if draw(st.booleans()):
        fields = draw(st.permutations(fields))
    lines = "\n".join(fields).split("\n")
    slip = draw(st.sampled_from((*[""] * 6, "drop", "double", "indent", "insert", "blank", "colon")))
    at = draw(st.integers(0, len(lines) - 1))
    if slip == "drop":
        del lines[at]
    elif slip == "double":
        lines.insert(at, lines[at])
    elif slip == "indent":
        lines[at] = draw(st.sampled_from((" ", "  ", "\t"))) + lines[at]
    elif slip == "insert":
        where = draw(st.integers(0, len(lines[at])))
        lines[at] = lines[at][:where] + draw(st.sampled_from(SLIPS)) + lines[at][where:]
    elif slip == "blank":
        lines.insert(at, draw(st.sampled_from(("", "  ", "\t", "text without colon"))))
    elif slip == "colon":
        lines[at] = lines[at].replace(": ", draw(st.sampled_from((":", " : ", ":  ", ":\t", "：", ":\u00a0"))), 1)
    return "\n".join(lines)


def _mostly(usual: str, *rare: str) -> st.SearchStrategy[str]:
    return st.one_of(*[st.just(usual)] * 9, st.sampled_from(rare))


@st.composite
def skill_files(draw: st.DrawFn) -> Generated:
    """Return a whole file and the name of its folder."""
    folder = "-".join(draw(st.lists(safe_words.map(str.lower), min_size=1, max_size=3)))
    folder = draw(
        _mostly(
            folder,
            folder.upper(),
            f"{folder}_x",
            f"{folder}.v2",
            f"{folder} two",
            f"技能-{folder}",
            folder + "-" + "n" * 64,
        )
    )
    name = draw(
        _mostly(
            folder,
            "other-name",
            folder.title(),
            f"{folder}-",
            f"a--{folder}",
            f"{folder} x",
            f"{folder}/x:y",
            "claude-x",
        )
    )
    opening = draw(
        _mostly("---\n", "---  \n", "---\t\n", " ---\n", "\n---\n", "----\n", "--- # c\n", "", "---\n\n", "--\n")
    )
    closing = draw(
        _mostly(
            "\n---\n",
            "\n---  \n",
            "\n--- \t\n",
            "\n ---\n",
            "\n...\n",
            "\n----\n",
            "\n---# T\n",
            "\n",
            "\n---",
            "\n\n---\n",
        )
    )
    body = draw(_mostly("\n# Title\n\nText of the body.\n", "", "\n---\n\nmore\n", "\na: b\n---\nc: d\n---\n", "text"))
    text = opening + draw(blocks(name)) + closing + body
    data = text.encode()
    layer = draw(_mostly("", "bom", "crlf", "mixed", "cr", "utf-16", "latin-1", "nul", "invalid"))
    if layer == "bom":
        data = b"\xef\xbb\xbf" + data
    elif layer == "crlf":
        data = data.replace(b"\n", b"\r\n")
    elif layer == "mixed":
        data = data.replace(b"\n", b"\r\n", draw(st.integers(1, 4)))
    elif layer == "cr":
        data = data.replace(b"\n", b"\r")
    elif layer == "utf-16":
        data = text.encode("utf-16")
    elif layer == "latin-1":
        data = text.encode("latin-1", errors="replace")
    elif layer == "nul":
        data += b"\0tail"
    elif layer == "invalid":
        at = draw(st.integers(0, len(data)))
        data = data[:at] + b"\xff\xc3" + data[at:]
    return Generated(folder, data)
