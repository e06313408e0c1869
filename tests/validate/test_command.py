"""What a user of ``skills validate`` and ``skills list`` notices."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import jsonschema
import pytest

from skillpack.pack import SCHEMAS

COLON = "---\nname: word-count\ndescription: Counts words: use when asked how long a text is, please.\n---\n\nText.\n"


def test_the_document_keeps_its_schema(skill, run, tmp_path):
    skill("good")
    skill("bad", text=COLON)
    document = json.loads(run("validate", tmp_path / "skills", "--json", "--no-run").stdout)
    jsonschema.validate(document, json.loads((SCHEMAS / "validate.schema.json").read_text()))
    assert [entry["ok"] for entry in document["skills"]] == [False, True]
    assert document["ok"] is False
    assert document["counts"]["failed"] == 1


def test_a_colon_is_refused_by_some_and_mended_by_others(skill, validate):
    [report] = validate(skill(text=COLON))["skills"]
    verdicts = {client: text.split(":")[0] for client, text in report["clients"].items()}
    assert verdicts == {
        "claude-code": "loads-with-changes",
        "codex": "loads-with-changes",
        "npx-skills": "rejects",
        "spec": "rejects",
    }


@pytest.mark.parametrize(
    ("options", "code"),
    [((), 1), (("--client", "codex"), 0), (("--client", "codex", "--fail-on", "warn"), 1), (("--client", "spec"), 1)],
)
def test_the_exit_code_is_about_the_chosen_clients_and_severity(options, code, skill, run):
    assert run("validate", skill(text=COLON), "--no-run", *options).exit_code == code


def test_a_missing_licence_file_and_a_renamed_folder_fail_by_name(skill, validate, tmp_path):
    folder = skill(fields="license: Complete terms in LICENSE.txt\n", files={"LICENSE.txt": "Terms.\n"})
    assert validate(folder)["ok"]
    (folder / "LICENSE.txt").unlink()
    [report] = validate(folder)["skills"]
    assert [(problem["rule"], problem["line"]) for problem in report["problems"]] == [("license-file", 4)]
    assert "LICENSE.txt" in report["problems"][0]["message"]
    (folder / "LICENSE.txt").write_text("Terms.\n")
    renamed = shutil.move(folder, tmp_path / "skills" / "renamed")
    [report] = validate(renamed)["skills"]
    assert [problem["rule"] for problem in report["problems"]] == ["name-folder"]
    assert report["ok"] is False


def test_a_skill_can_be_given_by_its_file_and_from_inside(skill, run, monkeypatch):
    folder = skill()
    assert run("validate", folder / "SKILL.md", "--no-run").exit_code == 0
    monkeypatch.chdir(folder)
    result = run("validate", ".", "--no-run", "--json")
    assert json.loads(result.stdout)["skills"][0]["clients"]["spec"] == "loads"


@pytest.mark.parametrize("path", ["nowhere", "file.txt", "empty"])
def test_a_path_without_a_skill_is_bad_usage_and_says_what_was_expected(path, run, tmp_path):
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    result = run("validate", tmp_path / path)
    assert result.exit_code == 2
    assert "SKILL.md" in result.stderr
    assert result.stdout == ""


def test_a_folder_furnished_like_a_skill_without_its_file_is_told(skill, validate, tmp_path):
    skill("good")
    (tmp_path / "skills" / "half" / "scripts").mkdir(parents=True)
    reports = {report["name"]: report for report in validate(tmp_path / "skills")["skills"]}
    assert [problem["rule"] for problem in reports["half"]["problems"]] == ["file-missing"]


def test_the_text_names_file_and_line_and_has_no_colours_for_a_pipe(skill, run):
    folder = skill(text=COLON)
    output = run("validate", folder, "--no-run").stdout
    assert f"{folder}/SKILL.md:3: error" in output
    assert "\x1b[" not in output
    assert output.splitlines()[-1] == "1 skill, 1 failed"


def test_errors_of_all_skills_stand_before_warnings_and_a_mend_is_told_once(skill, run, tmp_path):
    skill("a", body="```bash\npkill -f x\n```\n")
    skill("b", body="[x](references/none.md) [y](references/nothing.md)\n")
    lines = run("validate", tmp_path / "skills", "--no-run").stdout.splitlines()
    told = [line.split(": ")[1].split()[0] for line in lines if ".md:" in line and "skills/" in line]
    assert told == ["error", "error", "warn", "warn", "warn"]
    assert sum("Correct the path" in line for line in lines) == 1


def test_of_many_skills_the_table_shows_those_that_fail_and_sums_up_the_rest(skill, run, tmp_path):
    for number in range(30):
        skill(
            f"good-{number}",
            description=f'"Counts kind {number} of {"abcdefgh"[number % 8] * number} words. Use when asked."',
        )
    for number in range(80):
        skill(f"bad-{number}", text=f"---\nname: other\ndescription: {number}\n---\n\nText.\n")
    lines = run("validate", tmp_path / "skills", "--no-run").stdout.splitlines()
    table = lines[next(index for index, line in enumerate(lines) if line.startswith("skill ")) :]
    assert len(table) < 90
    assert not any(line.startswith("good-") for line in table)
    assert any("and 20 more that fail" in line for line in table)
    [sums] = [line for line in table if line.startswith("all 110 skills")]
    assert "30/0/80" in sums
    assert any(line.split()[1:] == ["error", "description-type"] for line in table)
    assert table[-1] == "110 skills, 80 failed"


def test_no_color_keeps_colours_out_of_a_terminal(skill, tmp_path):
    def colours(**env: str) -> bool:
        master, slave = pty.openpty()
        command = [
            sys.executable,
            "-c",
            "from skillpack.cli import main; main()",
            "validate",
            str(tmp_path / "skills"),
            "--no-run",
        ]
        done = subprocess.run(command, stdout=slave, env={**os.environ, "TERM": "xterm", **env}, check=False)
        output = os.read(master, 1 << 16)
        os.close(slave)
        os.close(master)
        assert done.returncode == 0
        assert b"word-count" in output
        return b"\x1b[" in output

    skill()
    assert colours(NO_COLOR="")
    assert not colours(NO_COLOR="1")


def test_what_is_about_a_client_counts_only_if_it_is_asked(skill, run):
    folder = skill(files={"agents/openai.yaml": "interface: [\n"})
    assert run("validate", folder, "--no-run").exit_code == 1
    assert run("validate", folder, "--no-run", "--client", "codex", "--client", "spec").exit_code == 1
    assert run("validate", folder, "--no-run", "--client", "claude-code").exit_code == 0


def test_an_unknown_client_is_told_which_there_are(skill, run):
    result = run("validate", skill(), "--client", "copilot")
    assert result.exit_code == 2
    assert "npx-skills" in result.stderr


def test_sarif_has_a_result_with_place_and_rule_for_each_problem(skill, run, tmp_path, monkeypatch):
    skill(text=COLON)
    monkeypatch.chdir(tmp_path)
    assert run("validate", "skills", "--no-run", "--sarif", "out.sarif").exit_code == 1
    [log] = json.loads((tmp_path / "out.sarif").read_text())["runs"]
    [result] = log["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "skills/word-count/SKILL.md"
    assert place["region"]["startLine"] == 3
    assert log["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "yaml-colon"


def test_github_annotations_escape_what_would_end_them(skill, run, tmp_path, monkeypatch):
    skill("a,b", text=COLON)
    monkeypatch.chdir(tmp_path)
    lines = run("validate", "skills", "--no-run", "--github").stdout.splitlines()
    assert all(line.startswith(("::error file=", "::warning file=")) for line in lines)
    assert any("file=skills/a%2Cb/SKILL.md,line=3,title=yaml-colon::" in line for line in lines)


def test_sarif_has_what_the_standard_requires_and_one_fingerprint_for_each_problem(skill, run, tmp_path):
    body = "[a](references/one.md) [b](references/two.md)\n```bash\npkill -f x\n```\n"
    skill(fields="version: one\n", body=body)
    log = json.loads(run("validate", tmp_path / "skills", "--no-run", "--sarif", "-").stdout)
    assert log["version"] == "2.1.0"
    [one] = log["runs"]
    levels = {rule["id"]: rule["defaultConfiguration"]["level"] for rule in one["tool"]["driver"]["rules"]}
    assert len(levels) == len(one["tool"]["driver"]["rules"]) == 3
    for result in one["results"]:
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].startswith("file:///")
    prints = {tuple(result["partialFingerprints"].values()) for result in one["results"]}
    assert len(prints) == len(one["results"]) == 4


def test_junit_counts_a_failed_skill(skill, run, tmp_path):
    skill("good")
    skill("bad", text=COLON.replace("Counts", "Co\x07unts"))
    run("validate", tmp_path / "skills", "--no-run", "--junit", tmp_path / "out.xml")
    root = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    suites = {suite.get("name"): suite for suite in root}
    assert suites["good"].get("failures") == "0"
    assert suites["bad"].get("failures") == "1"


def test_only_one_document_can_go_to_stdout(skill, run):
    result = run("validate", skill(), "--no-run", "--json", "--sarif", "-")
    assert result.exit_code == 2
    assert "--sarif" in result.stderr


def test_a_failing_case_fails_the_skill_and_names_the_case(skill, run):
    files = {
        "scripts/count.py": "import argparse\nargparse.ArgumentParser().parse_args()\nprint(3)\n",
        "evals/scripts.yaml": "cases:\n  - name: four\n    script: count.py\n    expect: ['4']\n",
    }
    folder = skill(body="Run scripts/count.py\n", files=files)
    result = run("validate", folder, "--json")
    [report] = json.loads(result.stdout)["skills"]
    assert result.exit_code == 1
    [case] = [case for case in report["scripts"] if case["case"] == "four"]
    assert case["ok"] is False
    told = [problem for problem in report["problems"] if problem["rule"] == "script-case"]
    assert any("four" in problem["message"] for problem in told)


def test_an_option_that_only_help_can_tell_of_is_looked_for_there(skill, run):
    files = {
        "scripts/shared.py": "import argparse\nPARSER = argparse.ArgumentParser()\nPARSER.add_argument('--input')\n",
        "scripts/count.py": "import shared\nshared.PARSER.parse_args()\n",
        "evals/scripts.yaml": "cases: []\n",
    }
    body = "```bash\npython3 scripts/count.py --input x\npython3 scripts/count.py --output y\n```\n"
    document = json.loads(run("validate", skill(body=body, files=files), "--json").stdout)
    told = [problem for problem in document["skills"][0]["problems"] if problem["rule"] == "command-unknown"]
    assert [(problem["line"], problem["message"].rpartition(" ")[2]) for problem in told] == [(8, "--output")]


def test_list_tells_version_and_class_of_each_skill(skill, run, tmp_path):
    metadata = 'metadata:\n  version: "1.2"\n  author: me\n  soc-code: "15-2051"\n  soc-title: Data Scientists\n'
    skill(fields=metadata)
    text = run("list", tmp_path / "skills").stdout
    assert "word-count  v1.2  SOC 15-2051 Data Scientists" in text
    [entry] = json.loads(run("list", tmp_path / "skills", "--json").stdout)["skills"]
    assert (entry["name"], entry["version"], entry["author"]) == ("word-count", "1.2", "me")
    assert run("list", tmp_path / "nowhere").exit_code == 2
