"""Keep a rehearsed client off engines that are not this rehearsal's: it would train them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from ajet.utils.loopback import is_loopback
from skillpack.blueprint.swarm_client import URL_VARIABLE, Address, addresses
from skillpack.runs.engine import ask_engine
from skillpack.runs.preconditions import address_of
from skillpack.script import BadInput

SECONDS = 3.0
_VARIABLE = re.compile(r"environment variable (\w+)")


def refuse_engines_of_others(script: Path, own: Collection[int], arguments: Sequence[str]) -> None:
    """Raise BadInput if a script goes to a swarm server that answers already, whatever this rehearsal tells it.

    ``own`` are the ports of this machine that the rehearsal answers itself; ``arguments`` are the
    client's, which may name another address than the one in its source.
    """
    for address in addresses(script):
        url = address.url or ""
        if not url or _is_own(url, own) or _is_overridden(address, arguments):
            continue
        if ask_engine(url, SECONDS):
            raise BadInput(
                f"{script}:{address.line} goes to {url}, where somebody's swarm server answers: "
                "a rehearsal would train its engine",
                expected=f'SwarmClient(os.environ["{URL_VARIABLE}"]), which a rehearsal sets',
                hint="or rehearse where nothing answers at that address",
            )


def _is_own(url: str, own: Collection[int]) -> bool:
    _, port = address_of(url)
    return is_loopback(url) and port in own


def _is_overridden(address: Address, arguments: Sequence[str]) -> bool:
    """Tell whether something goes before the address in the source: the rehearsal, the caller, or an argument."""
    variables = _VARIABLE.findall(address.unless)
    return any(name == URL_VARIABLE or name in os.environ for name in variables) or bool(
        address.unless and not variables and arguments
    )
