"""Hypothesis strategies for SKILL.md files: mostly what people write, with the slips that people make."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

SLIPS = yaml.safe_load(Path(__file__).with_name("slips.yaml").read_text(encoding="utf-8"))
WORDS = SLIPS["words"].split()

safe_words = st.sampled_from([word for word in WORDS if word.isascii() and word.isalnum()])
any_words = st.sampled_from(WORDS)


@dataclass(frozen=True)
class Generated:
    """A file to lay into a folder of this name."""

    folder: str
    data: bytes


def mostly(usual: str, rare: list[str], times: int = 12) -> st.SearchStrategy[str]:
    return st.one_of(*[st.just(usual)] * times, st.sampled_from(rare))


@st.composite
def sentences(draw: st.DrawFn) -> str:
    """A line of words, now and then with something in it that YAML reads as its own."""
    text = " ".join(draw(st.lists(any_words if draw(st.integers(0, 3)) == 0 else safe_words, min_size=1, max_size=12)))
    for _ in range(draw(st.sampled_from((0, 0, 0, 0, 1, 1, 2)))):
        at = draw(st.one_of(st.just(0), st.just(len(text)), st.integers(0, len(text))))
        text = text[:at] + draw(st.sampled_from(SLIPS["slips"])) + text[at:]
    if draw(st.integers(0, 40)) == 7:
        text += " word" * draw(st.sampled_from((190, 205, 300, 305, 306, 307, 308, 320, 1300)))
        text += draw(st.sampled_from(("", "", "\U0001f600", "x" * 2000, "技" * 1600, "\U0001f600" * 800)))
    return text


@st.composite
def values(draw: st.DrawFn, indent: str = "  ") -> str:
    """A value as it stands behind ``key:``, in any of YAML's styles."""
    style = draw(
        st.sampled_from(
            ("plain", "plain", "plain", "double", "double", "single", "block", "lines", "quoted lines", "special")
        )
    )
    text = draw(sentences())
    if style == "plain":
        return f" {text}"
    if style == "double":
        tail = draw(mostly("", [" tail", " # c", " "]))
        return ' "' + text.replace("\\", "\\\\").replace('"', '\\"') + f'"{tail}'
    if style == "single":
        return " '" + text.replace("'", "''") + "'" + draw(mostly("", [" tail", " # c", "x"]))
    if style == "special":
        return " " + draw(st.sampled_from(SLIPS["values"]))
    more = draw(st.lists(sentences(), min_size=1, max_size=3))
    gap = draw(mostly(indent, [f"{indent}  ", " ", "", "\t"]))
    if style == "block":
        blank = draw(mostly("\n", ["\n\n", "\n  \n"], 4))
        return f" {draw(st.sampled_from(SLIPS['block_headers']))}\n" + blank.join(gap + line for line in (text, *more))
    if style == "lines":
        return f" {text}\n" + "\n".join(gap + line for line in more)
    quote = draw(st.sampled_from("\"'"))
    return f" {quote}" + f"\n{gap}".join(line.replace("\\", "").replace(quote, "") for line in (text, *more)) + quote


@st.composite
def extra_fields(draw: st.DrawFn) -> str:
    """One more key with a scalar, a list or a mapping, or a comment."""
    key = draw(st.sampled_from(SLIPS["keys"]))
    shape = draw(st.sampled_from(SLIPS["shapes"]))
    if shape == "scalar":
        return f"{key}:{draw(values())}"
    if shape == "comment":
        return draw(st.sampled_from(SLIPS["comments"]))
    if shape == "switch":
        return f"{draw(st.sampled_from(SLIPS['switch_keys']))}: {draw(st.sampled_from(SLIPS['switches']))}"
    if shape == "when":
        return f"when_to_use:{draw(values())}"
    if shape == "deep":
        return (
            f"{key}:\n  a:\n    b:{draw(values('      '))}\n    c:\n    - {draw(sentences())}\n  d: {draw(sentences())}"
        )
    if shape == "hint":
        return f"{key}: {draw(st.sampled_from(SLIPS['hints']))}"
    items = draw(st.lists(st.one_of(safe_words, sentences()), min_size=1, max_size=3))
    if shape == "flow":
        return f"{key}: " + draw(st.sampled_from(SLIPS["flows"])).format(", ".join(items))
    gap = draw(mostly("  ", ["", "    ", " ", "\t"], 6))
    if shape == "list":
        return f"{key}:\n" + "\n".join(f"{gap}- {item}" for item in items)
    inner = st.sampled_from(("author", "version", "internal", "short-description", "a", "b"))
    names = draw(st.lists(inner, min_size=1, max_size=3, unique=True))
    dash = "- " if shape == "map in list" else ""
    return f"{key}:\n" + "\n".join(f"{gap}{dash}{name}:{draw(values(gap + dash + '  '))}" for name in names)


