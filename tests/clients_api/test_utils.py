"""The small tools that client scripts import."""

from __future__ import annotations

import stat
import subprocess
import sys
from importlib import import_module

import pytest

import ajet
from ajet.older_names import OLDER_NAMES
from ajet.utils.compute_madness import compute_string_madness, has_repeat
from ajet.utils.dynamic_import import cls_to_path, dynamic_import
from ajet.utils.files import replace_file
from ajet.utils.loopback import is_loopback, is_loopback_host
from ajet.utils.message_utils import is_token_overflow_message
from ajet.utils.retry import SwarmReceiveAbortException, TestFailException, retry_infinite, retry_with_backoff
from ajet.utils.sington import singleton


@pytest.mark.parametrize("older", OLDER_NAMES)
def test_older_paths_give_the_present_module(older):
    assert import_module(older) is import_module(OLDER_NAMES[older])


def test_a_replaced_file_keeps_its_permissions_and_a_new_one_has_the_usual_ones(tmp_path):
    secret, plain = tmp_path / "secret", tmp_path / "plain"
    secret.touch(mode=0o600)
    replace_file(secret, "new")
    replace_file(plain, b"new")
    (tmp_path / "usual").touch()
    assert (secret.read_text(), plain.read_text()) == ("new", "new")
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert plain.stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        replace_file(tmp_path / "folder", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_every_name_of_the_package_can_be_imported():
    for name in ajet.__all__:
        assert getattr(ajet, name) is not None


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("ajet.copilot.job", ["AgentJetJob"]),
        ("ajet.schema.task", ["Task", "WorkflowTask", "WorkflowOutput"]),
        ("ajet.workflow", ["Workflow", "WorkflowTask", "WorkflowOutput"]),
        ("ajet.tuner_lib.as_oai_baseurl_apikey", ["OpenaiBaseUrlAndApiKey"]),
        (
            "ajet.tuner_lib.experimental.swarm_client",
            [
                "SwarmClient",
                "SwarmServerOfflineError",
                "SwarmThrottlePolicy",
                "auto_train_with_dataset",
                "raise_for_status_with_detail",
                "run_episodes_until_all_complete",
            ],
        ),
        ("ajet.tuner_lib.experimental.interchange_utils", ["SwarmThrottlePolicy"]),
        ("ajet.tuner_lib.experimental.swarm_overwatch_utils", ["CurrentBatchRolloutPoolInformation"]),
        ("ajet.task_reader", ["RouterTaskReader", "HuggingFaceTaskReader"]),
        ("ajet.task_reader.task_reader_base", ["BaseTaskReader"]),
        ("ajet.task_judge.base_judge", ["BaseJudge"]),
        (
            "ajet.default_config.ajet_config_schema",
            ["AjetTaskReader", "HuggingfaceDatRepo", "JsonlDatasetFile", "JsonlTrainingFp", "Config"],
        ),
        (
            "ajet.utils.thread_executors",
            ["PeriodicDrainThreadPoolExecutor", "TaskCountLimitedThreadPoolExecutor", "BoundedThreadPoolExecutor"],
        ),
    ],
)
def test_public_imports(module, names):
    found = import_module(module)
    assert [name for name in names if not hasattr(found, name)] == []


def test_importing_the_package_imports_nothing_heavy():
    code = "import ajet, sys; print([m for m in ('pydantic', 'httpx', 'numpy', 'yaml', 'openai') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_retry_pauses_by_the_backoff_and_raises_the_last_error():
    attempts: list[int] = []

    @retry_with_backoff(max_retry=3, backoff_fn=lambda attempt: attempts.append(attempt) or 0)
    def broken() -> None:
        raise OSError(f"attempt {len(attempts)}")

    with pytest.raises(OSError, match="attempt 2"):
        broken()
    assert attempts == [0, 1]


