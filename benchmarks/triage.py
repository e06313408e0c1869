#!/usr/bin/env python3
"""Triage against ``grep -E`` with the same patterns, and its memory on a log of 5 GB.

    python benchmarks/triage.py [--gigabytes 5]

Prints lines per second of processor time of both on the same log, and the peak memory of triage at two sizes. The
log is made of whole training steps with ordinary chatter; it ends with an out-of-memory error.
grep only finds lines; triage also cleans, counts, ranks and reads the metrics.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from skillpack.triage.signatures import signatures

WORDS = (
    *("episode", "reward", "tool", "call", "response", "model", "user", "assistant", "agent", "environment"),
    *("update", "weights", "sync", "tokens", "prompt", "length", "worker", "finished", "claimed", "the", "of", "to"),
    *("query", "search", "result", "json", "http", "answer", "step", "policy", "cache", "0.532", "12", "384"),
)
STEP = (
    "(TaskRunner pid=77) step:{} - actor/entropy:0.61 - actor/grad_norm:0.4 - critic/rewards/mean:np.float64(0.5) - "
    "response_length/mean:612.5 - timing_s/step:93.4 - perf/throughput:812.0\n"
)
END = (
    "(WorkerDict pid=78)   File trainer.py, line 7, in update_actor\n"
    "(WorkerDict pid=78) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)


def chatter(rng: random.Random) -> str:
    """Return the lines between two steps: about 40 KB."""
    lines = []
    for number in range(300):
        words = " ".join(rng.choices(WORDS, k=14))
        lines.append(f"(TaskRunner pid=77) 2026-03-02 10:00:00.123 | INFO     | ajet.task_rollout:run:88 - {words}\n")
        if number % 60 == 0:
            lines.append("(TaskRunner pid=77) [Error] the tool said: no such page; trying another one\n")
    return "".join(lines)


def write_log(path: Path, size: int) -> int:
    """Write a log of about ``size`` bytes; return its number of lines."""
    rng = random.Random(7)
    texts = [chatter(rng) for _ in range(20)]
    written = lines = step = 0
    with path.open("w") as out:
        while written < size:
            step += 1
            text = texts[step % len(texts)] + STEP.format(step)
            out.write(text)
            written += len(text)
            lines += text.count("\n")
        out.write(END)
    return lines + END.count("\n")


def extended(pattern: str) -> str:
    """Return a Python pattern in the words of ``grep -E``."""
    pattern = re.sub(r"\(\?P<\w+>", "(", pattern).replace("(?:", "(").replace("(?i)", "").replace(r"\d", "[0-9]")
    return re.sub(r"\((?:\?[!=<][^()]*)\)", "", pattern).replace("*?", "*").replace("+?", "+")


def seconds_of_children() -> float:
    """Return the processor time that this process's children have used: other load on the machine does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds_of_grep(log: Path, folder: Path) -> float:
    """Return the processor time of ``grep -E`` with all patterns in one file."""
    patterns = folder / "patterns"
    patterns.write_text("\n".join(extended(one.pattern.pattern) for one in signatures().values()) + "\n")
    began = seconds_of_children()
    done = subprocess.run(["grep", "-E", "-c", "-f", str(patterns), str(log)], capture_output=True, text=True)
    if done.returncode > 1:
        raise SystemExit(f"grep: {done.stderr}")
    return seconds_of_children() - began


MEASURED = """
import json, resource, sys
from pathlib import Path
from skillpack.triage.facts import Facts
from skillpack.triage.judge import judge
from skillpack.triage.scan import scan_log
scan = scan_log(Path(sys.argv[1]))
verdict = judge({"log": scan}, Facts(ended=True), lambda key: None)
print(json.dumps([verdict.causes[0]["id"], scan.lines, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def measure(log: Path) -> tuple[float, float]:
    """Return processor seconds and peak MiB of triage in a process of its own; checks that it finds the cause."""
    began = seconds_of_children()
    done = subprocess.run([sys.executable, "-c", MEASURED, str(log)], capture_output=True, text=True, check=True)
    cause, _, peak = json.loads(done.stdout)
    if cause != "gpu-oom-train":
        raise SystemExit(f"triage found {cause}")
    return seconds_of_children() - began, peak


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=5.0, help="size of the big log")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        small = folder / "small.log"
        lines = write_log(small, 200_000_000)
        grep = seconds_of_grep(small, folder)
        ours, small_peak = measure(small)
        print(f"200 MB, {lines} lines: triage {lines / ours:,.0f} lines/s, grep -E {lines / grep:,.0f} lines/s")
        print(f"triage takes {ours / grep:.2f} times as long as grep -E with the same {len(signatures())} patterns")
        small.unlink()
        big = folder / "big.log"
        lines = write_log(big, int(options.gigabytes * 1e9))
        ours, peak = measure(big)
        print(f"{options.gigabytes:g} GB, {lines} lines: {lines / ours:,.0f} lines/s, {ours:.0f} s")
        print(f"peak memory {small_peak:.0f} MiB at 0.2 GB, {peak:.0f} MiB at {options.gigabytes:g} GB")


if __name__ == "__main__":
    main()