@st.composite
def blocks(draw: st.DrawFn, name: str) -> str:
    """A frontmatter without its fences; every third is one that nobody minds but for its description."""
    if draw(st.integers(0, 2)) == 0:
        extra = draw(st.sampled_from(SLIPS["calm"]))
        return f"name: {name}\ndescription:{draw(values())}{extra}"
    if draw(st.integers(0, 8)) == 0:
        name = draw(st.one_of(st.sampled_from(SLIPS["values"]), sentences()))
    name = draw(mostly(name, [f'"{name}"', f"'{name}'", f" {name} ", f"{name}  # c"], 4))
    fields = [f"name: {name}", f"description:{draw(values())}", *draw(st.lists(extra_fields(), max_size=3))]
    if draw(st.integers(0, 3)) == 0:
        fields = draw(st.permutations(fields))
    lines = "\n".join(fields).split("\n")
    slip = draw(st.sampled_from((*[""] * 16, *SLIPS["line_slips"])))
    at = draw(st.integers(0, len(lines) - 1))
    if slip == "drop":
        del lines[at]
    elif slip == "double":
        lines.insert(at, lines[at])
    elif slip == "indent":
        lines[at] = draw(st.sampled_from((" ", "  ", "\t"))) + lines[at]
    elif slip == "insert":
        where = draw(st.integers(0, len(lines[at])))
        lines[at] = lines[at][:where] + draw(st.sampled_from(SLIPS["slips"])) + lines[at][where:]
    elif slip == "dedent":
        lines[at] = lines[at].lstrip()
    elif slip == "split":
        head, blank, tail = lines[at].rpartition(" ")
        lines[at] = head + (f"\n{draw(st.sampled_from(('', ' ', '  ', '    ')))}" if blank else "") + tail
    elif slip == "join":
        lines[at : at + 2] = [" ".join(lines[at : at + 2])]
    elif slip == "trail":
        lines[at] += draw(st.sampled_from((" ", "\t", ":", " # c", "#", "'", '"', " |", " >", ",", "\u00a0", "\r")))
    elif slip == "stray":
        lines.insert(
            at,
            draw(
                st.sampled_from(
                    ("", "  ", "\t", "text without colon", "- a", "  - a", "? a", ": a", " : a", "...", "[a]", "*a")
                )
            ),
        )
    elif slip == "colon":
        lines[at] = lines[at].replace(": ", draw(st.sampled_from((":", " : ", ":  ", ":\t", "：", ":\u00a0"))), 1)
    return "\n".join(lines)


@st.composite
def skill_files(draw: st.DrawFn) -> Generated:
    """A whole file and the name of its folder."""
    folder = "-".join(draw(st.lists(safe_words.map(str.lower), min_size=1, max_size=3)))
    odd = [folder.upper(), f"{folder}_x", f"{folder}.v2", f"{folder} two", f"技能-{folder}", f"{folder}-" + "n" * 64]
    folder = draw(mostly(folder, odd))
    odd = ["other-name", folder.title(), f"{folder}-", f"a--{folder}", f"{folder} x", f"{folder}/x:y", "claude-x"]
    odd += [
        f"{folder}.v2",
        f"技能-{folder}",
        "café",
        "cafe\u0301",
        f"{folder}\u200b",
        f'"{folder}\\e[1m"',
        f"{folder}!",
        "a" * 65,
        "-x",
        "_x",
        "\U0001f600",
    ]
    name = draw(mostly(folder, odd))
    opening, closing = draw(mostly("---\n", SLIPS["openings"])), draw(mostly("\n---\n", SLIPS["closings"]))
    body = draw(mostly("\n# Title\n\nText of the body.\n", SLIPS["bodies"]))
    text = opening + draw(blocks(name)) + closing + body
    return Generated(folder, _encoded(draw, text, draw(mostly("", SLIPS["layers"]))))


def _encoded(draw: st.DrawFn, text: str, layer: str) -> bytes:
    data = text.encode()
    if layer == "bom":
        return b"\xef\xbb\xbf" + data
    if layer == "two boms":
        return b"\xef\xbb\xbf" * 2 + data
    if layer == "bom and crlf":
        return b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")
    if layer == "crlf":
        return data.replace(b"\n", b"\r\n")
    if layer == "mixed":
        return data.replace(b"\n", b"\r\n", draw(st.integers(1, 4)))
    if layer == "cr":
        return data.replace(b"\n", b"\r")
    if layer in ("utf-16", "utf-16-be", "latin-1", "gb18030"):
        return text.encode(layer, errors="replace")
    if layer == "nul":
        return data + b"\0tail"
    if layer == "invalid":
        at = draw(st.integers(0, len(data)))
        return data[:at] + b"\xff\xc3" + data[at:]
    return data


def generate(count: int, number: int) -> list[Generated]:
    """Return ``count`` generated files, or a few less where two were alike; ``number`` seeds them."""
    found: dict[Generated, None] = {}

    @seed(number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(skill_files())
    def collect(generated: Generated) -> None:
        found[generated] = None

    collect()
    return list(found)
