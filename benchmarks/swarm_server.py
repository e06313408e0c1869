"""Measure the reference server: claim→end cycles, chat calls, pool snapshots, memory.

    python benchmarks/swarm_server.py [--cycles 4000] [--claimers 1,16,64]

The load is a raw asyncio HTTP/1.1 keep-alive client, one connection per claimer, in this process;
the server runs in a second one. Each figure is printed beside that of a released server, measured
in the same way on two cores of an AMD EPYC (2026-05 checkout), and as a ratio to a bare uvicorn
application that answers a constant, measured in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RELEASED = {
    "cycles": {1: 768, 16: 1156, 64: 1101},
    "claim_p99_ms": {1: 0.5, 16: 6.7, 64: 88.0},
    "chat": {1: 623, 16: 999, 64: 857},
}

BARE = """
import sys, socket, uvicorn
async def app(scope, receive, send):
    while (await receive()).get("more_body"): pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"16")]})
    await send({"type": "http.response.body", "body": b'{"success":true}'})
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else no TCP_NODELAY
listener.bind(("127.0.0.1", 0)); listener.listen(1024)
print('{"url": "http://127.0.0.1:%d"}' % listener.getsockname()[1], flush=True)
import uvloop
uvloop.run(uvicorn.Server(uvicorn.Config(app, lifespan="off", access_log=False, log_level="error")).serve([listener]))
"""


class Connection:
    """One keep-alive connection that sends JSON and reads JSON."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def open(self) -> Connection:
        """Connect."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
        return self

    async def post(self, path: str, body: dict, key: str = "") -> dict:
        """POST a JSON object."""
        data = json.dumps(body).encode()
        authorization = f"authorization: Bearer {key}\r\n" if key else ""
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\n{authorization}content-length: {len(data)}\r\n\r\n"
        return await self._exchange(head.encode() + data)

    async def get(self, path: str) -> dict:
        """GET a JSON object."""
        return await self._exchange(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())

    async def raw(self, path: str) -> bytes:
        """GET a body, unread."""
        return await self._body(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())

    async def _exchange(self, data: bytes) -> dict:
        return json.loads(await self._body(data))

    async def _body(self, data: bytes) -> bytes:
        self.writer.write(data)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        return await self.reader.readexactly(length)


def start(command: list[str], folder: str) -> tuple[subprocess.Popen, int]:
    """Start a server; return it and its port."""
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout
    return server, int(json.loads(server.stdout.readline())["url"].rsplit(":", 1)[1])


async def cycles(port: int, claimers: int, total: int, chats: int = 0) -> dict:
    """Run claim→(chat)→end cycles; return cycles per second and claim percentiles in milliseconds."""
    claims: list[float] = []
    left = iter(range(total))

    async def claimer(number: int) -> None:
        connection = await Connection(port).open()
        opened = False  # the first claim of a connection waits for all the others to open, in this process
        for _ in left:
            began = time.perf_counter()
            claim = await connection.post(
                "/claim_episode",
                {
                    "client_uuid": f"c{number}",
                    "episode_type": "train",
                    "discard_episode_timeout": 60,
                    "wait_seconds": 5,
                },
            )
            if opened:
                claims.append(time.perf_counter() - began)
            opened = True
            for _ in range(chats):
                answer = await connection.post(
                    "/v1/chat/completions",
                    {"messages": [{"role": "user", "content": "Add 3 and 4."}]},
                    claim["openai_api_key"],
                )
                assert answer["choices"]
            output = {"reward": 1.0, "metadata": {"task_id": f"t{number}"}}
            ended = await connection.post(
                "/end_episode",
                {
                    "client_uuid": f"c{number}",
                    "episode_uuid": claim["episode_uuid"],
                    "workflow_output": output,
                    "task_id": f"t{number}",
                },
            )
            assert ended["success"], ended
        connection.writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(claimer(number) for number in range(claimers)))
    seconds = time.perf_counter() - began
    claims.sort()
    return {
        "cycles": total / seconds,
        "claim_p50_ms": 1000 * claims[len(claims) // 2],
        "claim_p99_ms": 1000 * claims[int(len(claims) * 0.99)],
    }


def cpu_seconds(process: subprocess.Popen) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def constant(port: int, connections: int, total: int) -> float:
    """Return requests per second of a server that answers a constant."""
    left = iter(range(total))

    async def loop() -> None:
        connection = await Connection(port).open()
        for _ in left:
            await connection.post("/x", {"client_uuid": "c", "episode_type": "train", "discard_episode_timeout": 60})
        connection.writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(loop() for _ in range(connections)))
    return total / (time.perf_counter() - began)


async def snapshots(port: int, claimed: int) -> dict:
    """Claim ``claimed`` episodes, then time 45 pool snapshots; return milliseconds.

    ``stall`` is the longest that a request beside them (one that does nothing) had to wait, in
    excess of what it waits on an idle server: what a snapshot costs everybody else.
    """
    connection = await Connection(port).open()
    for number in range(claimed):
        await connection.post(
            "/claim_episode", {"client_uuid": f"c{number % 7}", "episode_type": "train", "discard_episode_timeout": 600}
        )
    beside = await Connection(port).open()
    stop = asyncio.Event()

    async def small_requests() -> list[float]:
        waits = []
        while not stop.is_set():
            began = time.perf_counter()
            await beside.get("/get_engine_status")
            waits.append(time.perf_counter() - began)
        return sorted(waits)

    bodies: list[bytes] = []

    async def asked() -> list[float]:
        times = []
        for _ in range(45):
            began = time.perf_counter()
            body = await connection.raw("/get_current_batch_rollout_pool_information")
            times.append(time.perf_counter() - began)
            bodies.append(body)
        return sorted(times)

    alone = await asked()
    other = asyncio.create_task(small_requests())
    await asked()
    stop.set()
    waits = await other
    assert {len(json.loads(body)["running_episode_details"]) for body in bodies} == {claimed}
    connection.writer.close()
    beside.writer.close()
    return {
        "p50_ms": 1000 * alone[22],
        "max_ms": 1000 * alone[-1],
        "beside_p50_ms": 1000 * waits[len(waits) // 2],
        "beside_p99_ms": 1000 * waits[int(len(waits) * 0.99)],
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=4000)
    parser.add_argument("--claimers", default="1,16,64")
    options = parser.parse_args()
    claimers = [int(one) for one in options.claimers.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.yaml"
        path.write_text(
            "ajet: {experiment_name: bench, data: {train_batch_size: 1000000},"
            " rollout: {num_repeat: 4, max_env_worker: 10000},"
            " trainer_common: {logger: console, total_training_steps: 1}}\n"
        )
        bare, bare_port = start([sys.executable, "-c", BARE], folder)
        engine = [sys.executable, "-m", "ajet.swarm_cli", "start", "--swarm-port", "0", "--conf", str(path), "--start"]
        server, port = start(engine, folder)
        try:
            for number in claimers:
                floor = asyncio.run(constant(bare_port, number, options.cycles * 2)) / 2
                used = cpu_seconds(server)
                found = asyncio.run(cycles(port, number, options.cycles))
                used = (cpu_seconds(server) - used) / options.cycles
                released = RELEASED["cycles"].get(number)
                against = f"{found['cycles'] / released:.1f}x released ({released}/s)" if released else ""
                print(
                    f"claim→end, {number:3d} claimers: {found['cycles']:7.0f}/s  {against}, "
                    f"{found['cycles'] / floor:.2f} of bare uvicorn; claim p50 {found['claim_p50_ms']:.2f} ms "
                    f"p99 {found['claim_p99_ms']:.2f} ms (released {RELEASED['claim_p99_ms'].get(number)}); "
                    f"{1e6 * used:.0f} µs of the server's processor, so {1 / used:.0f}/s on a core of its own"
                )
            for number in claimers:
                found = asyncio.run(cycles(port, number, options.cycles // 4, chats=3))
                calls, released = 3 * found["cycles"], RELEASED["chat"].get(number)
                against = f"{calls / released:.1f}x released ({released}/s)" if released else ""
                print(f"chat calls, {number:3d} claimers: {calls:7.0f}/s  {against}")
            found = asyncio.run(snapshots(port, 5000))
            print(
                f"pool snapshot of 5,000 running: p50 {found['p50_ms']:.1f} ms, "
                f"max {found['max_ms']:.1f} (released 9.5 / 12.8); "
                f"a small request beside it p50 {found['beside_p50_ms']:.1f} ms, p99 {found['beside_p99_ms']:.1f}"
            )
            status = Path(f"/proc/{server.pid}/status").read_text()
            print(
                "resident memory with 10,000 slots:",
                next(line.split()[1] for line in status.splitlines() if "VmRSS" in line),
                "KiB",
            )
        finally:
            server.terminate()
            bare.terminate()
            server.wait()
            bare.wait()


if __name__ == "__main__":
    main()
