"""What a skill is to be called, given its folder's name and the one it gives itself."""

from __future__ import annotations

import re

from skillpack.validate.clients.spec import MAX_NAME, name_faults, normal_name

_PORTABLE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_UNFIT = re.compile(r"[^a-z0-9]+")


def portable(name: str) -> bool:
    """Tell whether a name is written as every client keeps it."""
    return len(name) <= MAX_NAME and _PORTABLE.fullmatch(name) is not None


def allowed(name: str) -> bool:
    """Tell whether the specification's validator takes a name: lower-case letters of any script, digits, hyphens."""
    return bool(name) and not name_faults(name)


def kebab(name: str) -> str:
    """Return a name of ASCII letters in lower case, everything else between them as one hyphen; "" if it has others."""
    name = normal_name(name).lower()
    return _UNFIT.sub("-", name).strip("-") if name.isascii() else ""


def folder_for(folder: str, name: str) -> str:
    """Return what a skill's folder should be called: the folder's own name if it will do, or else "" if unclear.

    A folder that breaks the specification takes the skill's name, or, where both are the same words
    otherwise spelled (``PDF_Tools``), these in lower case with hyphens.
    """
    if portable(folder) or (allowed(normal_name(folder)) and not portable(normal_name(name))):
        return folder
    if portable(normal_name(name)):
        return normal_name(name)
    spelled = kebab(folder)
    return spelled if portable(spelled) and kebab(name) in (spelled, "") else ""
