"""The content of the page, as plain values for the template: no markup here, no arithmetic in the template."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.history import EventKind
from fencepost.model import Check, Finding, Severity
from fencepost.reports import verdict_summary
from fencepost.reports.folder import Folder, mapping
from fencepost.reports.formatting import flat, moment, number, plain, plural, span
from fencepost.reports.run_timeline import EXAMPLES_MAX, RunTimeline, anchor, duration_ns, time_ns
from fencepost.reports.timeline.intervals import member_of
from fencepost.reports.timeline.palette import Palette
from fencepost.reports.timeline.scale import Scale

TABLE_MAX = 400
# By the rule of the workload ``own_program``. The program's own notion of a processed record is unknown.
PROCESSED = {
    "next-poll": "the program polled again or closed its consumer, or committed past it, and had not left it in a list",
    "commit": "the program committed past it, or stored an offset past it",
    "told": "the program reported it",
    "effect": "its effect existed at the end, whichever member caused it",
}
LINES = (
    "members that report by JSON lines",
    "the checks do not judge facts without lines: stuck-member needs poll_started",
)
_ALWAYS = ("faults", "history", "other")
_REPORTED = {"topic", "partition", "offset", "first_offset", "last_offset", "key", "members", "generation"}
_REPORTED |= {"from_ns", "to_ns", "sentence", "witnesses", "count", "cause", "excuse"}


@dataclass(frozen=True)
class ExampleView:
    """One example of a finding. ``jump``: its start and end on the timeline, in percent of the width."""

    sentence: str
    facts: list[tuple[str, str]]
    members: list[tuple[str, str]]
    witnesses: list[str]
    jump: tuple[float, float] | None


@dataclass(frozen=True)
class FindingView:
    """One finding; ``hidden`` examples are only in ``verdict.json``."""

    id: str
    check: Check
    finding: Finding
    examples: list[ExampleView]
    hidden: int


def finding_views(folder: Folder, severity: Severity, palette: Palette, scale: Scale | None) -> list[FindingView]:
    """The findings of one severity, the worst kinds first."""
    return [
        FindingView(
            anchor(severity, index),
            check,
            finding,
            [_example(folder, finding, e, palette, scale) for e in finding.examples[:EXAMPLES_MAX]],
            max(len(finding.examples) - EXAMPLES_MAX, 0),
        )
        for index, (check, finding) in enumerate(verdict_summary.findings(folder.verdict, severity))
    ]


def checks(folder: Folder) -> list[Check]:
    """The checks of promises first, then the checks that every run has."""
    every = folder.verdict.checks if folder.verdict else ()
    return sorted(every, key=lambda check: check.check in _ALWAYS)


def key_numbers(folder: Folder, story: RunTimeline) -> list[tuple[str, str]]:
    """The strip under the verdict."""
    group = mapping(folder.asked.get("group"))
    measures = folder.verdict.measures if folder.verdict else {}
    facts = {c.check: c.facts_judged for c in folder.verdict.checks} if folder.verdict else {}
    pairs: list[tuple[str, Any]] = [
        ("records produced", measures.get("records_acknowledged", folder.rows("produced"))),
        ("records committed", measures["records_committed"])
        if "records_committed" in measures
        else ("records delivered", measures.get("records_delivered", folder.rows("delivered"))),
        ("records judged", facts.get("delivery", max(facts.values(), default=None))),
        ("faults proven", str(verdict_summary.count_faults(story.faults))),
        ("members", _members(group, story)),
        ("rebalances", len(story.rebalances) or None),
        ("protocol", group.get("protocol")),
        ("duration", span(duration_ns(folder)) if folder.facts else None),
        ("seed", None if folder.seed is None else str(folder.seed)),
    ]
    return [(name, "unknown" if value is None else plain(value, grouped=True)) for name, value in pairs]


def _members(group: Mapping[str, Any], story: RunTimeline) -> Any:
    """The number of members; if they differ, the number for each client."""
    asked = group.get("members", len({life.member for life in story.lives}) or None)
    if not isinstance(asked, list):
        return asked
    return ", ".join(
        f"{some.get('count', 1)} {some.get('client') or group.get('client')}"
        f"{' (static)' if (group if some.get('static') is None else some).get('static') else ''}"
        for some in map(mapping, asked)
    )


def judged(folder: Folder) -> list[tuple[str, str]]:
    """How much was recorded and measured, in addition to the facts of each check."""
    rows = [(f"history/{kind}, rows", folder.rows(kind)) for kind in ("produced", "delivered", "log")]
    commits = folder.commits
    pairs = [(name, number(count)) for name, count in rows if count is not None]
    pairs.append(("events without commits, rows", number(len(folder.facts))))
    if commits is not None:
        refused = len(commits.ok) - int(commits.ok.sum())
        pairs.append(("commits, by partition", f"{number(len(commits.ok))}, of which {number(refused)} not ok"))
    started = [mapping(fact.detail) for fact in folder.facts if fact.kind == EventKind.STARTED]
    lines = any(detail.get("told_by") == "lines" for detail in started)
    pairs += [("a record counts as processed", rule) for rule in _rules(folder, started)]
    if lines:
        pairs.append(LINES)
    return pairs + flat(dict(folder.verdict.measures) if folder.verdict else {}, grouped=True)


def _rules(folder: Folder, started: Sequence[Mapping[str, Any]]) -> list[str]:
    """When a record of a program counts as processed: by the workload's rule, or else by the rules that members
    reported."""
    asked = mapping(folder.asked.get("workload")).get("processed")
    own = dict.fromkeys((detail.get("client"), detail.get("processed")) for detail in started)
    rules = {"": asked} if asked else {f"with {client}, ": rule for client, rule in own}
    return [f"{whose}when {PROCESSED[rule]}" for whose, rule in rules.items() if rule in PROCESSED]


def environment(folder: Folder) -> list[tuple[str, list[tuple[str, str]]]]:
    """Versions, the host, and every option of the run, in groups."""
    versions = folder.scenario.get("versions") or (dict(folder.verdict.versions) if folder.verdict else {})
    stalled = [stall["to_ns"] - stall["from_ns"] for stall in folder.stalls]
    stalls = (
        f"{plural(len(stalled), 'stall')}, {span(sum(stalled))} in all, the longest {span(max(stalled))}"
        if stalled
        else "none"
    )
    name, why = folder.scenario.get("backend"), folder.scenario.get("backend_why")
    backend = [("back-end", f"{name} ({why})" if why else str(name))] if name else []
    backend += flat({"network": dict(mapping(folder.scenario.get("network")))})
    recorded = os.path.lexists(folder.path / "history" / "host.jsonl")
    host = [("stalls of the host", stalls if recorded else "not recorded")]
    host += [("clocks of brokers", "; ".join(folder.clocks))] if folder.clocks else []
    known = {"name", "about", "schedule", "promises"}
    return [
        ("Versions", flat(dict(mapping(versions)))),
        ("Host", host),
        ("Scenario", flat({k: v for k, v in folder.asked.items() if k not in known})),
        ("Cluster", backend + flat(dict(mapping(folder.scenario.get("cluster"))))),
    ]


def owned(folder: Folder, story: RunTimeline, palette: Palette) -> list[tuple[str, str, str, str, str, str]]:
    """The timeline as a table: partition, owner, the owner's style, begin, end, and the way in which it ended."""
    places = {name: place for place, name in enumerate(folder.partitions)}
    ordered = sorted(story.intervals, key=lambda i: (places.get(i.partition, len(places)), i.partition, i.begin_ns))
    return [
        (i.partition, i.owner, palette.style(i.owner), *_times(folder, i.begin_ns, i.end_ns), i.how)
        for i in ordered[:TABLE_MAX]
    ]


