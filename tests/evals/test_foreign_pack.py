"""A pack that has nothing of ours: its scripts in several languages, its stubs, its fake server, its interpreter."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from skillpack.validate.evals import confine

FILES = {
    "SKILL.md": """
        ---
        name: parcel-desk
        description: "Weigh parcels and ask a depot where they are. Use when a parcel is to be weighed or traced."
        ---
        # Parcels

        Weigh one with `bash scripts/weigh.sh`, trace it with `python3 scripts/depot/trace.py`, and fold a label with
        `node scripts/fold.js` or `scripts/stamp`.
        """,
    "scripts/weigh.sh": """
        #!/usr/bin/env bash
        # asks the scales, a program that only the post office has
        case "$1" in
            --help) echo "Weigh a parcel on the scales. Example: weigh.sh. Exit codes: 0 done, 2 bad usage." ;;
            -*) echo "unknown option $1" >&2; exit 2 ;;
            *) scales --grams "$1" ;;
        esac
        """,
    "scripts/depot/trace.py": """
        import argparse, json, sys, urllib.request
        parser = argparse.ArgumentParser()
        parser.add_argument("--depot", required=True)
        parser.add_argument("--json", metavar="FILE", help="write the answer to FILE")
        parser.add_argument("parcel")
        given = parser.parse_args()
        with urllib.request.urlopen(f"{given.depot}/{given.parcel}") as response:
            answer = json.load(response)
        if given.json:
            with open(given.json, "w") as stream:
                json.dump(answer, stream)
        print(f"parcel {given.parcel} is {answer['state']}, says Python {sys.prefix}")
        """,
    "scripts/depot/__init__.py": "",
    "scripts/fold.js": "console.log(`folded ${process.argv[2]}`)",
    "scripts/stamp": """
        #!/bin/sh
        echo "stamped $1"
        """,
    "evals/bin/scales": """
        #!/bin/sh
        echo "{\\"grams\\": 120, \\"parcel\\": \\"$2\\"}"
        """,
    "evals/answer.json": """
        {"type": "object", "required": ["grams"], "properties": {"grams": {"type": "integer"}}}
        """,
    "evals/depot.py": """
        import http.server, json, sys
        class Depot(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = json.dumps({"state": sys.argv[1]}).encode()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(body)
        server = http.server.HTTPServer(("127.0.0.1", 0), Depot)
        print("depot open at", f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()
        """,
    "evals/scripts.yaml": """
        cases:
          - name: weighs by the stub
            script: weigh.sh
            args: [A7]
            stubs: [evals/bin]
            schema: evals/answer.json
            expect: [A7]
          - name: there are no scales here
            script: weigh.sh
            args: [A7]
            exit_code: 127
          - name: traces at the fake depot
            script: depot/trace.py
            args: [--depot, "{fixture_url}", --json, answer.json, A7]
            fixture: {run: [evals/depot.py, lost], ready: 'open at (http\\S+)'}
            expect: [parcel A7 is lost, "{interpreter}"]
          - name: folds
            script: fold.js
            args: [A7]
            expect: [folded A7]
          - name: stamps
            script: stamp
            args: [A7]
            expect: [stamped A7]
        """,
}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment that has nothing installed."""
    folder = tmp_path_factory.mktemp("theirs") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python3"


@pytest.fixture
def pack(tmp_path: Path, python: Path) -> Path:
    """Return the folder of the pack, whose skills lie neither in ``skills`` nor beside anything of ours."""
    skill = tmp_path / "their pack" / "parcel-desk"
    for name, text in FILES.items():
        if name == "scripts/fold.js" and shutil.which("node") is None:
            continue
        path = skill / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n").replace("{interpreter}", str(python.parents[1])))
        if text.strip().startswith("#!"):
            path.chmod(0o755)
    if shutil.which("node") is None:
        cases = skill / "evals" / "scripts.yaml"
        cases.write_text(cases.read_text().replace("fold.js", "stamp").replace("folded", "stamped"))
    return skill.parent


def validate(pack: Path, *words: str | Path) -> tuple[int, dict[str, Any], str]:
    """Run the command line in the pack, as its maintainer does; return the exit code, the document and stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "skillpack", "validate", ".", "--json", *words],
        cwd=pack,
        env={"PATH": os.environ["PATH"], "HOME": str(pack)},
        capture_output=True,
        text=True,
        check=False,
    )
    (skill,) = json.loads(done.stdout)["skills"]
    return done.returncode, skill, done.stderr


def test_all_its_cases_pass_under_its_own_interpreter(pack: Path, python: Path) -> None:
    code, skill, stderr = validate(pack, "--python", python)
    assert [(case["case"], case["why"]) for case in skill["scripts"]] == [
        ("weigh.sh help", ""),
        ("weigh.sh unknown flag", ""),
        ("weighs by the stub", ""),
        ("there are no scales here", ""),
        ("traces at the fake depot", ""),
        ("folds", ""),
        ("stamps", ""),
    ]
    assert [problem for problem in skill["problems"] if problem["rule"].startswith("script-")] == []
    assert code == 0
    assert bool(stderr) == (confine.method() != "bwrap")


def test_a_failing_case_is_told_at_its_line_with_the_command(pack: Path, python: Path) -> None:
    depot = pack / "parcel-desk" / "evals" / "depot.py"
    depot.write_text(depot.read_text().replace("sys.argv[1]}", "'found'}"))
    code, skill, _ = validate(pack, "--python", python)
    assert code == 1
    (problem,) = [problem for problem in skill["problems"] if problem["rule"] == "script-case"]
    lines = (pack / "parcel-desk" / "evals" / "scripts.yaml").read_text().splitlines()
    assert lines[problem["line"] - 1] == "  - name: traces at the fake depot"
    assert problem["file"] == "evals/scripts.yaml"
    assert "missing text: expected 'parcel A7 is lost'" in problem["message"]
    assert problem["fix"].startswith("Run it yourself, in the skill's folder: python3 scripts/depot/trace.py --depot ")


def test_cases_that_cannot_be_read_are_told_at_their_line(pack: Path) -> None:
    with (pack / "parcel-desk" / "evals" / "scripts.yaml").open("a") as stream:
        stream.write("  - name: half\n    script: [\n")
    code, skill, _ = validate(pack)
    assert code == 1
    (problem,) = [problem for problem in skill["problems"] if problem["rule"] == "script-case"]
    assert "not YAML" in problem["message"]
    assert problem["line"] > 20
    assert "docs/evals.md" in problem["fix"]


def test_a_plain_argparse_script_is_advised_and_not_refused(pack: Path) -> None:
    (pack / "parcel-desk" / "scripts" / "plain.py").write_text(
        "import argparse\nargparse.ArgumentParser().parse_args()\n"
    )
    _, skill, _ = validate(pack)
    told = [problem for problem in skill["problems"] if problem["file"] == "scripts/plain.py"]
    helps = [problem for problem in told if problem["rule"] == "script-help"]
    assert [problem["severity"] for problem in helps] == ["warn"]
    assert "it shows no example" in helps[0]["message"]
    assert not [problem for problem in told if problem["rule"] == "script-case"]


@pytest.mark.parametrize("given", ["/etc/hostname", "no-such-python", "."])
def test_what_is_no_interpreter_is_told(pack: Path, given: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "skillpack", "validate", pack, "--python", given],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "expected: a Python 3 interpreter" in done.stderr


def test_an_interpreter_may_be_named_from_here(pack: Path, python: Path) -> None:
    assert validate(pack, "--python", os.path.relpath(python, pack))[0] == 0
