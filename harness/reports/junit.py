"""``junit.xml`` for CI systems: one test case per check, and one for the faults."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from fencepost.history.atomic import replacing
from fencepost.model import Check, Severity, Validity
from fencepost.reports import folder as folders
from fencepost.reports import verdict_summary
from fencepost.reports.fault_records import FaultRecord
from fencepost.reports.folder import Folder
from fencepost.reports.formatting import number, plural
from fencepost.reports.run_timeline import build, duration_ns

# Characters that XML 1.0 cannot contain, not even escaped.
_UNSPEAKABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(run: Path) -> Path:
    """Write ``junit.xml`` of the run in folder ``run`` and return its path.

    A broken promise is a failure. A check that could not be judged is an error of type ``unknown``. Permitted findings
    are in the output of their test case.

    Raises:
        OSError: the file cannot be written.
    """
    folder = folders.read(run)
    story = build(folder)
    suite = ET.Element("testsuite", name=_clean(folder.name))
    properties = ET.SubElement(suite, "properties")
    unjudged = "; ".join(f"{', '.join(kinds)}: {why}" for why, kinds in verdict_summary.unjudged(folder.verdict))
    about = {"seed": folder.seed, "run": folder.place, "command": folder.command, "not judged": unjudged or "nothing"}
    for name, value in about.items():
        ET.SubElement(properties, "property", name=name, value=_clean(str(value)))
    if folder.verdict is None:
        case = _case(suite, folder, "verdict")
        _add(case, "error", verdict_summary.why(folder, story.faults), "unknown")
    for check in folder.verdict.checks if folder.verdict else ():
        _check(suite, folder, check)
    _faults(suite, folder, story.faults)
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(list(suite.iter(tag)))))
    suite.set("time", f"{duration_ns(folder) / 1e9:.3f}")
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    path = run / "junit.xml"
    with replacing(path) as draft:
        ET.ElementTree(root).write(draft, encoding="utf-8", xml_declaration=True)
    return path


def _case(suite: ET.Element, folder: Folder, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=_clean(f"fencepost.{folder.name}"), name=_clean(name), time="0")


def _add(case: ET.Element, tag: str, message: str, kind: str = "", text: str = "") -> None:
    attributes = {"message": _clean(message), "type": kind} if tag != "system-out" else {}
    ET.SubElement(case, tag, attributes).text = _clean(text)


def _check(suite: ET.Element, folder: Folder, check: Check) -> None:
    case = _case(suite, folder, f"{check.check}: {check.promise}" if check.promise else check.check)
    if check.validity is Validity.INVALID:
        _add(case, "failure", check.reason, "invalid", _lines(check, Severity.VIOLATION))
    elif check.validity is Validity.UNKNOWN:
        _add(case, "error", check.reason, "unknown", _lines(check, Severity.VIOLATION))
    others = [_lines(check, severity) for severity in (Severity.PERMITTED, Severity.NOTE)]
    out = [f"{plural(check.facts_judged, 'fact')} judged: {check.reason}", *(lines for lines in others if lines)]
    _add(case, "system-out", "", text="\n".join(out))


def _lines(check: Check, severity: Severity) -> str:
    lines = []
    for finding in (f for f in check.findings if f.severity is severity):
        lines.append(f"{severity}: {finding.kind}, {plural(finding.count, 'time')}. {finding.reason}".rstrip())
        lines += [f"  {verdict_summary.sentence(finding.kind, example)}" for example in finding.examples[:3]]
    return "\n".join(lines)


def _faults(suite: ET.Element, folder: Folder, faults: Sequence[FaultRecord]) -> None:
    case = _case(suite, folder, "faults took effect")
    unproven = [f for f in faults if not f.took_effect and not f.skipped]
    if unproven:
        message = f"{number(len(unproven))} of {plural(len(faults), 'fault')} without proof"
        _add(case, "error", message, "unknown", "\n".join(_fault(f) for f in unproven))
    _add(case, "system-out", "", text="\n".join(_fault(f) for f in faults) or "the plan has no faults")


def _fault(fault: FaultRecord) -> str:
    state = "proven" if fault.took_effect else "not applicable" if fault.skipped else "not proven"
    return f"step {fault.step}, {fault.name}, {state}: {fault.evidence}"


def _clean(text: str) -> str:
    return _UNSPEAKABLE.sub("\ufffd", text)
