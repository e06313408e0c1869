"""Classes named in configurations: ``package.module->Name`` or ``path/file.py->Name``."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def dynamic_import(path: str) -> Any:
    """Import ``module->Name`` or ``file.py->Name`` and return the object.

    Raises ValueError for a text of another form, ImportError or AttributeError that name what
    was not found; an exception of the module itself passes.
    """
    module, arrow, name = path.partition("->")
    if not arrow or not module.strip() or not name.strip():
        raise ValueError(f"{path!r} names no class; expected package.module->Name or path/file.py->Name")
    module, name = module.strip(), name.strip()
    found = _load_file(Path(module)) if module.endswith(".py") else import_module(module)
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise AttributeError(f"{module} has no {name!r}; {path!r} was asked for") from None
    return found


def cls_to_path(cls: Any) -> str:
    """Return ``module->Name`` of a class or function; of a script's own, ``file.py->Name``."""
    module = cls.__module__
    if module == "__main__":
        module = getattr(sys.modules["__main__"], "__file__", None) or module
    return f"{module}->{cls.__qualname__}"


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise ImportError(f"there is no file {path} (relative paths start at {Path.cwd()})")
    path = path.resolve()
    name = f"_ajet_file_{path.stem}_{hashlib.blake2b(str(path).encode(), digest_size=4).hexdigest()}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses and pickles look their module up
    folder = str(path.parent)
    sys.path.insert(0, folder)  # as for a script: it may import its neighbours
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
    return module
