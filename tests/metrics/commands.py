"""Run the skill's script in this process, as its command line."""

import contextlib
import importlib.util
import io
import json
import sys
from functools import cache
from typing import Any

from skillpack.pack import skills_dir
from skillpack.script import run

SCRIPT = skills_dir() / "swanlab-fetch" / "scripts" / "fetch.py"


@cache
def _command() -> Any:
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        spec = importlib.util.spec_from_file_location("swanlab_fetch_script", SCRIPT)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(SCRIPT.parent))
        sys.modules.pop("_pack", None)
    return module.command


def fetch(arguments: list[str]) -> tuple[int, str, str]:
    """Return exit code, stdout and stderr of ``fetch.py`` with these arguments."""
    out, err = io.StringIO(), io.StringIO()
    argv = sys.argv
    sys.argv = ["fetch.py", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            run(_command())
    except SystemExit as end:
        return int(end.code or 0), out.getvalue(), err.getvalue()
    finally:
        sys.argv = argv
    raise AssertionError("the script did not exit")


def fetch_json(arguments: list[str]) -> tuple[int, Any, str]:
    """Return exit code, the document on stdout and stderr of ``fetch.py … --json``."""
    code, out, err = fetch([*arguments, "--json"])
    return code, json.loads(out), err
