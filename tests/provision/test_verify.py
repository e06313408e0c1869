"""What verify proves, on broken installations and on good ones."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from skillpack.provision import report, server, verify
from skillpack.provision.verify import Proof, verify_client, verify_conda, verify_docker
from skillpack.runs.engine import EngineStatus
from tests.provision.engines import JOB, engine
from tests.provision.machines import make_model

Install = Callable[..., dict[str, Any]]

TORCH = """
__version__ = "2.8.0+cu128"
class version: cuda = "12.8"
class _C: _GLIBCXX_USE_CXX11_ABI = True
class cuda:
    is_available = staticmethod(lambda: {cards} > 0)
    device_count = staticmethod(lambda: {cards})
    get_device_name = staticmethod(lambda index: "NVIDIA H100")
    @staticmethod
    def init(): raise RuntimeError("Found no NVIDIA driver on your system.")
"""
GOOD = {
    "torch": TORCH.format(cards=1),
    "flash_attn": "__version__ = '2.8.3'\nflash_attn_func = None",
    "flash_attn_2_cuda": "",
    "vllm/__init__": "__version__ = '0.11.0'\nimport os\nos.write(1, b'loud\\n')\nos.write(2, b'louder\\n')",
    "vllm/_C": "",
    "verl": "__version__ = '0.7.1'",
    "ajet": "__version__ = '0.0.4'",
}


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Return a function that makes an environment whose packages are given as source texts."""

    def make(**packages: str) -> dict[str, Any]:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
        site = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
        for name, text in packages.items():
            path = site / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return {"env": str(tmp_path / "env"), "model_path": "", "server": ""}

    return make


def by_id(proofs: list[Proof]) -> dict[str, Proof]:
    return {proof.id: proof for proof in proofs}


BROKEN = [
    ("flash_attn_2_cuda", "undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs", "flash_attn", "cxx11abi"),
    ("flash_attn_2_cuda", "x.so: undefined symbol: _ZN3c104cuda9SetDeviceEi", "flash_attn", "flash-attn last"),
    ("flash_attn_2_cuda", "libc.so.6: version `GLIBC_2.32' not found (required by x.so)", "flash_attn", "verl-0.5"),
    ("vllm/_C", "libcudart.so.13: cannot open shared object file: No such file or directory", "vllm", "--stack"),
    ("torch", "libcudart.so.12: cannot open shared object file", "torch", "--stack"),
]


@pytest.mark.parametrize(("module", "error", "part", "mend"), BROKEN)
def test_known_import_failures_name_their_mend(module: str, error: str, part: str, mend: str, install: Install) -> None:
    found = by_id(verify_conda(install(**{**GOOD, module: f"raise ImportError({error!r})"})))
    assert found[part].ok is False
    assert mend in found[part].mend
    assert found["kernel"].ok is not True
    others = {"verl", "ajet"} - {part}
    assert all(found[name].ok for name in others)


class Swarm(BaseHTTPRequestHandler):
    """A training in progress, as a released server tells of it; keeps what it is asked."""

    records: list[dict[str, str]]
    bodies: list[dict[str, Any]]

    def _answer(self, data: Any) -> None:
        text = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self) -> None:
        self._answer({"status": "ok", "engine_status": "ENGINE.ROLLING", "engine_status_detail": "", "global_step": 3})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        type(self).bodies.append({"path": self.path, **body})
        if self.path == "/claim_episode":
            self._answer({"success": True, "episode_uuid": "e1", "openai_base_url": "/v1", "openai_api_key": "k"})
        elif self.path.endswith("/chat/completions"):
            self._answer({"choices": [{"message": {"content": "hello"}}]})
        else:
            self._answer({"success": True, "buffer": type(self).records, "failure_reason": ""})

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def swarm() -> Iterator[Callable[..., str]]:
    """Return a function that starts such a server, whose episodes have these states, and returns its address."""
    servers = []

    def start(*states: str) -> str:
        Swarm.records, Swarm.bodies = [{"episode_status": state} for state in states], []
        made = ThreadingHTTPServer(("127.0.0.1", 0), Swarm)
        threading.Thread(target=made.serve_forever, daemon=True).start()
        servers.append(made)
        return f"http://127.0.0.1:{made.server_port}"

    yield start
    for made in servers:
        made.shutdown()
        made.server_close()


