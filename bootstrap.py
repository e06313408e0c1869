#!/usr/bin/env python3
"""Set up the pack in .venv and run it: needs Python 3.10 or newer and git, nothing else.

    python3 bootstrap.py demo     set up, then train the demo task on the reference engine
    python3 bootstrap.py test     set up, then lint, type check and all tests
    python3 bootstrap.py setup    set up only; then use .venv/bin/skills

Arguments after the command go to it: python3 bootstrap.py test tests/engine -k cap
"""

import hashlib
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
EXTRAS = {"setup": "all", "demo": "all", "test": "test"}
TOOLS = {
    "tmux": "tmux",
    "node": "nodejs",
    "npm": "npm",
    "chromium": "chromium",
    "bwrap": "bubblewrap",
}
"""Program that the tests use: the Debian package that brings it."""


def fail(message):
    """Say what is wrong and what to try, and end with exit code 3."""
    sys.stderr.write("error: " + message + "\n")
    sys.exit(3)


def run(command, **options):
    """Run a command and return its exit code."""
    return subprocess.call(command, cwd=ROOT, **options)


def make_venv():
    """Make .venv, by venv or by uv, whichever is there."""
    if os.path.exists(PYTHON) and run([PYTHON, "-c", ""]) == 0:
        return
    if run([sys.executable, "-m", "venv", "--clear", VENV], stdout=subprocess.DEVNULL) == 0:
        return
    if (
        shutil.which("uv")
        and run(["uv", "venv", "--quiet", "--clear", "--seed", "--python", sys.executable, VENV]) == 0
    ):
        return
    fail(
        "this Python cannot make a virtual environment: its venv or ensurepip module is missing\n"
        "try: sudo apt-get install python3-venv   (Debian, Ubuntu), or install uv, and run this again"
    )


def install(extra):
    """Install the pack editable with an extra, unless that was done for this very pyproject.toml."""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as stream:
        wanted = hashlib.sha256(stream.read()).hexdigest()
    marker = os.path.join(VENV, ".installed-" + extra)
    if os.path.exists(marker):
        with open(marker) as stream:
            if stream.read() == wanted:
                return
    sys.stderr.write("Installing the pack into .venv (a few minutes the first time)\n")
    pip = [PYTHON, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    if run([*pip, "--editable", ".[" + extra + "]"]) != 0:
        fail("pip could not install the pack\ntry: check the network and the proxy of PyPI, and run this again")
    with open(marker, "w") as stream:
        stream.write(wanted)


def install_tools():
    """Install the programs that the tests use, where apt and root are there; else name them."""
    missing = [program for program in TOOLS if not shutil.which(program)]
    if not missing:
        return
    packages = [TOOLS[program] for program in missing]
    if shutil.which("apt-get") and os.geteuid() == 0:
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        run(["apt-get", "-qq", "update"], **quiet)
        for package in packages:
            run(["apt-get", "-qq", "-y", "--no-install-recommends", "install", package], **quiet)
    missing = [program for program in TOOLS if not shutil.which(program)]
    if missing:
        sys.stderr.write("Tests that need %s are skipped; try: sudo apt-get install %s\n" % (
            ", ".join(missing), " ".join(TOOLS[program] for program in missing)))  # fmt: skip


def test(arguments):
    """Lint, check types, validate the pack's own skills and run the tests; return the first exit code that is not 0.

    With arguments only pytest runs, with these.
    """
    checks = [
        ["ruff", "check", "--quiet", "."],
        ["ruff", "format", "--check", "--quiet", "."],
        ["mypy"],
        ["skillpack", "validate"],
        ["pytest", "-n", "2", "--dist", "loadfile"],
    ]
    for check in [["pytest", *arguments]] if arguments else checks:
        sys.stderr.write("$ " + " ".join(check) + "\n")
        code = run([PYTHON, "-m", *check])
        if code:
            return code
    return 0


def main():
    """Run the command line."""
    command, arguments = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    if command not in EXTRAS:
        sys.stderr.write(__doc__ + "\n")
        sys.exit(0 if command in ("-h", "--help") else 2)
    if sys.version_info < (3, 10):
        fail("this is Python %d.%d; the pack needs 3.10 or newer\ntry: python3.11 bootstrap.py %s" % (
            sys.version_info[0], sys.version_info[1], command))  # fmt: skip
    make_venv()
    install(EXTRAS[command])
    if command == "setup":
        print("ready: " + os.path.join(VENV, "bin", "skills"))
        return
    if command == "test":
        install_tools()
        sys.exit(test(arguments))
    skills = os.path.join(VENV, "bin", "skills")
    os.execv(skills, [skills, "demo", *arguments])


if __name__ == "__main__":
    main()
