"""A headless Chromium, driven through its DevTools pipe (https://chromedevtools.github.io/devtools-protocol)."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One tab of a browser of its own; messages are NUL-separated JSON on the descriptors 3 and 4."""

    def __init__(self) -> None:
        assert CHROMIUM
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # above 9, so that giving the browser its 3 and 4 overwrites neither
        ends = [fcntl.fcntl(one, fcntl.F_DUPFD, 10) for one in (to_browser, from_browser)]
        switches = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"]
        switches += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        folder = f"--user-data-dir={self._profile.name}"
        shell = ["bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "bash"]
        self._process = subprocess.Popen(
            [*shell, CHROMIUM, *switches, folder, "--window-size=1100,900", "about:blank"],
            pass_fds=ends,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for one in (to_browser, from_browser, *ends):
            os.close(one)
        self._buffer, self._number = b"", 0
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = ""
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    _session = ""

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 16)
            assert part, "the browser has gone"
            self._buffer += part
        head, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(head)

    def open(self, url: str) -> None:
        """Load a page."""
        self.call("Page.navigate", url=url)

    def text(self) -> str:
        """Return the text that a reader sees."""
        return self.value("document.body ? document.body.innerText : ''")

    def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def wait_for(self, satisfied: Callable[[str], bool], seconds: float = 20.0) -> str:
        """Return the page's text as soon as it satisfies."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            text = self.text()
            if satisfied(text):
                return text
        raise AssertionError(f"the page never showed it; last:\n{text}")

    def screenshot(self, path: Path) -> None:
        """Write a picture of the page."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def requests(self) -> list[str]:
        """Return the URLs that the browser has asked for."""
        sent = [one for one in self.events if one.get("method") == "Network.requestWillBeSent"]
        return [one["params"]["request"]["url"] for one in sent]

    def complaints(self) -> list[str]:
        """Return the errors that the page has caused."""
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded")
        found = [json.dumps(one["params"]) for one in self.events if one.get("method") in kinds]
        return [one for one in found if "favicon" not in one]

    def close(self) -> None:
        """End the browser with all of its processes, which write into the profile to the last."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._profile.cleanup()