def test_retry_takes_its_count_from_an_attribute_and_lets_test_ends_pass():
    class Agent:
        max_tries = 5
        calls = 0

        @retry_with_backoff(max_retry=2, backoff_fn=lambda _: 0, max_retry_attr="max_tries")
        def act(self) -> None:
            self.calls += 1
            raise RuntimeError

        @retry_with_backoff(max_retry=2, backoff_fn=lambda _: 0)
        def fail_test(self) -> None:
            self.calls += 1
            raise TestFailException

    agent = Agent()
    with pytest.raises(RuntimeError):
        agent.act()
    assert agent.calls == 5
    agent.calls = 0
    with pytest.raises(TestFailException):
        agent.fail_test()
    assert agent.calls == 1


def test_an_abort_of_the_server_becomes_none():
    @retry_infinite(backoff_fn=lambda _: 0)
    def aborted() -> None:
        raise SwarmReceiveAbortException

    assert aborted() is None


def test_singleton_keeps_the_first_instance():
    @singleton
    class Counter:
        def __init__(self, start: int) -> None:
            self.start = start

    assert Counter(3) is Counter(4)
    assert Counter().start == 3


@pytest.mark.parametrize(
    ("content", "overflow"),
    [
        ("AgentJet: Exceeded max model context length. token_overflow(9 >= 5)", True),
        (b"AgentJet: Exceeded max model context length. token_overflow(9 >= 5)", True),
        ({"role": "assistant", "content": "Exceeded max model context length. token_overflow(9 >= 5)"}, True),
        ({"content": None}, False),
        ("a plain answer", False),
        (None, False),
    ],
)
def test_token_overflow_is_recognised(content, overflow):
    assert is_token_overflow_message(content) is overflow


def test_classes_are_found_by_module_and_by_file(tmp_path):
    (tmp_path / "neighbour.py").write_text("VALUE = 7\n")
    (tmp_path / "agent.py").write_text("from neighbour import VALUE\nclass Agent:\n    value = VALUE\n")
    found = dynamic_import(f"{tmp_path}/agent.py->Agent")
    assert found.value == 7
    assert dynamic_import(f"{tmp_path}/agent.py->Agent") is found
    assert dynamic_import(cls_to_path(ajet.WorkflowOutput)) is ajet.WorkflowOutput


@pytest.mark.parametrize(
    ("path", "error", "says"),
    [
        ("ajet.schema.task", ValueError, "names no class"),
        ("ajet.schema.task->Nobody", AttributeError, "Nobody"),
        ("no/such/file.py->Agent", ImportError, "no/such/file.py"),
        ("no.such.module->Agent", ImportError, "no"),
    ],
)
def test_a_class_that_is_not_there_is_named(path, error, says):
    with pytest.raises(error, match=says):
        dynamic_import(path)


def test_madness_is_repetition_or_undecodable_text():
    assert has_repeat(["a"] * 11)
    assert not has_repeat(list("abcdefgh") * 10)
    assert compute_string_madness("word " * 30) == -1.0
    assert compute_string_madness("broken \ufffd text") == -1.0
    assert compute_string_madness("The answer is 7.") == 0.0
    assert compute_string_madness("word " * 30, checklist=["other"]) == 0.0


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("localhost", True),
        ("LOCALHOST:10086", True),
        ("127.0.0.1:80", True),
        ("127.8.9.10", True),
        ("[::1]", True),
        ("[::1]:10086", True),
        ("", False),
        ("0.0.0.0:10086", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com:80", False),
        ("127.0.0.1:80@example.com", False),
        ("user@127.0.0.1:80", False),
        ("10.0.0.1", False),
    ],
)
def test_a_host_is_told_to_be_loopback(host, is_ours):
    assert is_loopback_host(host) is is_ours


def test_a_url_of_the_any_address_stays_on_this_machine():
    assert is_loopback("http://0.0.0.0:10086")
    assert is_loopback("http://[::]:10086/v1")
    assert is_loopback("http://localhost")
    assert not is_loopback("http://10.0.0.1:10086")
