"""``card.html`` and ``card.md``: the card of a program, for people and for a pull request; drawn from ``card.json``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fencepost.history.atomic import replacing
from fencepost.reports import page

COLUMNS = (
    "situation",
    "result",
    "lost",
    "again",
    "standstill",
    "first record",
    "normal lag",
    "p99 latency",
    "rebalances",
)
WORDS = {"kept": "valid", "broken": "invalid", "not seen": "unknown"}  # a result, and the style of its verdict
UNKNOWN = "–"


def render(folder: Path) -> Path:
    """Draw the card in a folder; returns the path of ``card.html``.

    Raises:
        OSError, ValueError: the card cannot be read, or the pages cannot be written.
    """
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    environment = page.environment()
    context = {
        "card": card,
        "command": shlex.join(card["command"]),
        "counts": counts(card["rows"]),
        "validity": WORDS[worst(card["rows"])],
        "cells": cells,
        "words": WORDS,
        "columns": COLUMNS,
    }
    for name in ("card.html", "card.md"):
        template = environment.get_template(f"{name}.j2")
        text = template.render(context, **page.assets(environment))
        with replacing(folder / name) as draft:
            draft.write_text(text, encoding="utf-8", errors="backslashreplace")
    return folder / "card.html"


def worst(rows: Sequence[Mapping[str, Any]]) -> str:
    """The worst result; a card without rows has seen nothing."""
    results = {row["result"] for row in rows} or {"not seen"}
    return next(result for result in ("broken", "not seen", "kept") if result in results)


def counts(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many situations had which result: ``12 kept, 2 broken, 1 not seen``."""
    found = {result: sum(row["result"] == result for row in rows) for result in WORDS}
    return ", ".join(f"{count} {result}" for result, count in found.items() if count)


def cells(row: Mapping[str, Any]) -> list[str]:
    """The numbers of a row as text, in the order of ``COLUMNS`` after the result; a dash: it was not measured."""
    if not row["records"]:
        return [UNKNOWN] * (len(COLUMNS) - 2)
    again = f"{row['again']:,}"
    if row["disruptions"] > 1 and row["again"]:
        again += f" ({row['again'] / row['disruptions']:,.0f} each)"
    times = (row["standstill_s"], row["first_record_s"], row["normal_after_s"])
    seconds = [UNKNOWN if value is None else f"{value:.1f} s" for value in times]
    rebalances = UNKNOWN if row["rebalances"] is None else str(row["rebalances"])
    p99 = [UNKNOWN if one["p99_s"] is None else f"{one['p99_s']:.1f}" for one in row.get("latency", {}).values()]
    measured = f"{' → '.join(p99)} s" if {*p99} - {UNKNOWN} else UNKNOWN
    return [f"{row['lost']:,}", again, *seconds, measured, rebalances]
