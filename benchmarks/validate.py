"""Time ``skills validate`` on generated skills against skills-ref, and watch its memory.

Prints ratios: its time over that of skills-ref's ``validate`` called in one process on the same
files (aim: at most 1/5), and its peak memory on ten times as many skills (aim: flat).

    python benchmarks/validate.py [SKILLS]
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOPICS = """deploy metrics server training rollout config parse images tables invoices review code test suite database
schema migrate report summarise translate poem audio video robot arm sensor fetch crawl index search"""
WORDS = TOPICS.split()
GUIDE = "# Guide\n\nText.\n"
SCRIPT = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--input')\nparser.parse_args()\n"


def write_skill(folder: Path, number: int, draw: random.Random) -> None:
    """Write a skill such as people publish; every tenth has a script and a reference."""
    furnished = number % 10 == 0
    words = " ".join(draw.choice(WORDS) for _ in range(12))
    steps = "Read [the guide](references/guide.md), then:\n\n```bash\npython3 scripts/run.py --input x\n```\n"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        f"---\nname: {folder.name}\n"
        f'description: "Does {words}. Use when the user asks for {draw.choice(WORDS)} {number}."\n'
        f'license: Apache-2.0\nmetadata:\n  author: me\n  version: "1.{number}"\n'
        f"allowed-tools: Bash(git:*) Read\n---\n\n# Skill {number}\n\n## Steps\n\n{steps if furnished else ''}\n"
        + "Some text about what to do next. " * 40
        + "\n"
    )
    if furnished:
        for file, text in (("references/guide.md", GUIDE), ("scripts/run.py", SCRIPT)):
            (folder / file).parent.mkdir()
            (folder / file).write_text(text)


def validate(root: Path) -> tuple[float, float]:
    """Run ``skills validate --no-run`` over a folder; return its seconds, start included, and peak memory in MiB."""
    code = (
        "import resource, sys; from skillpack.cli import skills\n"
        "try: skills.main(['validate', sys.argv[1], '--no-run', '--json'], standalone_mode=False)\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, str(root)]
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    return time.perf_counter() - start, float(done.stderr.split()[-1])


def skills_ref(root: Path) -> float:
    """Call skills-ref's ``validate`` on every folder in this process and return the seconds."""
    from skills_ref.validator import validate as validate_one

    folders = sorted(root.iterdir())
    start = time.perf_counter()
    for folder in folders:
        problems = validate_one(folder)
        assert not problems, problems
    return time.perf_counter() - start


def main() -> None:
    """Generate, measure, print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    draw = random.Random(7)
    with tempfile.TemporaryDirectory() as scratch:
        few, many = Path(scratch) / "few", Path(scratch) / "many"
        for root, number in ((few, count // 10), (many, count)):
            for index in range(number):
                write_skill(root / f"skill-{index:05d}", index, draw)
        validate(few)  # warms the file cache
        ours_few, memory_few = validate(few)
        theirs = skills_ref(many)
        ours_many, memory_many = validate(many)
    print(f"{count // 10:6d} skills  {ours_few:6.2f} s, start included  {memory_few:6.1f} MiB at most")
    print(f"{count:6d} skills  {ours_many:6.2f} s, start included  {memory_many:6.1f} MiB at most")
    print(f"{count:6d} skills  {theirs:6.2f} s  skills-ref in one process")
    print(f"time over skills-ref's    {ours_many / theirs:.3f}  (aim: at most 0.2)")
    print(f"memory of ten times over  {memory_many / memory_few:.2f}  (aim: about 1)")


if __name__ == "__main__":
    main()
