"""Draws the judge's benchmark: seconds over records, a curve for each contestant, as an SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

Curve = Sequence[tuple[int, float]]
BESIDE = 1.15  # of the last point: where its name begins
ROOM = 30.0  # and as much room it needs, to the right
COLOURS = ("#0b5cad", "#6aa4dc", "#8a8a8a", "#c98500", "#2e8b57", "#b03a3a")


def draw(curves: Mapping[str, Curve], title: str, path: Path) -> None:
    """Both axes are logarithmic, so that what grows in proportion is a straight line.

    Args:
        curves: for each contestant its points of (records, seconds), ascending; one without any is left out.
    """
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    for (name, curve), colour in zip(curves.items(), COLOURS, strict=False):
        if not curve:
            continue
        records, seconds = zip(*curve, strict=True)
        axes.plot(records, seconds, color=colour, marker="o", markersize=4)
        axes.annotate(name, (records[-1] * BESIDE, seconds[-1]), color=colour, va="center", fontsize=9)
    axes.set(xscale="log", yscale="log", xlabel="records delivered", ylabel="seconds, median", title=title)
    axes.set_xlim(right=ROOM * max(records for curve in curves.values() for records, _ in curve))
    axes.grid(which="major", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "fencepost"}):
        figure.savefig(path, metadata={"Date": None})
