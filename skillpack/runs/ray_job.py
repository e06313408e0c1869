"""Be one Ray job from this side: submit it, print its log, end with its exit code, stop it on TERM.

Started as a file by the supervisor, ``python ray_job.py ADDRESS JOB``, with the job as JSON; without
a job it only asks whether the cluster takes jobs. It needs the package ``ray`` and nothing of this pack.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from typing import Any

POLL = 1.0
UNREACHABLE_SECONDS = 120.0
"""How long a cluster may not answer before the job is given up as lost."""
MISSING = 3


class Stopped(Exception):
    """Somebody wants this job to end."""


def main() -> int:
    """Run the job to its end; return its exit code. Without a job: 0 if the cluster takes jobs."""
    address, job = sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else None
    try:
        from ray.job_submission import JobSubmissionClient
    except ImportError as error:
        print(f"error: Ray jobs need the package ray: {error}; pip install 'agentjet-skills[ray]'")
        return MISSING
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    try:
        client: Any = JobSubmissionClient(None if address == "auto" else address)
        if job is None:
            client.get_version()
            return 0
        client.submit_job(**job)
    except Stopped:
        return 128 + signal.SIGTERM
    except Exception as error:  # ray, requests and its address parser each raise their own
        print(f"error: no job can be submitted to Ray at {address}: {' '.join(str(error).split())[:300]}")
        return MISSING
    identity = job["submission_id"]
    try:
        return _follow(client, identity)
    except Stopped:
        client.stop_job(identity)
        _await_end(client, identity)
        return 128 + signal.SIGTERM


def _stop(number: int, frame: object) -> None:
    raise Stopped


def _follow(client: Any, identity: str) -> int:
    """Print the log as it comes, until the job has ended; return its exit code."""
    printed = 0
    while True:
        try:
            printed = asyncio.run(_print_log(client, identity, printed))
        except Stopped:
            raise
        except Exception as error:  # whatever a websocket to a dying cluster raises; the job's state decides
            print(f"(the log of the Ray job is interrupted: {error})", file=sys.stderr)
        status = _status(client, identity)
        if status is not None and status.is_terminal():
            break
        time.sleep(POLL)
    info = client.get_job_info(identity)
    code = info.driver_exit_code
    if str(status) == "SUCCEEDED":
        return 0
    print(f"Ray job {identity} ended as {status}: {info.message}")
    return code if isinstance(code, int) and code > 0 else 128 - code if isinstance(code, int) and code < 0 else 1


async def _print_log(client: Any, identity: str, printed: int) -> int:
    """Print the job's log from character ``printed`` on; return how many characters it has had."""
    seen = 0
    async for text in client.tail_job_logs(identity):
        new = text[max(0, printed - seen) :]
        seen += len(text)
        sys.stdout.write(new)
        sys.stdout.flush()
        printed = max(printed, seen)
    return printed


def _status(client: Any, identity: str) -> Any:
    """Return the job's status; None while the cluster does not answer. Ends the program if it stays silent."""
    deadline = time.monotonic() + UNREACHABLE_SECONDS
    while True:
        try:
            return client.get_job_status(identity)
        except (ConnectionError, RuntimeError) as error:
            if time.monotonic() > deadline:
                print(f"error: the Ray cluster does not answer any more: {error}")
                sys.exit(1)
            time.sleep(POLL)


def _await_end(client: Any, identity: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        status = _status(client, identity)
        if status is None or status.is_terminal():
            return
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
