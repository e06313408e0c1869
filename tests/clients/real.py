"""Ask the real clients, offline and without a login, what they make of a folder of skills."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

SECONDS = 120


@dataclass
class Answer:
    """What a client said of the skills below a folder, by the names of their folders."""

    listed: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Folder: the name and the description that the client shows."""
    refused: dict[str, str] = field(default_factory=dict)
    """Folder: the client's words."""


def environment(home: Path, **more: str) -> dict[str, str]:
    home.mkdir(parents=True, exist_ok=True)
    return {
        "HOME": str(home),
        "PATH": os.defpath,
        "NO_COLOR": "1",
        "DO_NOT_TRACK": "1",
        "DISABLE_TELEMETRY": "1",
        **more,
    }


class Codex:
    """``codex app-server``: JSON-RPC on stdio, ``initialize`` and then ``skills/list``."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "node_modules" / ".bin" / "codex"

    def ask(self, project: Path) -> Answer:
        """Return what Codex lists for a project whose skills lie in ``.agents/skills``."""
        (project / ".git").mkdir(exist_ok=True)
        answer = Answer()
        skills = project / ".agents" / "skills"
        for entry in self.skills_list(project)["data"]:
            for skill in entry["skills"]:
                path = Path(skill["path"])
                if path.is_relative_to(skills):
                    answer.listed[path.parent.name] = (skill["name"], skill["description"])
            for error in entry["errors"]:
                answer.refused[Path(error["path"]).parent.name] = error["message"]
        return answer

    def skills_list(self, project: Path) -> dict[str, Any]:
        """Return the result of ``skills/list`` for a working directory."""
        home = project.parent / "codex-home"
        env = environment(home, CODEX_HOME=str(home), PATH=f"{os.environ['PATH']}")
        with subprocess.Popen(
            [str(self.program), "app-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            text=True,
        ) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            timer = threading.Timer(SECONDS, server.kill)
            timer.start()
            try:
                for message in (
                    {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "tests", "version": "0"}}},
                    {"method": "initialized"},
                    {"id": 2, "method": "skills/list", "params": {"cwds": [str(project)], "forceReload": True}},
                ):
                    server.stdin.write(json.dumps(message) + "\n")
                server.stdin.flush()
                for line in server.stdout:
                    message = json.loads(line)
                    if message.get("id") == 2:
                        result: dict[str, Any] = message["result"]
                        return result
            finally:
                timer.cancel()
                server.kill()
        raise AssertionError("codex app-server ended without an answer")


class NpxSkills:
    """``skills add DIR --list`` under the Node that it needs."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "node_modules" / ".bin"

    def ask(self, skills: Path) -> Answer:
        """Return what is offered (by the shown names: the output has no folders) and what is skipped."""
        env = environment(skills.parent / "npx-home", PATH=f"{self.bin}:{os.environ['PATH']}")
        offered, skipped = skills.parent / "npx-offered", skills.parent / "npx-skipped"
        with offered.open("wb") as out, skipped.open("wb") as err:  # it would not wait for a pipe that is full
            subprocess.run(
                [str(self.bin / "skills"), "add", str(skills), "--list"],
                cwd=skills,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                timeout=SECONDS,
                check=False,
            )
        answer = Answer()
        for match in re.finditer(
            r"^⚠ Skipped (.*)/SKILL\.md — (.*)$", skipped.read_text(encoding="utf-8"), re.MULTILINE
        ):
            answer.refused[Path(match[1]).name] = match[2]
        shown = offered.read_text(encoding="utf-8").partition("Available Skills")[2]
        rows = [row for row in (line.removeprefix("│") for line in shown.split("\n")) if row]
        for name, description in pairwise(rows):
            if name.startswith("    ") and not name.startswith("     ") and description.startswith("      "):
                answer.listed[name[4:]] = (name[4:], description[6:])
        return answer


class ClaudeCode:
    """``claude plugin validate``, and what ``claude -p`` tells its model: a stub in the place of the API reads it."""

    def __init__(self, folder: Path) -> None:
        packages = folder / "node_modules" / "@anthropic-ai"
        self.program = next(iter(sorted(packages.glob("claude-code-*/claude"))), folder / "node_modules/.bin/claude")

    def plugin(self, folder: Path) -> Path:
        """Make a plugin around ``folder/skills`` and return it."""
        manifest = folder / ".claude-plugin" / "plugin.json"
        manifest.parent.mkdir(parents=True, exist_ok=True)
        manifest.write_text('{"name": "q", "version": "0.0.1", "description": "d", "author": {"name": "a"}}')
        return folder

    def validate(self, plugin: Path, *more: str) -> dict[str, Any]:
        """Return what ``plugin validate --json`` prints."""
        done = subprocess.run(
            [str(self.program), "plugin", "validate", "--json", *more, str(plugin)],
            env=environment(plugin.parent / "claude-home"),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    def ask(self, folder: Path) -> Answer:
        """Return the skills that the running program tells its model of, by their ids.

        ``folder`` is a plugin (see ``plugin``), or a project whose skills lie in ``.claude/skills``.
        The name is the one that stands in parentheses, or nothing.
        """
        empty = folder.parent / "empty"
        empty.mkdir(exist_ok=True)
        is_plugin = (folder / ".claude-plugin").exists()
        with stub_api() as (url, requests):
            subprocess.run(
                [str(self.program), "-p", "hi", *(["--plugin-dir", str(folder)] if is_plugin else [])],
                cwd=empty if is_plugin else folder,
                env=environment(
                    folder.parent / "claude-home",
                    ANTHROPIC_BASE_URL=url,
                    ANTHROPIC_API_KEY="none",
                    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
                    CLAUDE_CODE_MAX_RETRIES="0",
                    DISABLE_AUTOUPDATER="1",
                    SLASH_COMMAND_TOOL_CHAR_BUDGET="100000000",
                ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        answer = Answer()
        prefix = "q:" if is_plugin else ""
        lines = re.compile(rf"^- {prefix}([^ :]+)(?: \({prefix}(.*?)\))?: (.*)$", re.MULTILINE)
        for match in lines.finditer(_told(requests)):
            answer.listed[match[1]] = (match[2] or "", match[3])
        return answer


def _told(requests: list[bytes]) -> str:
    """Return the text of the request that lists the skills."""
    for request in reversed(requests):
        texts = []
        for message in json.loads(request).get("messages", []):
            content = message["content"]
            parts = [{"text": content}] if isinstance(content, str) else content
            texts += [part.get("text", "") for part in parts]
        listing = [text for text in texts if "skills are available" in text]
        if listing:
            return "\n".join(listing)
    raise AssertionError(f"none of {len(requests)} requests lists skills")


@contextmanager
def stub_api() -> Iterator[tuple[str, list[bytes]]]:
    """Serve an API on loopback that refuses everything and keeps what it was sent."""
    requests: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(self.rfile.read(int(self.headers.get("content-length") or 0)))
            body = b'{"type": "error", "error": {"type": "invalid_request_error", "message": "a stub"}}'
            self.send_response(400)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