def _times(folder: Folder, begin_ns: int, end_ns: int) -> tuple[str, str]:
    return moment(begin_ns, folder.origin_ns), moment(end_ns, folder.origin_ns)


def _example(
    folder: Folder, finding: Finding, example: Mapping[str, Any], palette: Palette, scale: Scale | None
) -> ExampleView:
    facts: list[tuple[str, str]] = []
    where = verdict_summary.place({k: v for k, v in example.items() if k in ("topic", "partition")})
    facts += [("partition", where)] if where else []
    first, last = example.get("offset", example.get("first_offset")), example.get("last_offset")
    if isinstance(first, int) and first >= 0:
        if isinstance(last, int) and last > first:
            facts.append(("offsets", f"{first} – {last}"))
        else:
            facts.append(("offset", str(first)))
    facts += [(k, str(example[k])) for k in ("key", "generation") if example.get(k) not in (None, "", -1)]
    facts += [
        (k, str(example[k])) for k in ("cause", "excuse") if example.get(k) and str(example[k]) not in finding.reason
    ]
    facts += [("count", plain(example["count"], grouped=True))] if example.get("count", 1) != 1 else []
    from_ns, to_ns = time_ns(example, "from_ns"), time_ns(example, "to_ns")
    if from_ns:
        later = f" – {moment(to_ns, folder.origin_ns)} ({span(to_ns - from_ns)})" if to_ns > from_ns else ""
        facts.append(("time", moment(from_ns, folder.origin_ns) + later))
    facts += [(str(k), plain(v)) for k, v in example.items() if k not in _REPORTED and v not in (None, "", [])]
    members = example.get("members")
    stored = example.get("witnesses")
    proof: Sequence[Any] = stored if isinstance(stored, (list, tuple)) else [stored] if stored else []
    return ExampleView(
        verdict_summary.sentence(finding.kind, example),
        facts,
        [(str(m), palette.style(str(m))) for m in (members if isinstance(members, (list, tuple)) else [])],
        [_witness(w) for w in proof],
        (scale.share(from_ns), scale.share(to_ns or from_ns)) if scale and from_ns else None,
    )


def _witness(witness: Any) -> str:
    if isinstance(witness, Mapping):
        return ", ".join(f"{name} {value}" for name, value in flat(dict(witness)))
    return plain(witness)


def legend(palette: Palette) -> list[tuple[str, str]]:
    """Each member with its style."""
    return [(member, palette.style(member)) for member in palette.members if member_of(member)]
