"""Templates and conditions of the data files: jinja2 with shell quoting and version comparison."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.environment import TemplateExpression


def version_key(version: Any) -> tuple[int, ...]:
    """Return the numbers in a version as a tuple: ``"580.95.05"`` → ``(580, 95, 5)``."""
    return tuple(int(number) for number in re.findall(r"\d+", str(version)))


def older_than(version: Any, other: Any) -> bool:
    """Tell whether ``version`` comes before ``other``; an unknown version (None) never does."""
    return version is not None and version_key(version) < version_key(other)


def at_least(version: Any, other: Any) -> bool:
    """Tell whether ``version`` is ``other`` or later; an unknown version (None) never is."""
    return version is not None and version_key(version) >= version_key(other)


def compose_value(value: Any) -> str:
    """Return a value as YAML for a compose file, whose own ``$`` interpolation must not touch it."""
    return json.dumps(value, ensure_ascii=False).replace("$", "$$")


@cache
def environment() -> Environment:
    """Return the jinja2 environment of recipes and checks; an unknown name in a template is an error."""
    from jinja2 import Environment, StrictUndefined

    made = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    made.filters["sh"] = lambda value: shlex.quote(str(value))
    made.filters["compose"] = compose_value
    made.tests["older_than"] = older_than
    made.tests["at_least"] = at_least
    return made


@cache
def _template(text: str) -> Any:
    return environment().from_string(text)


@cache
def _expression(text: str) -> TemplateExpression:
    return environment().compile_expression(text, undefined_to_none=False)


def render(text: str, context: Mapping[str, Any]) -> str:
    """Fill a template. Raises jinja2.TemplateError on an unknown name."""
    return str(_template(text).render(context))


def holds(condition: str, context: Mapping[str, Any]) -> bool:
    """Tell whether a condition is true of ``context``. Raises jinja2.TemplateError on an unknown name."""
    return bool(_expression(condition)(context))
