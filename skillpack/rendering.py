"""Texts rendered from the templates of the pack."""

from __future__ import annotations

import shlex
from typing import Any

from skillpack.pack import PACKAGE


def render(name: str, **values: Any) -> str:
    """Return the template of that name filled in, with one newline at its end. Raises jinja2.TemplateError.

    Filters: ``quote`` for a shell, ``cell`` for a table in Markdown, ``number`` with four significant digits.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(PACKAGE / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    environment.filters["quote"] = shlex.quote
    environment.filters["cell"] = lambda text: text.replace("|", r"\|").replace("\n", " ")
    environment.filters["number"] = lambda value: f"{value:.4g}" if isinstance(value, (int, float)) else (value or "")
    return environment.get_template(name).render(values).strip() + "\n"
