"""The report of a rehearsal as one HTML page that needs nothing else: curves are SVG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WIDTH, HEIGHT, PAD = 360.0, 140.0, 28.0


def page_of(report: dict[str, Any]) -> str:
    """Return the page; everything that came from the client is escaped."""
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True)
    return environment.get_template("page.html.j2").render(report=report, curve=curve)


def curve(values: list[float | None]) -> dict[str, Any]:
    """Return a curve as SVG points in a box of ``WIDTH`` by ``HEIGHT``, with the ends of its axes."""
    known = [(index, value) for index, value in enumerate(values) if value is not None]
    low = min(value for _, value in known)
    high = max(value for _, value in known)
    width, height = WIDTH - 2 * PAD, HEIGHT - 2 * PAD
    across = width / max(1, len(values) - 1)
    points = [
        (PAD + index * across, HEIGHT - PAD - height * ((value - low) / (high - low) if high > low else 0.5))
        for index, value in known
    ]
    return {
        "points": " ".join(f"{x:.1f},{y:.1f}" for x, y in points),
        "dots": [{"x": round(x, 1), "y": round(y, 1)} for x, y in points],
        "low": f"{low:.4g}",
        "high": f"{high:.4g}",
        "last": f"{known[-1][1]:.4g}",
        "steps": len(values),
        "width": WIDTH,
        "height": HEIGHT,
        "pad": PAD,
    }
