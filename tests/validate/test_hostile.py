"""Whatever lies in a folder: an answer, no traceback, nothing written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillpack.cli import skills
from skillpack.validate.check import check_skill
from skillpack.validate.discover import find_skills
from skillpack.validate.fix import mend
from tests.clients.skill_files import skill_files

BOMB = "a: &a [x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(12)
)

FILES = {
    "empty": b"",
    "fences only": b"---\n---\n",
    "one fence": b"---",
    "nul": b"---\nname: x\0\ndescription: y\0\n---\n\0\0",
    "utf-16 cut in half": "---\nname: x\ndescription: y\n---\n".encode("utf-16")[:-1],
    "lone bytes": b"\xff\xfe\xfa\xce" * 50,
    "two megabytes of text": b"---\nname: x\ndescription: " + b"word " * 420_000 + b"\n---\n",
    "two megabytes of brackets": b"---\nname: x\ndescription: " + b"[" * 2_000_000 + b"\n---\n",
    "two megabytes of links": b"---\nname: x\ndescription: y\n---\n" + b"[](" * 700_000,
    "two megabytes of backticks": b"---\nname: x\ndescription: y\n---\n" + b"` " * 1_000_000,
    "many keys": b"---\n" + b"".join(b"key%d: x\n" % number for number in range(20_000)) + b"---\n",
    "deep mapping": b"---\n" + b"".join(b" " * number + b"a:\n" for number in range(900)) + b"---\n",
    "deep list": b"---\nname: x\nwhen_to_use: " + b"[" * 900 + b"]" * 900 + b"\n---\n",
    "aliases that multiply": b"---\n" + BOMB.encode() + b"---\n",
    "an alias of itself": b"---\nname: &a [*a]\ndescription: *a\n---\n",
    "a tag that runs": b'---\nname: x\ndescription: !!python/object/apply:os.system ["touch pwned"]\n---\n',
    "very long line of pairs": b"---\n" + b"a: " * 100_000 + b"\n---\n",
    "surrogates": b"---\nname: \xed\xa0\x80\ndescription: y\n---\n",
    "escapes": b'---\nname: "\\ud800\\U0010ffff"\ndescription: "\\x1b[31m\\x00"\n---\n',
    "terminal codes": b"---\nname: \x1b]0;x\x07\ndescription: \x1b[2Jy\n---\n",
}


SIZE = 300_000
LONG = {
    "backticks": "`" * SIZE,
    "backticks in runs": "".join("`" * (number % 300 + 1) + " " for number in range(2000)) + "](",
    "open brackets": "[" * SIZE + "](",
    "links without an end": '[a](b "' * (SIZE // 7),
    "comments that open": "<!--" * (SIZE // 4),
    "addresses": "".join(f"'https://a{number}.com/' " for number in range(SIZE // 20)),
    "schemes": "https://" * (SIZE // 8),
    "a line of slashes": "scripts/a." * (SIZE // 10),
    "paths": '`scripts/x.py` "scripts/none.py ' * (SIZE // 32),
    "deep lists": "".join(" " * number + "- a\n" for number in range(700)),
    "fences in lists": "    ```\n" * (SIZE // 8),
    "headings of hashes": "# " * (SIZE // 2),
    "headings and links": "".join(f"# h{number}\n[a](#h{number})\n" for number in range(SIZE // 24)),
    "blank lines": "\n" * SIZE,
    "downloads": "curl https://a | " * (SIZE // 17),
    "variables": "".join(f"A{number}=/x\nrm -rf $A{number}\n" for number in range(SIZE // 25)),
    "options of rm": "rm -" + "r" * SIZE,
    "orders": "do not tell the user ignore all " * (SIZE // 32),
    "questions": "".join(f"def f{number}():\n  f{number + 1}()\n" for number in range(SIZE // 24)) + "input()\n",
    "marks": "# skills: ignore \n" * (SIZE // 18),
    "homes": "".join(f"/home/abc{number}/x " for number in range(SIZE // 18)),
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.timeout(40)
def test_no_text_makes_a_check_long(name, skill, validate):
    files = dict.fromkeys(("references/x.md", "scripts/x.py", "scripts/x.sh"), LONG[name])
    [report] = validate(skill(body=LONG[name] + "\nreferences/x.md\n", files=files))["skills"]
    assert report["name"] == "word-count"


def listing(root: Path) -> list[str]:
    return sorted(str(path) for path in root.rglob("*"))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.timeout(90)
def test_any_file_gets_an_answer_in_every_form(name, skill, run, tmp_path):
    folder = skill(text=FILES[name])
    before = listing(tmp_path)
    document = run("validate", folder, "--json", "--no-run")
    assert document.exit_code in (0, 1), document.exception
    json.loads(document.stdout)
    assert run("validate", folder, "--no-run").exit_code == document.exit_code
    assert run("list", folder).exit_code == 0
    mend(FILES[name], "word-count")
    assert listing(tmp_path) == before


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.one_of(st.binary(max_size=200), skill_files().map(lambda generated: generated.data), st.text().map(str.encode))
)
def test_any_bytes_get_a_verdict(data):
    with tempfile.TemporaryDirectory() as root:
        (Path(root) / "x").mkdir()
        (Path(root) / "x" / "SKILL.md").write_bytes(data)
        [report] = [check_skill(folder) for folder in find_skills(Path(root))]
        assert len(report.clients) == 4
        mend(data, "x")


def test_links_in_a_loop_end(skill, validate, tmp_path):
    folder = skill()
    (folder / "loop").symlink_to(tmp_path / "skills", target_is_directory=True)
    (tmp_path / "skills" / "self").symlink_to("self")
    (folder / "gone.md").symlink_to("nowhere.md")
    assert [report["name"] for report in validate(tmp_path / "skills")["skills"]] == ["word-count"]


def test_a_skill_in_a_skill_is_told_and_not_counted_among_its_files(skill, validate, tmp_path):
    folder = skill()
    inner = folder / "references" / "inner"
    inner.mkdir(parents=True)
    (inner / "SKILL.md").write_text(
        "---\nname: inner\ndescription: Opens the inner thing. Use when asked for it.\n---\n\nText.\n"
    )
    reports = {report["name"]: report for report in validate(tmp_path / "skills")["skills"]}
    assert reports["word-count"]["problems"] == []
    assert {problem["rule"] for problem in reports["inner"]["problems"]} == {"folder-deep", "skill-nested"}
    assert reports["inner"]["clients"]["codex"] == "loads"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_told(skill, validate):
    folder = skill(files={"references/a.md": "Text.\n"})
    (folder / "references").chmod(0)
    rules = {problem["rule"] for problem in validate(folder)["skills"][0]["problems"]}
    (folder / "references").chmod(0o700)
    assert "folder-unreadable" in rules


def test_a_dangling_link_and_a_fifo_are_no_files(skill, validate, tmp_path):
    dangling, pipe = skill("dangling"), skill("pipe")
    for folder in (dangling, pipe):
        (folder / "SKILL.md").unlink()
    (dangling / "SKILL.md").symlink_to("nowhere")
    os.mkfifo(pipe / "SKILL.md")
    for report in validate(tmp_path / "skills")["skills"]:
        assert report["ok"] is False
        assert "file-unreadable" in {problem["rule"] for problem in report["problems"]}


ODD = {
    "new\nline": "scripts/a\nb.py",
    "bytes\udcff": "scripts/\udcfe.py",
    "codes\x1b[31m": "scripts/\x1b[2J.py",
    "a,b:c%0Ad": "scripts/%0A,:.py",
}


@pytest.mark.parametrize("name", ODD)
def test_names_of_any_bytes_keep_every_form_whole(name, skill, tmp_path):
    folder = skill()
    inside = folder / ODD[name]
    inside.parent.mkdir()
    inside.write_text("input()\n")
    folder.rename(folder.with_name(name))
    command = [
        sys.executable,
        "-c",
        "from skillpack.cli import main; main()",
        "validate",
        str(tmp_path / "skills"),
        "--no-run",
    ]
    for form in ("--json", "--github", "--sarif=-", "--junit=-", "--client=codex"):
        done = subprocess.run([*command, form], capture_output=True, check=False)
        assert (done.returncode, done.stderr.count(b"Traceback")) == (1, 0), (form, done.stderr)
        output = done.stdout.decode("utf-8")
        assert "\x1b" not in output
        assert "input()" in output
        if form in ("--json", "--sarif=-"):
            json.loads(output)
        elif form == "--junit=-":
            ElementTree.fromstring(output)
        elif form == "--github":
            assert all(line.startswith("::") for line in output.splitlines())
        else:
            assert sum("script-prompts" in line for line in output.splitlines()) == 1


def test_what_is_no_regular_file_is_not_opened(skill, validate):
    folder = skill(body="Read references/pipe.md and run scripts/pipe.py.\n")
    for file in (
        "references/pipe.md",
        "scripts/pipe.py",
        "scripts/pipe.sh",
        "agents/openai.yaml",
        "evals/scripts.yaml",
    ):
        (folder / file).parent.mkdir(exist_ok=True)
        os.mkfifo(folder / file)
    (folder / "scripts" / "zero.py").symlink_to("/dev/zero")
    (folder / "scripts" / "self.py").symlink_to("self.py")
    [report] = validate(folder)["skills"]
    assert report["name"] == "word-count"


def test_spaces_and_other_scripts_in_a_path_do_no_harm(skill, tmp_path):
    folder = skill()
    odd = tmp_path / "a folder" / "技能 'x' \"y\""
    odd.parent.mkdir()
    (tmp_path / "skills").rename(odd)
    assert folder.name
    result = CliRunner().invoke(skills, ["validate", str(odd), "--no-run", "--github"])
    assert result.exit_code == 0
