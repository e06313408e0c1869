"""A stand-in with a released server's manners: its phrases, its codes, its keys; no long polls, no extra fields.

It plays server and engine at once. Rewards are kept; a step ends when every one of ``batch`` tasks
has ``repeat`` episodes, and weights take ``sync_seconds``.
"""

from __future__ import annotations

import base64
import json
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ADVICE = {
    "ENGINE.OFFLINE": "Please start the engine first.",
    "ENGINE.BOOTING": "Please wait until the engine is fully booted.",
    "ENGINE.WEIGHT_SYNCING": "Engine is syncing weights, try again soon.",
    "ENGINE.ROLLING_POST": "Engine is in post-rolling phase, try again soon.",
}


class ReleasedServer:
    """Call ``start``, give ``url`` to a client, call ``stop``."""

    def __init__(self, batch: int = 2, repeat: int = 2, boot_seconds: float = 0.1, sync_seconds: float = 0.2) -> None:
        self.batch, self.repeat = batch, repeat
        self.boot_seconds, self.sync_seconds = boot_seconds, sync_seconds
        self.status, self.step = "ENGINE.OFFLINE", None
        self.config: str | None = None
        self.episodes: dict[str, dict[str, Any]] = {}
        self.finished: dict[str, list[tuple[str, float]]] = {}
        self.ended: list[str] = []
        self.statuses: list[str] = []
        self.requests: list[str] = []
        self.lose_next_end_answer = False
        self.lock = threading.RLock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.answer(None)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                self.answer(json.loads(body or b"{}"))

            def answer(self, body: Any) -> None:
                path = self.path.partition("?")[0]
                outer.requests.append(path)
                with outer.lock:
                    status, answer = outer.handle(path, body, self.headers.get("authorization", ""))
                if answer is None:
                    self.close_connection = True
                    return
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def start(self) -> ReleasedServer:
        """Listen."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()

    def set(self, status: str) -> None:
        """Enter a status as a released server does: leaving the rolling ones drops all episodes."""
        with self.lock:
            if status in ("ENGINE.WEIGHT_SYNCING", "ENGINE.OFFLINE"):
                self.episodes.clear()
                self.finished.clear()
            self.status = status
            self.statuses.append(status)
            if status == "ENGINE.ROLLING":
                self.step = (self.step or 0) + 1
                for _ in range(self.batch * self.repeat):
                    self.register()

    def register(self) -> None:
        """Offer an episode; its key is the same for every later claimer."""
        name = str(uuid.uuid4())
        fields = {"agent_name": "default_agent_name", "target_tag": "default_target_tag", "episode_uuid": name}
        key = base64.b64encode(json.dumps({**fields, "episode_address": "ipc://x"}).encode()).decode()
        self.episodes[name] = {"status": "registered", "client": "", "key": f"sk-ajet-{key}"}

    def later(self, seconds: float, status: str) -> None:
        """Enter a status in a while."""
        timer = threading.Timer(seconds, self.set, [status])
        timer.daemon = True
        timer.start()

    def handle(self, path: str, body: Any, authorization: str) -> tuple[int, Any]:
        """Return the code and the answer; None breaks the connection off."""
        if path == "/health":
            return 200, {"status": "ok"}
        if path == "/get_engine_status":
            return 200, {"engine_status": self.status, "engine_status_detail": None, "global_step": self.step}
        if path == "/sync_train_config":
            if self.status != "ENGINE.OFFLINE":
                return 400, {"detail": "Engine is not offline"}
            self.config = body["yaml_as_string"]
            return 200, {"success": True}
        if path == "/start_engine":
            self.set("ENGINE.BOOTING")
            self.later(self.boot_seconds, "ENGINE.ROLLING")
            return 200, {"success": True, "pid": 1}
        if path == "/stop_engine":
            self.set("ENGINE.OFFLINE")
            return 200, {"success": True, "failure_reason": ""}
        if path == "/claim_episode":
            return 200, self.claim(body)
        if path == "/end_episode":
            return self.end(body)
        if path == "/abort_episode":
            episode = self.episodes.get(body["episode_uuid"])
            if episode:
                episode.update(status="registered", client="")
            return 200, {"success": True}
        if path == "/can_continue_episode":
            episode = self.episodes.get(body["episode_uuid"], {})
            return 200, {"can_continue": episode.get("status") == "claimed"}
        if path == "/get_current_batch_rollout_pool_information":
            return 200, self.pool()
        if path == "/v1/chat/completions":
            known = {one["key"] for one in self.episodes.values()}
            if authorization.removeprefix("Bearer ") not in known:
                return 200, {"status_code": 401, "detail": "Invalid API Key", "headers": None}
            message = {"role": "assistant", "content": "7"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            head = {
                "id": uuid.uuid4().hex,
                "object": "chat.completion",
                "created": int(time.time()),
                "model": "unknown",
            }
            return 200, {**head, "choices": [choice]}
        return 404, {"detail": "Not Found"}

    def claim(self, body: Any) -> dict[str, Any]:
        """Give the first episode that nobody has."""
        empty = {"success": False, "client_uuid": "", "episode_uuid": "", "openai_base_url": "", "openai_api_key": ""}
        if self.status != "ENGINE.ROLLING":
            cause = f"Engine not ready. Current status: [{self.status}]. {ADVICE[self.status]}"
            return {**empty, "fail_cause": cause}
        for name, episode in self.episodes.items():
            if episode["status"] == "registered":
                episode.update(status="claimed", client=body["client_uuid"])
                where = {"openai_base_url": "http://10.0.0.1:10086/v1", "openai_api_key": episode["key"]}
                return {
                    "success": True,
                    "client_uuid": body["client_uuid"],
                    "episode_uuid": name,
                    **where,
                    "fail_cause": "",
                }
        return {**empty, "fail_cause": "No available episodes to claim. Try again in 1 minute."}

    def end(self, body: Any) -> tuple[int, Any]:
        """Take a result; the last that a step needs begins the weight sync."""
        if self.status not in ("ENGINE.ROLLING", "ENGINE.ROLLING_POST"):
            return 400, {"detail": f"Engine is not in rolling state. Current status: [{self.status}]."}
        name = body["episode_uuid"]
        episode = self.episodes.pop(name, None)
        if episode is None:
            return 400, {"detail": f"Episode {name} not found."}
        self.ended.append(name)
        self.finished.setdefault(body["task_id"], []).append((name, body["workflow_output"]["reward"]))
        self.register()
        if sum(len(group) >= self.repeat for group in self.finished.values()) >= self.batch:
            self.set("ENGINE.ROLLING_POST")
            self.set("ENGINE.WEIGHT_SYNCING")
            self.later(self.sync_seconds, "ENGINE.ROLLING")
        if self.lose_next_end_answer:
            self.lose_next_end_answer = False
            return 200, None
        return 200, {"success": True}

    def pool(self) -> dict[str, Any]:
        """Return the pool information of a released server."""
        return {
            "sample_collection_method": "rollout_until_finish_enough_tasks",
            "completed_episodes": sum(map(len, self.finished.values())),
            "completed_episode_target": self.batch * self.repeat,
            "completed_tasks_details": {task: [name for name, _ in group] for task, group in self.finished.items()},
            "running_episode_details": None,
            "engine_status": self.status,
            "global_step": self.step,
        }
