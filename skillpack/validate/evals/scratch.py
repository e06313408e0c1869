"""The folders and the environment that a script sees while it is tried."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

RECORD = ".agentjet-skills.json"
"""What ``skills install`` leaves in an installed skill; it names the pack's interpreter."""

PASSED_ON = ("LD_LIBRARY_PATH", "LOGNAME", "TZ", "USER")
"""Variables besides PATH that a script gets from the caller; no keys, no proxies, no Python settings."""

OUTPUTS = ("stdin", "stdout", "stderr")


class Scratch:
    """A folder with ``home``, ``work`` (where the script starts) and ``tmp``, and its standard streams beside them.

    ``outside``, which is not made here, is for what stands in for other places (see that module).
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home, self.work, self.tmp = root / "home", root / "work", root / "tmp"
        self.stdin, self.stdout, self.stderr = (root / name for name in OUTPUTS)
        self.outside = root.with_name(f"{root.name}-outside")
        for folder in (self.home, self.work, self.tmp):
            folder.mkdir(parents=True)

    def lay(self, files: Mapping[str, str]) -> None:
        """Write ``files`` (relative path: text) into ``work``. Raises ValueError for a path that leaves it."""
        for name, text in files.items():
            path = self.work / name
            if not Path(os.path.normpath(path)).is_relative_to(self.work):
                raise ValueError(f"the file {name!r} would lie outside the working directory")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def environment(self, *first_on_path: Path) -> dict[str, str]:
        """Return a clean environment with these folders as HOME and TMPDIR."""
        path = os.pathsep.join([*map(str, first_on_path), os.environ.get("PATH", os.defpath)])
        return {
            **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
            "PATH": path,
            "HOME": str(self.home),
            "TMPDIR": str(self.tmp),
            "TMUX_TMPDIR": str(self.tmp),
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def strays(self) -> list[str]:
        """Return what lies beside the folders, where no script has any business."""
        known = {self.home.name, self.work.name, self.tmp.name, *OUTPUTS}
        return sorted(str(entry) for entry in self.root.iterdir() if entry.name not in known)

    def remove(self) -> None:
        """Delete it all, folders without write permission included."""
        remove_tree(self.root)
        remove_tree(self.outside)


def remove_tree(root: Path) -> None:
    """Delete a folder, although a script may have taken its own permissions away in it."""
    for parent, folders, _ in os.walk(root):  # a folder is listed after its parent has been dealt with
        for folder in folders:
            path = Path(parent, folder)
            if not path.is_symlink():
                path.chmod(stat.S_IRWXU)
    shutil.rmtree(root, ignore_errors=True)


def shim(folder: Path, python: Path) -> Path:
    """Make a folder for PATH in which ``python3`` and ``python`` are that interpreter; return it.

    They are scripts, not links: an interpreter of a virtual environment finds its packages by its own path.
    """
    folder.mkdir(parents=True)
    for name in ("python3", "python"):
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(str(python))} "$@"\n')
        program.chmod(0o755)
    return folder


def inventory(folder: Path) -> dict[str, tuple[int, int]]:
    """Return {relative path: (time of change in ns, size in bytes)} of all below a folder, links not followed.

    A folder has zeros: it changes with what is in it. Python's own caches are left out.
    """
    found = {}
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in (*folders, *files):
            path = Path(parent, name)
            status = path.lstat()
            found[str(path.relative_to(folder))] = (
                (0, 0) if stat.S_ISDIR(status.st_mode) else (status.st_mtime_ns, status.st_size)
            )
    return found


def changes(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """Return the paths that were added, changed or removed between two inventories; of a new folder that alone."""
    found = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return sorted(path for path in found if found.isdisjoint(map(str, Path(path).parents)))
