"""Measure how long a script takes to show its help, against a bare interpreter.

    python benchmarks/scripts.py

Prints a ratio for each script of the skills; the aim is 10 at most.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

SKILLS = Path(__file__).resolve().parents[1] / "skills"


def best(command: list[str], runs: int = 7) -> float:
    """Return the shortest of some runs, in seconds."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    """Print the table."""
    bare = best([sys.executable, "-c", "pass"])
    print(f"python -c pass: {1000 * bare:.0f} ms")
    for script in sorted(SKILLS.glob("*/scripts/[!_]*.py")):
        ratio = best([sys.executable, str(script), "--help"]) / bare
        print(f"{ratio:5.1f}x  {script.relative_to(SKILLS)}")


if __name__ == "__main__":
    main()
