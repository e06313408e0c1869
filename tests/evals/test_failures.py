"""Each way in which a script can misbehave is a failure that is named."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from skillpack.validate.evals import CaseResult, confine, run_scripts

Try = Callable[..., CaseResult]


def alive(marker: str) -> bool:
    """Tell whether a process with this text on its command line runs."""
    listing = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, text=True, check=True).stdout
    return any(marker in line for line in listing.splitlines())


def test_a_good_script_passes_with_its_implicit_cases(skill: Path) -> None:
    results = run_scripts([skill])[skill]
    assert [(result.case, result.ok, result.why) for result in results] == [
        ("number.py help", True, ""),
        ("number.py unknown flag", True, ""),
    ]


def test_a_result_says_how_to_run_the_case_again(try_case: Try) -> None:
    result = try_case("", "--n", "3", "--json", expect=['"n": 3'])
    assert (result.command, result.ok, result.exit_code) == ("python3 scripts/number.py --n 3 --json", True, 0)


@pytest.mark.parametrize(
    ("do", "fields", "cause"),
    [
        ("sys.exit(1)", {}, "wrong exit code: expected 0, came 1"),
        ("", {"exit_code": 3}, "wrong exit code: expected 3, came 0"),
        ("os.abort()", {}, "(ended by SIGABRT)"),
        ("time.sleep(60)", {"timeout": 0.5}, "hangs: no end within 0.5 s"),
        ("input('Sure? ')", {}, "prompts: it waits for an answer on its standard input after 'Sure? "),
        ("sys.stdin.read()", {}, "prompts:"),
        ("import getpass; getpass.getpass('Key: ')", {}, "prompts:"),
        ("subprocess.run(['sh', '-c', 'read answer'])", {}, "prompts:"),
        ("open('/dev/tty')", {}, "prompts:"),
        ("while True: input('y/n? ')", {"timeout": 5}, "prompts:"),
        ("print('starting')", {"args": ["--json"]}, "prints beside its JSON: 'starting' stands before"),
        ("import atexit; atexit.register(print, 'bye')", {"args": ["--json"]}, "'bye' stands behind the document"),
        ("print('{}')", {"args": ["--json"]}, "two JSON documents on stdout"),
        ("print('[NaN]'); sys.exit()", {"args": ["--json"]}, "NaN is no JSON"),
        ("sys.exit()", {"args": ["--json"]}, "no JSON: expected one document on stdout, came nothing"),
        ("", {"expect": ["forty-two"]}, "missing text: expected 'forty-two'"),
        ("", {"reject": ['"n"']}, "rejected text: '\"n\"'"),
        ("raise ValueError('boom')", {"exit_code": 1}, "ends in a traceback: ValueError: boom"),
        ("print('[' * 9_000); sys.exit()", {"args": ["--json"]}, "maximum recursion depth"),
        ("import no_such_package.part", {}, "lacks the package 'no_such_package'; expected it in the interpreter"),
        ("print('x' * 10_000)", {}, "characters on stdout, the limit is 10000"),
        ("open('../beside', 'w')", {}, "writes outside the scratch directory: "),
    ],
)
def test_a_failure_is_named(try_case: Try, do: str, fields: dict, cause: str) -> None:
    result = try_case(do, *fields.pop("args", []), **fields)
    assert not result.ok
    assert cause in result.why


def test_why_ends_with_what_stderr_said(try_case: Try) -> None:
    result = try_case("print('no such key: train.lr', file=sys.stderr); sys.exit(2)")
    assert result.why == "wrong exit code: expected 0, came 2 | stderr: no such key: train.lr"


@pytest.mark.parametrize("where", ["skill", "temporary"])
def test_a_write_outside_is_named_and_refused(try_case: Try, skill: Path, tmp_path: Path, where: str) -> None:
    target = (skill if where == "skill" else tmp_path) / "cache.json"
    result = try_case(f"pathlib.Path({str(target)!r}).write_text('1')")
    assert f"writes outside the scratch directory: {target}" in result.why
    assert confine.method() == "none" or not target.exists()


@pytest.mark.parametrize(
    "command",
    ["echo 1 > {target}", "mkdir {target}", "touch {target}", "cp /etc/hostname {target}", "ln -s x {target}"],
)
@pytest.mark.skipif(confine.method() == "none", reason="nothing here keeps a script from writing")
def test_a_write_by_the_shell_is_named(skill: Path, tmp_path: Path, command: str) -> None:
    target = tmp_path / "cache"
    (skill / "scripts" / "write.sh").write_text(f"{command.format(target=target)} || exit 1\n")
    (skill / "evals" / "scripts.yaml").write_text("cases: [{name: it, script: write.sh}]")
    assert run_scripts([skill])[skill][-1].why.startswith(f"writes outside the scratch directory: {target}; wrong exit")


def test_what_is_refused_and_borne_is_no_failure(try_case: Try) -> None:
    assert try_case("print('/usr/lib/x: Permission denied', file=sys.stderr)").why == ""


def test_a_traceback_that_is_quoted_is_no_failure(try_case: Try) -> None:
    assert try_case("print('the run ended in: Traceback (most recent call last) ...')").why == ""


def test_without_a_sandbox_a_write_into_the_skill_is_still_named(
    try_case: Try, skill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confine, "method", lambda: "none")
    result = try_case("pathlib.Path(sys.argv[0]).with_name('cache.json').write_text('1')")
    assert result.why == f"writes outside the scratch directory: {skill / 'scripts' / 'cache.json'}"


@pytest.mark.skipif(confine.method() == "none", reason="nothing here keeps a script from writing")
@pytest.mark.parametrize(
    "do",
    [
        "os.rename('a', str(pathlib.Path.home() / 'b'))",
        "subprocess.run('echo 1 > /dev/null; echo 2 > $HOME/x; ln -s x $TMPDIR/y', shell=True, check=True)",
        "import multiprocessing; multiprocessing.Lock()",
        "import socket; socket.socket(socket.AF_UNIX).bind(os.environ['TMPDIR'] + '/socket')",
    ],
)
def test_scratch_folders_and_devices_can_be_written(try_case: Try, do: str) -> None:
    assert try_case(do, files={"a": ""}).why == ""


@pytest.mark.parametrize(
    "start",
    [
        "subprocess.Popen(['sleep', '{n}'])",
        "subprocess.Popen(['sleep', '{n}'], start_new_session=True)",
        "subprocess.Popen(['sleep', '{n}'], start_new_session=True, env={{}}, cwd='/')",
        "subprocess.run('setsid sh -c \"sleep {n} & exit\" >/dev/null 2>&1 &', shell=True)",
        "os.fork() or (os.setsid(), os.fork() or os.execvp('sleep', ['sleep', '{n}']))",
    ],
)
def test_a_leaked_process_is_named_and_ended(try_case: Try, start: str) -> None:
    if sys.platform != "linux" and "setsid" in start:
        pytest.skip("only Linux lets a process adopt daemons")
    marker = f"86{os.getpid()}"
    result = try_case(start.format(n=marker))
    assert f"leaks a process: still running after its end: sleep {marker}" in result.why
    assert not alive(f"sleep {marker}")


def test_no_daemon_slips_through_while_it_detaches(skill: Path) -> None:
    marker = f"83{os.getpid()}"
    files = {"one.sh": "setsid sh two.sh &\n", "two.sh": f"setsid sleep {marker} &\n"}
    case = {"script": "number.py", "args": ["--do", "subprocess.Popen(['sh', 'one.sh'])"], "files": files}
    cases = [{"name": f"try {number}", **case} for number in range(12)]
    (skill / "evals" / "scripts.yaml").write_text(yaml.safe_dump({"cases": cases}))
    found = run_scripts([skill], jobs=12)[skill][2:]
    assert [result.case for result in found if f"sleep {marker}" not in result.why] == []
    assert not alive(f"sleep {marker}")


def test_a_tmux_server_is_a_leak_and_private(try_case: Try) -> None:
    if shutil.which("tmux") is None:
        pytest.skip("no tmux here")
    result = try_case("subprocess.run(['tmux', 'new-session', '-d', '-s', 'ajet-case', 'sleep 60'], check=True)")
    assert "leaks a process" in result.why
    assert "tmux" in result.why
    listing = subprocess.run(["tmux", "ls"], capture_output=True, text=True, check=False)
    assert "ajet-case" not in listing.stdout


def test_a_hang_is_ended_with_all_that_it_started(try_case: Try) -> None:
    marker = f"87{os.getpid()}"
    result = try_case(f"subprocess.run(['sleep', '{marker}'])", timeout=0.5)
    assert "hangs" in result.why
    assert not alive(f"sleep {marker}")


def test_background_processes_may_be_meant(try_case: Try) -> None:
    marker = f"88{os.getpid()}"
    assert try_case(f"subprocess.Popen(['sleep', '{marker}'])", background=True).why == ""
    assert not alive(f"sleep {marker}")


def test_background_processes_last_until_the_last_command(try_case: Try) -> None:
    marker = f"85{os.getpid()}"
    first = ["number.py", "--do", f"subprocess.Popen(['sleep', '{marker}'])"]
    do = "subprocess.run(\"ps -A -o args= | grep '^sleep '\", shell=True)"
    assert try_case(do, before=[first], background=True, expect=[f"sleep {marker}\n"]).why == ""
    assert not alive(f"sleep {marker}")
    assert "missing text" in try_case(do, before=[first], expect=[f"sleep {marker}\n"]).why
    fails = ["number.py", "--n", "many"]
    assert "run before, ended with 2" in try_case(do, before=[first, fails], background=True).why
    assert not alive(f"sleep {marker}")


def test_a_script_that_kills_its_supervisor_fails_alone(skill: Path) -> None:
    marker = f"84{os.getpid()}"
    do = f"os.kill(os.getppid(), 9); os.execvp('sleep', ['sleep', '{marker}'])"
    cases = [
        {"name": "kill", "script": "number.py", "args": ["--do", do]},
        {"name": "next", "script": "number.py"},
    ]
    (skill / "evals" / "scripts.yaml").write_text(yaml.safe_dump({"cases": cases}))
    *_, kill, after = run_scripts([skill], jobs=1)[skill]
    assert not kill.ok
    assert after.ok
    assert not alive(f"sleep {marker}")


def test_commands_before_share_the_scratch_folders(try_case: Try) -> None:
    first = ["number.py", "--do", "open('left', 'w').write('7')"]
    assert try_case("print(open('left').read())", before=[first], expect=["7"]).why == ""
    failed = try_case("", before=[["number.py", "--n", "many"]])
    assert failed.why.startswith("`number.py --n many`, run before, ended with 2 | stderr: ")


def test_the_environment_is_clean(try_case: Try, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "HTTPS_PROXY", "PYTHONPATH", "TMUX"):
        monkeypatch.setenv(name, "leaked-from-outside")
    result = try_case(
        "print(dict(os.environ), os.getcwd())",
        env={"MINE": "{work}/x"},
        expect=["'MINE': '/"],
        reject=["leaked-from-outside", str(Path.home()) + "'"],
    )
    assert result.why == ""


def test_stdin_files_and_values_reach_the_script(try_case: Try) -> None:
    result = try_case(
        "print(sys.stdin.read(), open('conf/job.yaml').read(), sys.argv[-1])",
        "--n",
        "5",
        stdin="over stdin",
        files={"conf/job.yaml": "where: {home} not: {unknown}"},
        expect=["over stdin where: /", "/home not: {unknown}"],
    )
    assert result.why == ""


def test_empty_stdin_may_be_read(try_case: Try) -> None:
    assert try_case("assert sys.stdin.read() == ''", stdin="").why == ""


def test_a_file_may_not_be_laid_outside(try_case: Try) -> None:
    assert "'../x' would lie outside" in try_case("", files={"../x": ""}).why


def test_stubs_go_first_on_path(try_case: Try, skill: Path) -> None:
    stub = skill / "evals" / "stubs" / "nvidia-smi"
    stub.parent.mkdir()
    stub.write_text("#!/bin/sh\necho eight GPUs\n")
    stub.chmod(0o755)
    assert try_case("subprocess.run(['nvidia-smi'])", stubs=["evals/stubs"], expect=["eight GPUs"]).why == ""


def test_python_chooses_the_interpreter_for_scripts_and_for_what_they_start(skill: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    do = "print(sys.prefix); sys.stdout.flush(); subprocess.run(['python3', '-c', 'import sys; print(sys.prefix)'])"
    case = {
        "name": "it",
        "script": "number.py",
        "args": ["--do", do],
        "expect": [f"{tmp_path}/venv\n{tmp_path}/venv\n"],
    }
    (skill / "evals" / "scripts.yaml").write_text(yaml.safe_dump({"cases": [case]}))
    assert run_scripts([skill], python=tmp_path / "venv" / "bin" / "python")[skill][-1].why == ""


def test_shell_scripts_run_too(skill: Path) -> None:
    (skill / "scripts" / "count.sh").write_text("echo hello\n")
    helped, unknown, *_ = run_scripts([skill])[skill]
    assert helped.case == "count.sh help"
    assert "it does not list the exit codes" in helped.advice
    assert "wrong exit code: expected 2, came 0; prints 'hello' on stdout" in unknown.why


def test_scratch_is_removed_even_if_it_was_locked(
    try_case: Try, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert try_case("os.makedirs('a/b/c/d'); [os.chmod(path, 0) for path in ('a/b/c', 'a/b', 'a')]").ok
    assert not list(tmp_path.glob("skills-*"))


def test_skills_keep_the_order_of_their_files_in_parallel(tmp_path: Path, skill: Path) -> None:
    cases = [{"name": f"case {n}", "script": "number.py", "args": ["--n", n]} for n in range(6)]
    (skill / "evals" / "scripts.yaml").write_text(yaml.safe_dump({"cases": cases}))
    copies = [shutil.copytree(skill, tmp_path / f"copy-{n}") for n in range(2)]
    results = run_scripts(copies, jobs=4)
    for copy in copies:
        assert [result.case for result in results[copy]][2:] == [f"case {n}" for n in range(6)]
        assert all(result.ok for result in results[copy])


def test_a_folder_without_scripts_has_no_results(tmp_path: Path) -> None:
    assert run_scripts([tmp_path]) == {tmp_path: []}
