"""How long 40 keys × 300,000 rows take to arrive as a frame, against a plain download of the same bytes.

A fake SwanLab serves the CSV files from a process of its own. The plain download is
``requests.get(link).content`` for one file after the other. Each job is measured in a process of
its own, turn by turn; ratios of the medians are printed, and the peak memory. The first case is a
link of 1 Gbit/s; the second is loopback without a limit, where reading the bytes costs next to
nothing and the ratio is that of the processors' work.

    python benchmarks/swanlab_fetch.py [--keys 40] [--rows 300000] [--rounds 3] [--link 1000] [--sdk]

``--sdk`` adds the SDK's own ``run.metrics(all=True)``, once, on loopback.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EVALS = Path(__file__).resolve().parent.parent / "skills" / "swanlab-fetch" / "evals"
BATCH = 16
JOBS = ("plain", "fetch", "fetch, filling the cache")
SDK = "the SDK's own way"


def serve(keys: int, rows: int, megabits: float) -> None:
    """Serve one run of the given size until stdin closes; print its address and the links of its files."""
    sys.path.insert(0, str(EVALS))
    import fake_swanlab
    import numpy
    import pyarrow
    from pyarrow import csv
    from sample_runs import Run

    names = [f"layer_{i:02d}/norm" for i in range(keys)]
    random = numpy.random.default_rng(0)
    steps = numpy.arange(rows)
    blobs: dict[str, bytes] = {}
    for start in range(0, keys, BATCH):
        part = names[start : start + BATCH]
        columns = {"step": steps}
        for name in part:
            columns[f"big-{name}_step"] = random.normal(size=rows)
            columns[f"big-{name}_timestamp"] = 1_772_352_000_000 + steps * 1000
        buffer = io.BytesIO()
        csv.write_csv(pyarrow.table(columns), buffer, csv.WriteOptions(quoting_style="none"))
        blobs[part[0]] = buffer.getvalue()
    run = Run("clbig000000000000000000001", "big12345", "big", blob=lambda asked: blobs[asked[0]])
    run.series = {name: [(rows - 1, 0.0, 0)] for name in names}
    server = fake_swanlab.FakeSwanLab({"ada/agent": [run]})
    server.switch.bytes_per_second = megabits * 1e6 / 8
    for number, blob in enumerate(blobs.values()):
        server.blobs[f"plain/{number}.csv"] = blob
    links = [f"{server.store_url}/plain/{number}.csv" for number in range(len(blobs))]
    print(json.dumps({"url": server.run_url("big12345"), "links": links, "bytes": sum(map(len, blobs.values()))}))
    sys.stdout.flush()
    sys.stdin.read()


def plain(links: list[str]) -> int:
    """Download files one after the other."""
    import requests

    return sum(len(requests.get(link, timeout=60).content) for link in links)


def fetch(url: str, cache: bool) -> int:
    """Fetch the run into a frame."""
    from skillpack.metrics import fetch_run

    result = fetch_run(url, cache=cache)
    assert result.ok, result.status
    return int(result.frame.size)


def sdk(url: str) -> int:
    """Fetch the run as the SDK does it: into lists of dictionaries."""
    import swanlab

    host, _, path = url.partition("/@")
    run = swanlab.Api(api_key=os.environ["SWANLAB_API_KEY"], host=host).run(path.replace("/runs/", "/"))
    keys = run.series().json()["keys"]
    return sum(len(one["metrics"]) for one in run.metrics(keys=keys, all=True)["list"])


def child(job: str, address: dict[str, object]) -> None:
    """Do one job, importing beforehand what it needs, and print its time and peak memory."""
    import pandas
    import pyarrow.csv
    import requests
    import swanlab

    del pandas, pyarrow, requests, swanlab
    before = time.perf_counter()
    if job == "plain":
        plain(address["links"])  # type: ignore[arg-type]
    elif job == SDK:
        sdk(str(address["url"]))
    else:
        fetch(str(address["url"]), cache=job == "fetch, filling the cache")
    seconds = time.perf_counter() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print("\n" + json.dumps({"seconds": seconds, "megabytes": peak}))


def measure(keys: int, rows: int, rounds: int, megabits: float, with_sdk: bool = False) -> None:
    """Measure all jobs against one server, and print."""
    here = [sys.executable, str(Path(__file__).resolve())]
    command = [*here, "--serve", "--keys", str(keys), "--rows", str(rows), "--link", str(megabits)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        assert server.stdin
        address = json.loads(server.stdout.readline())
        results: dict[str, list[dict[str, float]]] = {}
        with tempfile.TemporaryDirectory() as home:
            environ = {**os.environ, "SWANLAB_API_KEY": "Abc0123456789Def01234", "XDG_CACHE_HOME": home}
            environ.pop("SWANLAB_API_HOST", None)
            for number in range(rounds):
                environ["XDG_CACHE_HOME"] = f"{home}/{number}"
                for job in (*JOBS, SDK) if with_sdk and number == 0 else JOBS:
                    done = subprocess.run(
                        [*here, "--child", job, "--address", json.dumps(address)],
                        env=environ, capture_output=True, text=True, check=True,
                    )  # fmt: skip
                    results.setdefault(job, []).append(json.loads(done.stdout.splitlines()[-1]))
        server.stdin.close()
    link = f"a link of {megabits:g} Mbit/s" if megabits else "loopback without a limit"
    print(f"{keys} keys x {rows:,} rows, {address['bytes'] / 1e6:.0f} MB of CSV, {link}, median of {rounds}")
    base = statistics.median(result["seconds"] for result in results["plain"])
    for job in results:
        seconds = statistics.median(result["seconds"] for result in results[job])
        peak = max(result["megabytes"] for result in results[job])
        print(f"  {job:<26} {seconds:6.2f} s  {seconds / base:5.2f} x plain  peak {peak:5.0f} MB")


def main() -> None:
    """Parse the command line and run one role of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=40)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--link", type=float, default=1000.0, help="speed of the slower case in Mbit/s")
    parser.add_argument("--sdk", action="store_true", help="measure the SDK too")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.keys, options.rows, options.link)
    elif options.child:
        child(options.child, json.loads(options.address))
    else:
        measure(options.keys, options.rows, options.rounds, options.link)
        measure(options.keys, options.rows, options.rounds, 0.0, options.sdk)


if __name__ == "__main__":
    main()
