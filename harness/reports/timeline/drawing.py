"""The timeline as shapes: rows of boxes with percentages for x and pixels for y, which the template writes as SVG.

Because x is a percentage, zooming only makes the picture wider. If there are too many shapes, some are merged and
``notes`` says so; every count on the page stays exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from fencepost.model.impact import Impact
from fencepost.reports.fault_records import FaultRecord
from fencepost.reports.folder import Folder
from fencepost.reports.formatting import moment, number, span
from fencepost.reports.run_timeline import RunTimeline
from fencepost.reports.timeline.intervals import Lifespan, Mark, OwnershipInterval, Phase
from fencepost.reports.timeline.palette import Palette
from fencepost.reports.timeline.partition_rows import partitions
from fencepost.reports.timeline.scale import Scale
from fencepost.reports.timeline.shapes import BAR, LANE, MARKS_MAX, Box, Curve, Drawing, ended, from_to

MEMBERS_MAX = 64
BINS = 300
_RATE = 46


def draw(folder: Folder, story: RunTimeline, palette: Palette) -> Drawing | None:
    """The timeline of ``story``; None if the history has no times."""
    scale = _scale(folder, story)
    if scale is None:
        return None
    drawing = Drawing(scale, list(scale.ticks()))
    _phases(drawing, story.phases)
    _faults(drawing, story.faults)
    _stalls(drawing, folder)
    drawing.body_y = drawing.height
    _members(drawing, story, palette)
    partitions(drawing, folder, story.intervals, story.witnesses, palette)
    _rates(drawing, folder)
    _rebalances(drawing, story.rebalances)
    drawing.height += 18
    return drawing


def _scale(folder: Folder, story: RunTimeline) -> Scale | None:
    warm = next((p.begin_ns for p in story.phases if p.name == "warm-up"), 0)
    spans: list[OwnershipInterval | Lifespan | FaultRecord] = [*story.intervals, *story.lives, *story.faults]
    begins = [s.begin_ns for s in spans if s.begin_ns]
    ends = [s.end_ns for s in spans] + [p.end_ns for p in story.phases if p.name in ("chaos", "heal", "drain")]
    if folder.commits is not None and len(folder.commits.begin_ns):
        ends.append(int(folder.commits.begin_ns.max()))
    if not begins or not any(ends):
        return None
    return Scale(warm or min(begins), max(ends), folder.origin_ns)


def _phases(drawing: Drawing, phases: Iterable[Phase]) -> None:
    scale = drawing.scale
    y = drawing.row("phase", 15)
    for number_, phase in enumerate(phases):
        width = scale.width(phase.begin_ns, phase.end_ns)
        if width > 0:
            title = f"{phase.name}: {from_to(scale, phase.begin_ns, phase.end_ns)}"
            style = f"phase p{number_ % 2}"
            drawing.boxes.append(Box(scale.x(phase.begin_ns), width, y, 15, style, title, phase.name))


def _faults(drawing: Drawing, faults: Sequence[FaultRecord]) -> None:
    fired = [f for f in faults if f.begin_ns]
    if not fired:
        return
    drawing.heading("faults")
    for kind in dict.fromkeys(f.fault for f in fired):
        ends: list[int] = []
        placed: list[tuple[int, FaultRecord]] = []
        for fault in (f for f in fired if f.fault == kind):
            lane = next((n for n, end in enumerate(ends) if end <= fault.begin_ns), len(ends))
            ends[lane : lane + 1] = [fault.end_ns]
            placed.append((lane, fault))
        y = drawing.row(kind, LANE * len(ends) - 3)
        drawing.boxes += [_fault_box(drawing.scale, fault, y + lane * LANE) for lane, fault in placed]


def _fault_box(scale: Scale, fault: FaultRecord, y: int) -> Box:
    proof = f"proven after {span(fault.proven_ns - fault.begin_ns)}" if fault.took_effect else "NOT PROVEN"
    title = f"{fault.name}: {from_to(scale, fault.begin_ns, fault.end_ns)}, {proof}. {fault.evidence}"
    style = "fault" if fault.took_effect else "fault unproven"
    width = scale.width(fault.begin_ns, fault.end_ns)
    soft = ((scale.x(fault.begin_ns), scale.width(fault.begin_ns, fault.proven_ns)),) if fault.proven_ns else ()
    return Box(scale.x(fault.begin_ns), width, y, BAR, style, title, fault.target, soft, f"#step-{fault.step}")


def _stalls(drawing: Drawing, folder: Folder) -> None:
    if not folder.stalls:
        return
    y = drawing.row("host stalled", 12)
    for stall in folder.stalls[:MARKS_MAX]:
        begin, end = stall["from_ns"], stall["to_ns"]
        title = f"the host itself stalled ({stall.get('why', 'unknown')}): {from_to(drawing.scale, begin, end)}"
        drawing.boxes.append(Box(drawing.scale.x(begin), drawing.scale.width(begin, end), y, 12, "stall", title))


def _members(drawing: Drawing, story: RunTimeline, palette: Palette) -> None:
    if not story.lives:
        return
    drawing.heading("members")
    scale = drawing.scale
    for member in sorted(dict.fromkeys(life.member for life in story.lives), key=palette.order)[:MEMBERS_MAX]:
        y = drawing.row(member, BAR)
        for life in (one for one in story.lives if one.member == member):
            title = f"{life.incarnation}: {from_to(scale, life.begin_ns, life.end_ns)}, {ended(life.how)}"
            width = scale.width(life.begin_ns, life.end_ns)
            style = f"life {palette.style(life.incarnation)}"
            label = life.incarnation.removeprefix("member-")
            drawing.boxes.append(Box(scale.x(life.begin_ns), width, y, BAR, style, title, label))
            if life.how not in ("open", "closed"):
                drawing.crosses.append(Box(scale.x(life.end_ns), 0, y + 12, 0, "killed", title, "✕"))
        for fault in (f for f in story.faults if f.begin_ns and f.took_effect and Impact.ENDS not in f.impact):
            if any(actor.rsplit(".", 1)[0] == member for actor in fault.members):
                style = "held pause" if fault.impact & {Impact.FREEZES, Impact.DELAYS} else "held cut"
                title = f"{fault.name}: {from_to(scale, fault.begin_ns, fault.end_ns)}"
                width = scale.width(fault.begin_ns, fault.end_ns)
                drawing.boxes.append(Box(scale.x(fault.begin_ns), width, y, BAR, style, title))


def _rates(drawing: Drawing, folder: Folder) -> None:
    scale = drawing.scale
    edges = np.linspace(scale.begin_ns, scale.end_ns, BINS + 1)
    bin_s = scale.length_ns / BINS / 1e9
    produced = folder.rate("produced", "acked_ns", edges)
    delivered = folder.rate("delivered", "delivered_ns", edges)
    peak = max((int(c.max()) for c in (produced, delivered) if c is not None), default=0)
    if not peak:
        return
    drawing.heading("records per second")
    y = drawing.row(f"≤ {number(round(peak / bin_s))}", _RATE)
    for counts, name in ((delivered, "delivered"), (produced, "produced")):
        if counts is not None:
            tops = [f"V{_RATE - round(c / peak * (_RATE - 2), 1):g}H{n + 1}" for n, c in enumerate(counts)]
            path = f"M0 {_RATE}{''.join(tops)}V{_RATE}" + ("Z" if name == "delivered" else "")
            title = (
                f"{name}: peak {number(round(int(counts.max()) / bin_s))} records/s in bins of {span(int(bin_s * 1e9))}"
            )
            drawing.curves.append(Curve(y, BINS, _RATE, path, f"rate {name}", title))


def _rebalances(drawing: Drawing, marks: Sequence[Mark]) -> None:
    for mark in marks[:MARKS_MAX]:
        title = f"rebalance at {moment(mark.at_ns, drawing.scale.origin_ns)}: {mark.label}"
        drawing.rebalances.append((drawing.scale.x(mark.at_ns), f"{title} ({mark.detail})" if mark.detail else title))
    if len(marks) > MARKS_MAX:
        drawing.notes.append(f"Of {number(len(marks))} rebalances the first {MARKS_MAX} are drawn.")