def episode(url: str, end: bool, monkeypatch: pytest.MonkeyPatch) -> Proof:
    """Return the proof of an episode, by this interpreter's client."""
    monkeypatch.setattr(verify, "_imports", lambda python: Proof("import", True, ""))
    monkeypatch.setattr(verify, "_version", lambda python: Proof("version", True, ""))
    env = str(Path(sys.executable).parent.parent)
    return by_id(verify_client({"env": env, "server": url}, end=end))["episode"]


@pytest.mark.parametrize("end", [False, True])
def test_an_episode_does_not_make_the_server_wait_for_this_client(
    end: bool, swarm: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = episode(swarm("claimed", "registered"), end, monkeypatch)
    assert proof.ok, proof
    back = [body for body in Swarm.bodies if body["path"] in ("/end_episode", "/abort_episode")]
    assert [body["path"] for body in back] == ["/end_episode" if end else "/abort_episode"]
    assert back[0]["declare_client_active"] is False


def test_slots_that_are_all_taken_are_no_failure(swarm: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    proof = episode(swarm(*["claimed"] * 24), False, monkeypatch)
    assert proof.ok is None
    assert "all 24 slots are taken" in proof.text
    assert "/claim_episode" not in {body["path"] for body in Swarm.bodies}


OLD_CLIENT = """
import sys, types
sys.path.insert(0, {payload!r})
import episode
class Api: base_url = api_key = "x"
class Client:
    def __init__(self, server_url): pass
    def begin_episode(self, discard_episode_timeout=240): {begin}
    def abort_episode(self, episode_uuid): print("aborted")
for name in ("ajet", "ajet.schema", "ajet.schema.task", "ajet.tuner_lib", "ajet.tuner_lib.experimental"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["ajet.schema.task"].Task = sys.modules["ajet.schema.task"].WorkflowOutput = None
client = sys.modules["ajet.tuner_lib.experimental.swarm_client"] = types.ModuleType("swarm_client")
client.SwarmClient = Client
episode.ask = lambda *_: "hello"
sys.argv = ["episode.py", "http://127.0.0.1:9", "0.1"]
sys.exit(episode.main())
"""


@pytest.mark.parametrize(
    ("begin", "said", "code"),
    [
        ('return "e1", Api', "aborted", 0),
        ("import threading; threading.Event().wait()", '"waited": 0.1', 1),
        ('raise OSError("gone")', "OSError: gone", 1),
    ],
)
def test_clients_of_other_releases(begin: str, said: str, code: int) -> None:
    program = OLD_CLIENT.format(payload=str(verify.PAYLOAD), begin=begin)
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert said in done.stdout


def test_a_machine_without_card_is_told(install: Install) -> None:
    found = by_id(verify_conda(install(**{**GOOD, "torch": TORCH.format(cards=0)})))
    assert found["cuda"].ok is False
    assert "Found no NVIDIA driver" in found["cuda"].text
    assert found["kernel"].ok is None


def test_a_kernel_that_cannot_run_is_a_failure(install: Install) -> None:
    found = by_id(verify_conda(install(**GOOD)))
    assert (found["cuda"].ok, found["kernel"].ok) == (True, False)


def test_a_crash_at_import_hides_nothing_else(install: Install) -> None:
    found = by_id(verify_conda(install(**{**GOOD, "verl": "raise SystemExit('bad')"})))
    assert [found[name].ok for name in ("torch", "flash_attn", "vllm", "verl", "ajet")] == [
        True,
        True,
        True,
        False,
        True,
    ]


def test_no_environment_at_all(tmp_path: Path) -> None:
    answers = {"env": str(tmp_path / "none"), "model_path": "", "server": ""}
    for proofs in (verify_conda(answers), verify_client(answers)):
        assert proofs[0].ok is False
        assert "plan.py --apply" in proofs[0].mend
        assert report.proofs("conda", proofs)["works"] is False


def test_nothing_tried_is_not_works() -> None:
    assert report.proofs("client", [Proof("x", None, "not tried")])["works"] is False


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Return a function that plays a docker whose container is in some state, and gives verify's arguments."""

    def play(state: dict[str, Any], target: str = "/models/q", code: int = 0) -> dict[str, Any]:
        mounts = json.dumps([{"Destination": target}])
        stub = tmp_path / "bin" / "docker"
        stub.parent.mkdir(exist_ok=True)
        stub.write_text(
            "#!/bin/sh\n"
            """[ $1 = image ] && { echo '["x@sha256:12"]'; exit; }\n"""
            f"[ $1 = inspect ] || exit 97\necho '[{json.dumps(state)}, {mounts}]'\nexit {code}\n"
        )
        stub.chmod(0o755)
        monkeypatch.setenv("PATH", f"{stub.parent}:/usr/bin:/bin")
        make_model(tmp_path / "m")
        return {"name": "agentjet-server", "model_path": str(tmp_path / "m"), "server": ""}

    return play


CHOSEN = {"docker": "docker", "local_image": "ghcr.io/x:main", "model": "/models/q", "url": "http://127.0.0.1:9"}


def test_docker_up_offline_then_booted(container: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    answers = container({"Running": True, "Status": "running", "Health": {"Status": "healthy"}})
    with engine(tmp_path, rolling=False) as url:
        found = by_id(verify_docker(answers, {**CHOSEN, "url": url}))
        assert {name: proof.ok for name, proof in found.items()} == {
            "container": True, "image": True, "weights": True, "health": True, "status": True, "boot": None,
        }  # fmt: skip
        assert "OFFLINE" in found["status"].text
        assert "sha256:12" in found["image"].text
        booted = by_id(verify_docker(answers, {**CHOSEN, "url": url}, boot=JOB, patience=30))
        assert booted["boot"].ok is True
        assert server.check_status(url)[0] == "ENGINE.OFFLINE"


def test_a_training_in_progress_is_not_touched(container: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    answers = container({"Running": True})
    with engine(tmp_path, rolling=True) as url:
        found = by_id(verify_docker(answers, {**CHOSEN, "url": url}, boot=JOB, patience=5))
        assert found["boot"].ok is False
        assert "not tried" in found["boot"].text
        assert server.check_status(url)[0] == "ENGINE.ROLLING"


def test_a_training_that_somebody_starts_meanwhile_is_not_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine(tmp_path, rolling=True) as url:
        with monkeypatch.context() as patch:
            patch.setattr(server, "ask_engine", lambda _: EngineStatus("ENGINE.OFFLINE", None))
            booted, text = server.check_boot(url, JOB, 5)
        assert (booted, "not offline" in text) == (False, True)
        assert server.check_status(url)[0] == "ENGINE.ROLLING"


@pytest.mark.parametrize(
    ("state", "target", "code", "said"),
    [
        ({"Running": False, "Status": "exited", "ExitCode": 137}, "/models/q", 0, "exited (exit code 137)"),
        ({"Running": True}, "/models/other", 0, "without a mount at /models/q"),
        ({}, "/models/q", 1, "no container"),
    ],
)
def test_a_container_that_is_not_right(
    state: dict[str, Any], target: str, code: int, said: str, container: Callable[..., dict[str, Any]]
) -> None:
    found = by_id(verify_docker(container(state, target, code), CHOSEN))
    assert found["container"].ok is False
    assert said in found["container"].text
    assert found["container"].mend
    assert found["health"].ok is False


def test_an_address_that_is_no_swarm_server(tmp_path: Path) -> None:
    ok, text = server.check_health("http://127.0.0.1:9")
    assert not ok
    assert "127.0.0.1:9" in text
    assert server.check_status("http://127.0.0.1:9") == (None, "http://127.0.0.1:9 tells no engine status")
