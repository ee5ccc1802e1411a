"""``report.html``: one offline file that a sceptic can check by hand.

The templates draw everything as text and SVG, without a chart library: no library has a timeline of ownership, and two
rate curves are not worth the megabyte of the smallest library. The content security policy of the page forbids all
loading and every other script, even if the strings of a run contain code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment

from fencepost.history.atomic import replacing
from fencepost.model import Severity
from fencepost.reports import folder as folders
from fencepost.reports import formatting, page, verdict_summary, view
from fencepost.reports.coverage import grid
from fencepost.reports.folder import Folder, mapping
from fencepost.reports.glossary import GLOSSARY
from fencepost.reports.lint import advise
from fencepost.reports.run_timeline import build
from fencepost.reports.timeline.drawing import draw
from fencepost.reports.timeline.palette import Palette


def render(run: Path) -> Path:
    """Draw the run in folder ``run`` and return the path of its ``report.html``.

    It reads only the folder. The page lists missing and damaged parts.

    Raises:
        OSError: the report cannot be written.
    """
    environment = page.environment()
    text = environment.get_template("report.html.j2").render(_context(folders.read(run), environment))
    path = run / "report.html"
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path


def _context(folder: Folder, environment: Environment) -> dict[str, Any]:
    story = build(folder)
    palette = Palette(story.incarnations)
    drawing = draw(folder, story, palette)
    scale = drawing.scale if drawing else None
    found = {s.value: view.finding_views(folder, s, palette, scale) for s in Severity}
    kinds = {f.finding.kind for views in found.values() for f in views}
    context = {
        "validity": verdict_summary.validity(folder).value,
        "about": verdict_summary.about(folder),
        "why": verdict_summary.why(folder, story.faults),
        "worst": verdict_summary.worst(folder.verdict),
        "key_numbers": view.key_numbers(folder, story),
        "checks": view.checks(folder),
        "fault_count": verdict_summary.count_faults(story.faults),
        "grid": grid(story.faults, str(mapping(folder.asked.get("group")).get("protocol"))),
        "findings": found,
        "owned": view.owned(folder, story, palette),
        "legend": view.legend(palette),
        "judged": view.judged(folder),
        "unjudged": [(why, ", ".join(kinds)) for why, kinds in verdict_summary.unjudged(folder.verdict)],
        "environment": view.environment(folder),
        "advice": advise(folder),
        "kinds": sorted(kinds, key=str),
        "other_kinds": [kind for kind in GLOSSARY if kind not in kinds],
        "at": lambda ns: formatting.moment(ns, folder.origin_ns),
    }
    # Read last: drawing may add to ``folder.missing``.
    return {**context, "folder": folder, "story": story, "drawing": drawing, **page.assets(environment)}
