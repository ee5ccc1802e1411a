"""Formats numbers, times and values for the page, the terminal and JUnit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NS = 1_000_000_000
LONGEST_TEXT = 4000


def number(value: float) -> str:
    """``1234567`` as ``1,234,567``; fractions keep three digits."""
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.3f}".rstrip("0").rstrip(".")


def plural(count: int, noun: str, nouns: str = "") -> str:
    """``1 record``, ``2 records``."""
    return f"{number(count)} {noun if count == 1 else nouns or noun + 's'}"


def span(duration_ns: int) -> str:
    """A duration: milliseconds below one second, minutes and hours above one minute."""
    seconds = duration_ns / NS
    if seconds < 1:
        return f"{duration_ns / 1e6:.0f} ms" if duration_ns >= 1e7 else f"{duration_ns / 1e6:.1f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def moment(at_ns: int, origin_ns: int) -> str:
    """A moment as seconds since the origin of the run: ``12.034 s``; a time of 0 is "never"."""
    return f"{(at_ns - origin_ns) / NS:.3f} s" if at_ns else "never"


def shown(path: Path) -> str:
    """A path for a user to type: relative if it is below the working directory, else unchanged."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def visible(text: str) -> str:
    """``text`` with each unprintable character, except newline and tab, replaced by its escape: ``\\x1b[31m``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def shortened(text: str, limit: int = LONGEST_TEXT) -> str:
    """``text``, cut after ``limit`` characters; its end states the number of characters that were cut."""
    return text if len(text) <= limit else f"{text[:limit]} … ({number(len(text) - limit)} more characters)"


def plain(value: Any, grouped: bool = False) -> str:
    """Any JSON value as readable text: strings as they are, lists with commas, the rest as compact JSON.

    With ``grouped``, numbers have thousands separators; without it they can be searched for.
    """
    if value is None:
        return "–"
    if isinstance(value, str):
        return shortened(value) or "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return number(value) if grouped else str(value)
    if isinstance(value, (list, tuple)) and all(isinstance(item, (str, int, float)) for item in value):
        return shortened(", ".join(str(item) for item in value)) or "–"
    return shortened(json.dumps(value, ensure_ascii=False, default=str))


def flat(values: Any, prefix: str = "", grouped: bool = False) -> list[tuple[str, str]]:
    """Nested values as (dotted name, readable value), in their order; list items are numbered."""
    if isinstance(values, list) and any(isinstance(item, dict) for item in values):
        values = {str(index): item for index, item in enumerate(values)}
    if not isinstance(values, dict):
        return [(prefix, plain(values, grouped))]
    named = {f"{prefix}.{key}" if prefix else str(key): value for key, value in values.items()}
    return [pair for name, value in named.items() for pair in flat(value, name, grouped)]
