"""Which run or project a pasted text means, and which API host serves it.

Names follow the SDK's constraints (``swanlab/sdk/internal/pkg/constraints``): user
``[0-9A-Za-z_-]{1,25}``, project ``[0-9A-Za-z_.+-]{1,100}`` (a plus stays a plus), run id anything
without ``<>:"/\\|?*#%``, Chinese and spaces included.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, quote, unquote, urlsplit

from ajet.utils.loopback import is_loopback_host
from skillpack.script import BadInput

CLOUD_WEB = "https://swanlab.cn"
CLOUD_API = "https://api.swanlab.cn"
CLOUD_HOSTS = {"swanlab.cn", "www.swanlab.cn", "api.swanlab.cn"}

USER = re.compile(r"[0-9A-Za-z_-]{1,25}")
PROJECT = re.compile(r"[0-9A-Za-z_.+-]{1,100}")
RUN = re.compile(r'[^<>:"/\\|?*#%\x00-\x1f]{1,512}')
PLACEHOLDERS = {"experiment_id", "run_id", "exp_id", "your_run_id", "your-run-id", "...", "···", "…"}
LINK = re.compile(r"https?://[^\s<>\"'`|，。；！）】》]+", re.IGNORECASE)
BROWSER_ID = re.compile(r"/runs/[^/\x00-\x7f][^/]*$")
SPACED_ID = re.compile(r"(?: [^\s<>:\"/\\|?*#%]+)+(?=/|$)")
"""A run id in Chinese may go on after a space, when its address was not percent-encoded."""
ENDS = ".,;:!?*'\"`)]}>。，；：！？、）】》」』|"
EXPECTED = "https://HOST/@USER/PROJECT/runs/RUN, a project page https://HOST/@USER/PROJECT, or USER/PROJECT/RUN"


@dataclass(frozen=True)
class Place:
    """A run (or, where ``run`` is None, a project) on a host.

    ``web`` and ``api`` are origins without a path, such as ``http://10.0.0.5:8000``.
    """

    web: str
    api: str
    user: str
    project: str
    run: str | None = None

    @property
    def path(self) -> str:
        """The path as the SDK writes it, not encoded: ``user/project[/run]``."""
        return "/".join(part for part in (self.user, self.project, self.run) if part)

    @property
    def url(self) -> str:
        """The canonical page address, without query and fragment."""
        tail = f"/runs/{quote(self.run)}" if self.run else ""
        return f"{self.web}/@{self.user}/{self.project}{tail}"

    def with_run(self, run: str) -> Place:
        """Return the place of a run of this project."""
        return replace(self, run=run)


def parse_place(text: str, *, host: str | None = None) -> Place:
    """Find the run or project in ``text``.

    That may be a page address of any tab, a Markdown link, a log line or ``user/project/run``;
    ``host`` is the origin for a bare path (default: the cloud). Raises BadInput, which says
    what the text is instead where that is known.
    """
    link = _find_link(text)
    if link is None:
        return _from_path(text.strip().strip("`<>\"'"), host or CLOUD_WEB, text)
    try:
        parts = urlsplit(link)
    except ValueError as error:
        raise BadInput(f"{link[:200]!r} is no address: {error}", expected=EXPECTED) from None
    wrapped = parse_qs(parts.query).get("target") or parse_qs(parts.query).get("url")
    if wrapped and not parts.path.startswith("/@") and wrapped[0].startswith("http"):
        return parse_place(wrapped[0], host=host)
    web, api = _origins_of(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")  # never keep a password in it
    return _from_segments([segment for segment in parts.path.split("/") if segment], web, api, web + parts.path)


def origins(host: str) -> tuple[str, str]:
    """Return web and API origin of a host as a user writes it.

    Scheme and port are kept; without a scheme it is https, but http on loopback; a trailing
    ``/api`` is dropped. Only swanlab.cn has an API host of its own. Raises ValueError.
    """
    if "://" not in host:
        host = f"{'http' if is_loopback_host(host.partition('/')[0]) else 'https'}://{host}"
    parts = urlsplit(host)
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise ValueError("not an http(s) origin")
    if parts.hostname in CLOUD_HOSTS:
        return CLOUD_WEB, CLOUD_API
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = f":{parts.port}" if parts.port and (parts.scheme, parts.port) not in (("http", 80), ("https", 443)) else ""
    origin = f"{parts.scheme.lower()}://{name}{port}"
    return origin, origin


def _find_link(text: str) -> str | None:
    """Return the best link in a text (a run's before others), without what the text wrapped around it."""
    links = []
    for match in LINK.finditer(text):
        link = match[0]
        if "](" in link:  # [https://…](https://…): the address is the second one
            link = link.split("](")[0]
        while link and link[-1] in ENDS:
            if link[-1] == ")" and link.count("(") >= link.count(")"):
                break
            link = link[:-1]
        spaced = SPACED_ID.match(text[match.end() :]) if link == match[0] and BROWSER_ID.search(link) else None
        links.append(link + spaced[0] if spaced else link)
    if not links:
        return None
    return next((link for link in links if "/runs/" in link), next((link for link in links if "/@" in link), links[0]))


def _origins_of(host: str) -> tuple[str, str]:
    try:
        return origins(host)
    except ValueError as error:
        raise BadInput(f"not a host: {host!r}", expected="an origin such as https://swanlab.example.com") from error


def _from_segments(segments: list[str], web: str, api: str, link: str) -> Place:
    decoded = [unquote(segment) for segment in segments]
    if not decoded or not decoded[0].startswith("@"):
        where = "/" + "/".join(decoded)
        raise BadInput(
            f"{link} is not a run or project page" + (f" but the page {where}" if decoded else " but the site's front"),
            expected=EXPECTED,
            hint="open the run in the browser and copy its address",
        )
    if len(decoded) < 2:
        raise BadInput(f"{link} is the page of a user, not of a run or project", expected=EXPECTED)
    run = None
    if len(decoded) > 3 and decoded[2] == "runs":
        run = decoded[3]
    return _checked(Place(web, api, decoded[0][1:], decoded[1], run), link)


def _from_path(path: str, host: str, text: str) -> Place:
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts and parts[0].startswith("@"):
        parts[0] = parts[0][1:]
    if len(parts) >= 4 and parts[2] == "runs":
        parts = [parts[0], parts[1], parts[3]]
    elif len(parts) > 2 and parts[1].startswith("@"):  # an address without its scheme
        web, _ = _origins_of(parts[0])
        return parse_place(web + "/" + path.partition("/")[2])
    if len(parts) not in (2, 3):
        raise BadInput(f"no run or project in {text.strip()[:200]!r}", expected=EXPECTED)
    web, api = _origins_of(host)
    return _checked(Place(web, api, parts[0], parts[1], parts[2] if len(parts) == 3 else None), text)


def _checked(place: Place, link: str) -> Place:
    if not USER.fullmatch(place.user):
        raise BadInput(f"{place.user[:60]!r} in {link[:200]} is not a user name", expected=EXPECTED)
    if not PROJECT.fullmatch(place.project):
        raise BadInput(f"{place.project[:120]!r} in {link[:200]} is not a project name", expected=EXPECTED)
    if place.run is not None and (place.run in PLACEHOLDERS or not RUN.fullmatch(place.run)):
        raise BadInput(f"{place.run[:120]!r} in {link[:200]} is not a run id", expected=EXPECTED)
    return place
