#!/usr/bin/env python3
"""Tell whether distributions are installed in this interpreter. Standard library only.

Usage: installed.py NAME [FOLDER] [NAME ...]
A FOLDER (anything with a slash) behind a name asks that it is installed from that folder (pip's
direct_url.json). Exits 0 if all are there, 1 with the first that is not.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import metadata
from urllib.parse import unquote, urlparse


def source_of(name: str) -> str:
    """Return the folder that a distribution was installed from, or an empty text."""
    text = metadata.distribution(name).read_text("direct_url.json")
    url = urlparse(json.loads(text)["url"]) if text else urlparse("")
    return os.path.realpath(unquote(url.path)) if url.scheme == "file" else ""


def main() -> int:
    """Check what the command line names."""
    name = ""
    for argument in sys.argv[1:]:
        if "/" in argument:
            if source_of(name) != os.path.realpath(argument):
                print(f"{name} is not installed from {argument}")
                return 1
            continue
        name = argument
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            print(f"{name} is not installed")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
