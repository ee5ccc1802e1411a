"""The rows of the timeline that show the owners of each partition, with its commits and findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fencepost.reports.folder import CommitColumns, Folder
from fencepost.reports.formatting import moment, number, plural, span
from fencepost.reports.run_timeline import FindingMark
from fencepost.reports.timeline.intervals import OwnershipInterval, overlaps
from fencepost.reports.timeline.palette import Palette
from fencepost.reports.timeline.scale import Scale
from fencepost.reports.timeline.shapes import BAR, LANE, MARKS_MAX, Box, Curve, Drawing, ended, from_to

ROWS_MAX = 64
BARS_MAX = 6000


def partitions(
    drawing: Drawing,
    folder: Folder,
    intervals: Sequence[OwnershipInterval],
    witnesses: Sequence[FindingMark],
    palette: Palette,
) -> None:
    """Add a row per partition; if there are too many, the most important ones, with a note."""
    rows = overlaps(intervals)
    for name in [*folder.partitions, *(w.partition for w in witnesses)]:
        rows.setdefault(name, [])
    if not rows:
        return
    accused = {w.partition for w in witnesses}
    order = {name: n for n, name in enumerate(folder.partitions)}
    chosen = sorted(rows, key=lambda p: (p not in accused, -len(rows[p])))[:ROWS_MAX]
    if len(chosen) < len(rows):
        drawing.notes.append(
            f"{number(len(rows) - len(chosen))} of {number(len(rows))} partitions are not drawn; partitions with "
            "violations and with the most changes of owner are drawn first."
        )
    merged, resolution_ns = _bounded({name: rows[name] for name in chosen}, drawing.scale.length_ns)
    if resolution_ns:
        drawing.notes.append(
            f"Consecutive assignment intervals shorter than {span(resolution_ns)} are merged into grey bars."
        )
    drawing.heading("partitions, by owner")
    for name in sorted(chosen, key=lambda p: (order.get(p, len(order)), p)):
        lanes = 1 + max((lane for lane, _ in merged[name]), default=0)
        y = drawing.row(name, LANE * lanes - 3 + 5)
        drawing.boxes += [_owner_box(drawing.scale, i, y + lane * LANE, palette) for lane, i in merged[name]]
        _commits(drawing, folder.commits, name, y + LANE * lanes - 3)
        marks = [w for w in witnesses if w.partition == name][:MARKS_MAX]
        drawing.boxes += [_witness_box(drawing.scale, w, y - 2, LANE * lanes + 1) for w in marks]


def _bounded(
    rows: dict[str, list[tuple[int, OwnershipInterval]]], length_ns: int
) -> tuple[dict[str, list[tuple[int, OwnershipInterval]]], int]:
    """``rows`` with at most about ``BARS_MAX`` intervals, and the needed resolution in ns (0: nothing is merged)."""
    for parts in (0, 4000, 1000, 300, 100):
        resolution_ns = length_ns // parts if parts else 0
        merged = {name: _merge(row, resolution_ns) if parts else row for name, row in rows.items()}
        if sum(map(len, merged.values())) <= BARS_MAX:
            break
    return merged, resolution_ns


def _merge(row: list[tuple[int, OwnershipInterval]], resolution_ns: int) -> list[tuple[int, OwnershipInterval]]:
    """Consecutive intervals that are shorter than the resolution become one bar without an owner."""
    kept: list[tuple[int, OwnershipInterval]] = []
    for lane, interval in sorted(row, key=lambda entry: entry[1].begin_ns):
        short = interval.end_ns - interval.begin_ns < resolution_ns
        last = kept[-1][1] if kept else None
        if short and last is not None and last.owner == "" and interval.begin_ns - last.end_ns < resolution_ns:
            count = last.generation + 1
            kept[-1] = (0, replace(last, end_ns=max(last.end_ns, interval.end_ns), generation=count))
        elif short:
            kept.append((0, replace(interval, owner="", generation=1, how="merged")))
        else:
            kept.append((lane, interval))
    return kept


def _owner_box(scale: Scale, interval: OwnershipInterval, y: int, palette: Palette) -> Box:
    where = f"{interval.partition}: {from_to(scale, interval.begin_ns, interval.end_ns)}"
    x, width = scale.x(interval.begin_ns), scale.width(interval.begin_ns, interval.end_ns)
    if interval.owner == "":
        return Box(x, width, y, BAR, "own merged", f"{where}, {plural(interval.generation, 'short interval')}")
    term = f", generation {interval.generation}" if interval.generation >= 0 else ""
    title = f"{where}, owned by {interval.owner}{term}, {ended(interval.how)}"
    if interval.how in ("lost", "revoked") and interval.end_ns - interval.given_up_ns > 1_000_000:
        title += f" (callback took {span(interval.end_ns - interval.given_up_ns)})"
    edges = ((interval.begin_ns, interval.assigned_ns), (interval.given_up_ns, interval.end_ns))
    soft = tuple((scale.x(a), scale.width(a, b)) for a, b in edges if scale.width(a, b) > 0.02)
    label = interval.owner.removeprefix("member-")
    return Box(x, width, y, BAR, f"own {palette.style(interval.owner)}", title, label, soft)


def _witness_box(scale: Scale, witness: FindingMark, y: int, height: int) -> Box:
    end_ns = max(witness.to_ns, witness.from_ns)
    width = scale.width(witness.from_ns, end_ns)
    return Box(scale.x(witness.from_ns), width, y, height, "accused", witness.sentence, href=witness.href)


def _commits(drawing: Drawing, commits: CommitColumns | None, partition: str, y: int) -> None:
    if commits is None or partition not in commits.names:
        return
    mine = commits.code == commits.names.index(partition)
    scale, ok = drawing.scale, commits.ok[mine]
    shares = (commits.begin_ns[mine] - scale.begin_ns) / scale.length_ns
    good = shares[ok]
    if len(good) > MARKS_MAX:
        good = (np.flatnonzero(np.histogram(good, 500, (0, 1))[0]) + 0.5) / 500
    if len(good):
        path = "".join(f"M{share * 10000:.0f} 0v4" for share in good if 0 <= share <= 1)
        drawing.curves.append(Curve(y, 10000, 4, path, "commit", f"{partition}: {plural(int(ok.sum()), 'commit')} ok"))
    bad = np.flatnonzero(~ok)
    for index in bad[:MARKS_MAX]:
        at_ns = int(commits.begin_ns[mine][index])
        title = f"{partition}: commit failed at {moment(at_ns, scale.origin_ns)}: {commits.error[mine][index]}"
        drawing.crosses.append(Box(scale.x(at_ns), 0, y + 5, 0, "refused", title, "×"))
