"""Checks of a swarm run's server: is its address free, or does it answer; do the clients go there?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from skillpack.blueprint.lint import FAIL, OK, WARN, Check
from skillpack.blueprint.model import Blueprint
from skillpack.blueprint.paths import FILE, at_home, kind
from skillpack.blueprint.shell import simple_commands
from skillpack.script import BadInput


def server(blueprint: Blueprint) -> Iterator[Check]:
    """A swarm's server: its port is free if the run starts it, it answers if somebody else does."""
    from skillpack.runs.engine import ask_engine
    from skillpack.runs.ports import holder, is_here, listeners
    from skillpack.runs.preconditions import address_of, server_port, server_url

    if blueprint.mode != "swarm":
        return
    url = server_url(blueprint)
    try:
        host, port = address_of(url)
    except BadInput as error:
        yield Check("server", FAIL, error.message, error.expected)
        return
    if not blueprint.server_command:
        status = ask_engine(url)
        if status is None:
            mend = "start it before the run; check host, port and proxies"
            yield Check("server", WARN, f"no swarm server answers at {url}", mend)
        else:
            yield Check("server", OK, f"{url} answers: {status.status}")
        return
    here, started = is_here(host), server_port(blueprint)
    if here and listeners(port):
        by = holder(port)
        mend = "take another --swarm-port, or stop your own old server by its pid"
        yield Check("server", FAIL, f"port {port} is taken{', by ' + by if by else ''}", mend)
    elif here and started and started != port:
        mend = "right only where something maps the port (docker -p); else name one port in both"
        yield Check("server", WARN, f"the server is started on port {started}, exp_server_url is {url}", mend)
    else:
        yield Check("server", OK, f"port {port} is free" if here else f"the server is expected at {url}")


def clients(blueprint: Blueprint) -> Iterator[Check]:
    """The client scripts go to the run's server, and not to an address of their own."""
    from skillpack.blueprint.swarm_client import URL_VARIABLE, addresses
    from skillpack.runs.preconditions import server_url

    if blueprint.mode != "swarm":
        return
    url = server_url(blueprint)
    for script in _scripts(blueprint):
        for address in addresses(script):
            if address.url is None or URL_VARIABLE in address.unless or _same(address.url, url):
                continue
            told = f"{script.name}:{address.line} goes to {address.url}, the run's server is at {url}"
            mend = f'write SwarmClient(os.environ["{URL_VARIABLE}"]) there; the run sets it'
            if address.unless:
                yield Check("client-url", WARN, f"{told} ({address.unless})", mend)
            else:
                yield Check("client-url", FAIL, told, mend)


def _scripts(blueprint: Blueprint) -> list[Path]:
    """Return the Python files that the launch commands run, and the one that is the configuration."""
    folder = blueprint.codebase_dir or Path.cwd()
    found = [blueprint.yaml_path] if blueprint.yaml_path and blueprint.yaml_path.suffix == ".py" else []
    for command in blueprint.commands:
        for simple in simple_commands(command, folder, blueprint.variables):
            found += [(simple.folder or folder) / at_home(word) for word in simple.words if word.endswith(".py")]
    return [path for path in dict.fromkeys(found) if kind(path) == FILE]


def _same(one: str, other: str) -> bool:
    """Tell whether two URLs lead to the same port of the same machine."""
    from skillpack.runs.ports import is_here
    from skillpack.runs.preconditions import address_of

    try:
        (host, port), (other_host, other_port) = address_of(one), address_of(other)
    except BadInput:
        return False
    return port == other_port and (host == other_host or (is_here(host) and is_here(other_host)))
