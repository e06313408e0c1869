#!/usr/bin/env python3
"""Choose a flash-attn for the torch of this interpreter: a prebuilt wheel that fits, or a build. Standard library only.

Usage: pick_flash_attn.py --table flash_attn_wheels.json [--release V] [--github-mirror PREFIX] [--wheel FILE]
Prints one line: "wheel <what pip installs>" or "source <release>"; the reason goes to stderr.
flash-attn's own setup.py guesses a wheel too, but 2.8.3 calls every CUDA from 12 on cu12, and it never
looks at the C library.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import re
import sys
from pathlib import Path


def numbers(version: str) -> tuple:
    """Return the leading numbers of a version: "2.8.0+cu128" → (2, 8, 0)."""
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0]))


def choose(table: dict, here: dict, release: str = "", github_mirror: str = "") -> dict:
    """Return {kind: wheel|index|source, value, release, reason} for an environment.

    ``here`` says torch, cuda (of the torch build), python (a cp tag), abi (TRUE or FALSE), arch and glibc.
    ``release`` narrows the choice to one release of flash-attn.
    """
    if not here["cuda"]:
        return {"kind": "none", "value": "", "release": "", "reason": "this torch was built without CUDA"}
    torch = ".".join(str(part) for part in numbers(here["torch"])[:2])
    cuda = str(numbers(here["cuda"])[0])
    wanted = {"torch": torch, "cuda": cuda, "python": here["python"], "abi": here["abi"], "arch": here["arch"]}
    missed = []
    for kind, entries in (("wheel", table["releases"]), ("index", table["indexes"])):
        for entry in entries:
            if release and entry["release"] != release:
                continue
            unfit = [key for key, value in wanted.items() if value not in entry[key]]
            if here["glibc"] and numbers(here["glibc"]) < numbers(entry["glibc"]):
                unfit.append("glibc {} < {}".format(here["glibc"], entry["glibc"]))
            if unfit:
                missed.append("{}: {}".format(entry["release"], ", ".join(unfit)))
                continue
            url = (table["url"] if kind == "wheel" else entry["url"]).format(
                release=entry["release"],
                cuda=cuda,
                torch=torch,
                abi=here["abi"],
                python=here["python"],
                arch=here["arch"],
            )
            if kind == "wheel" and github_mirror:
                url = github_mirror.rstrip("/") + "/" + url
            reason = "torch {}, CUDA {}, {}, C++11 ABI {}".format(torch, cuda, here["python"], here["abi"])
            return {"kind": kind, "value": url, "release": entry["release"], "reason": reason}
    build = release or (table["source"]["cuda13"] if numbers(here["cuda"]) >= (13,) else table["source"]["release"])
    return {"kind": "source", "value": build, "release": build, "reason": f"no wheel fits: {'; '.join(missed)}"}


def environment() -> dict:
    """Return what decides, read from the torch of this interpreter."""
    torch = importlib.import_module("torch")
    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "abi": "TRUE" if torch._C._GLIBCXX_USE_CXX11_ABI else "FALSE",
        "python": f"cp{sys.version_info[0]}{sys.version_info[1]}",
        "arch": platform.machine(),
        "glibc": platform.libc_ver()[1],
    }


def main() -> int:
    """Print the choice for this interpreter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--release", default="")
    parser.add_argument("--github-mirror", default="")
    parser.add_argument("--wheel", default="")
    options = parser.parse_args()
    if options.wheel:
        if not Path(options.wheel).is_file():
            sys.stderr.write(f"error: {options.wheel} is not there\n")
            return 1
        print("wheel " + options.wheel)
        return 0
    table = json.loads(options.table.read_text(encoding="utf-8"))
    found = choose(table, environment(), options.release, options.github_mirror)
    sys.stderr.write("flash-attn: {}\n".format(found["reason"]))
    if found["kind"] == "none":
        return 1
    if found["kind"] == "index":
        print("index {} flash-attn=={}".format(found["value"], found["release"]))
    else:
        print("{} {}".format(found["kind"], found["value"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
