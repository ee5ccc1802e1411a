"""Anomalies as sentences and witnesses that a reader can check by hand. Times are seconds since the run's start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import FOREVER, NS, Commit, Interval
from fencepost.model import Anomaly, TopicPartition

WITNESSES_MAX = 12


def example(tables: Tables, anomaly: Anomaly) -> dict[str, Any]:
    """One example of a finding: where, when, who, the sentence and its witnesses."""
    telling = _Telling(tables, anomaly)
    offsets = {"offset": anomaly.first_offset, "last_offset": anomaly.last_offset} if anomaly.first_offset >= 0 else {}
    place = {"topic": anomaly.topic, "partition": anomaly.partition} if anomaly.topic else {}
    times = {"from_ns": anomaly.from_ns, "to_ns": anomaly.to_ns} if anomaly.from_ns else {}
    why = {name: value for name, value in (("cause", anomaly.cause), ("excuse", anomaly.excuse)) if value}
    generation = {"generation": g} if (g := telling.generation) >= 0 else {}
    return {
        **place,
        **offsets,
        "members": list(anomaly.members),
        **generation,
        **times,
        **why,
        "count": anomaly.count,
        "sentence": telling.sentence(),
        "witnesses": telling.witnesses(),
    }


class _Telling:
    """What the tables know about one anomaly, in words."""

    def __init__(self, tables: Tables, anomaly: Anomaly) -> None:
        self.tables, self.a = tables, anomaly
        name = TopicPartition(anomaly.topic, anomaly.partition)
        self.place = str(name)
        self.tp = next((p.tp for p in tables.partitions.values() if p.name == name), -1)
        self.who = anomaly.members[0] if anomaly.members else "nobody known"
        self.other = anomaly.members[-1] if anomaly.members else "nobody known"
        self.one = anomaly.count == 1

    def sentence(self) -> str:
        """The one sentence; a kind that has none of its own is told plainly."""
        tell = SENTENCES.get(self.a.kind)
        text = tell(self) if tell else f"{self.a.kind}: {self.records} ({', '.join(self.a.members)}), {self.span}"
        if self.a.excuse.startswith("declared act"):
            text += f" ({self.a.excuse})"
        named = any(text.startswith(name) for name in self.a.members)
        return f"{text if named else text[0].upper() + text[1:]}."

    def at(self, ns: int) -> str:
        """A moment: ``12.034 s``."""
        return f"{(ns - self.tables.origin_ns) / NS:.3f} s"

    @property
    def span(self) -> str:
        """When: one moment, or from one to another."""
        if self.a.to_ns <= self.a.from_ns:
            return f"at {self.at(self.a.from_ns)}"
        return f"from {self.at(self.a.from_ns)} to {self.at(self.a.to_ns)}"

    @property
    def length(self) -> str:
        """How long: ``1.499 s``."""
        return f"{(self.a.to_ns - self.a.from_ns) / NS:.3f} s"

    @property
    def records(self) -> str:
        """``offset 4711 of orders-3``, or ``12 records of orders-3 (offsets 4711 to 4730)``."""
        if self.one:
            return f"offset {self.a.first_offset} of {self.place}"
        return f"{self.a.count:,} records of {self.place} (offsets {self.a.first_offset} to {self.a.last_offset})"

    @property
    def were(self) -> str:
        return "was" if self.one else "were"

    @property
    def them(self) -> str:
        return "it" if self.one else "them"

    @property
    def passer(self) -> Commit | None:
        """Of a record that was passed unseen: the first commit past it that was not refused."""
        if self.a.kind != "unseen":
            return None
        past = (c for c in self.tables.commits if c.tp == self.tp and c.offset > self.a.first_offset)
        return next((c for c in past if c.outcome != "fail" and c.incarnation == self.who), None)

    @property
    def generation(self) -> int:
        """The generation (or epoch) of the commit or interval that the anomaly is about; -1 unknown."""
        if self.passer:
            return self.passer.generation
        mine = [i for i in self.intervals if i.incarnation == self.who]
        return mine[-1].generation if mine else -1

    @property
    def intervals(self) -> list[Interval]:
        """The assignment intervals of the partition that meet the anomaly's time, of the members concerned."""
        concerned = (i for i in self.tables.intervals if i.tp == self.tp and i.incarnation in self.a.members)
        end = self.a.to_ns or FOREVER
        return [i for i in concerned if i.assigned_begin_ns <= end and (i.given_up_end_ns or FOREVER) >= self.a.from_ns]

    def death(self, incarnation: str) -> str:
        """How and when an incarnation ended, if not cleanly; empty otherwise."""
        life = self.tables.lives.get(incarnation)
        if life is None or life.how not in ("killed", "crashed"):
            return ""
        return f"{incarnation} {'was killed' if life.how == 'killed' else 'crashed'} at {self.at(life.ended_ns)}"

    def witnesses(self) -> list[str]:
        """Facts of the history behind the sentence, in the order of time."""
        found: list[tuple[int, str]] = []
        for i in self.intervals:
            told = (
                f"generation {i.generation}, {i.how} at {self.at(i.given_up_begin_ns)}" if i.how else "never given up"
            )
            found.append((i.assigned_begin_ns, f"{i.incarnation} was assigned {self.place}: {told}"))
        if self.passer:
            c = self.passer
            found.append(
                (c.begin_ns, f"{c.incarnation} committed {c.offset} ({c.outcome}{', ' if c.error else ''}{c.error})")
            )
        for g in self.tables.given:
            if g.tp == self.tp and g.incarnation in self.a.members and g.at_ns <= (self.a.to_ns or FOREVER):
                found.append((g.at_ns, f"the coordinator gave {self.place} to {g.incarnation} (record {g.order})"))
        for gone in self.tables.gone:
            if gone.incarnation in self.a.members and gone.at_ns <= (self.a.to_ns or FOREVER):
                found.append(
                    (gone.at_ns, f"the coordinator's records show {gone.incarnation} gone (record {gone.order})")
                )
        for member in self.a.members:
            if death := self.death(member):
                found.append((self.tables.lives[member].ended_ns, death))
        for step in self.tables.steps:
            until = (step.healed_ns or FOREVER) if step.heals else step.begun_ns
            if step.begun_ns and step.begun_ns <= (self.a.to_ns or FOREVER) and until >= self.a.from_ns:
                found.append(
                    (step.begun_ns, f"{step.fault} of {step.target or 'the cluster'} was in effect (step {step.step})")
                )
        return [f"{self.at(ns)}: {what}" for ns, what in sorted(found)[-WITNESSES_MAX:]]


def _unseen(t: _Telling) -> str:
    passed, c, holder = "", t.passer, t.other
    if c:
        passed = f" past ({c.offset}, by {c.incarnation}, generation {c.generation}, {t.at(c.begin_ns)})"
    how = {
        "skipped": "without ever being delivered to anyone",
        "in-doubt": f"while {holder} had begun but not finished {t.them}",
        "committed-unprocessed": f"before {holder}, who was given {t.them}, had finished",
    }[t.a.cause]
    death = t.death(holder) if t.a.cause != "skipped" else ""
    died = f"{death}; " if death else ""
    return f"{t.records} {t.were} committed{passed} {how}; {died}nobody processed {t.them}"


def _twice(t: _Telling) -> str:
    if t.who == t.other:
        return f"{t.records} {t.were} finished by {t.who} in one assignment and again in a later one ({t.span})"
    return f"{t.records} {t.were} finished by {t.who} and again by {t.other}, the later owner ({t.span})"


def _redelivery(t: _Telling) -> str:
    why = {
        "": f"nothing shows that {t.who} had given the partition up",
        "former owner died": t.death(t.who) or f"{t.who} died",
        "former owner lost it": f"{t.who} had lost the partition before it could commit",
        "former owner was removed": f"{t.who} had been removed from the group before it could commit",
    }.get(t.a.excuse, f"the {t.a.excuse} when {t.who} gave the partition up")
    return f"{_twice(t)}: {why}"


def _loop(t: _Telling) -> str:
    why = "more often than any fault explains" if t.a.cause == "count" else "while the committed offset stood still"
    return f"{t.records} {t.were} delivered again and again ({t.span}) {why}, at last to {t.who}"


def _rewind(t: _Telling) -> str:
    sought = f" after the program had moved {t.who}'s position back" if t.a.cause else ""
    return f"{t.who} was given {t.records} again inside one assignment, {t.span}{sought}"


def _overlap(t: _Telling) -> str:
    zombie = f"; {t.who} had been removed from the group and could not know yet" if t.a.excuse else ""
    return f"{t.who} and {t.other} both owned {t.place} for {t.length}, {t.span}{zombie}"


def _at_work(t: _Telling) -> str:
    frozen = f"; {t.who} had begun {t.them} before it was frozen" if t.a.excuse else ""
    return f"{t.who} was processing {t.records} while {t.other} was processing records of {t.place}, {t.span}{frozen}"


def _after_revocation(t: _Telling) -> str:
    return (
        f"{t.who} began to process {t.records} ({t.span}) after its own {t.a.cause} callback for {t.place} had returned"
    )


def _stuck(t: _Telling) -> str:
    owner = "although nobody owned it" if t.a.cause else f"while {t.who} owned it"
    waited = f"records of {t.place} waited, from offset {t.a.first_offset} on"
    return f"{waited}, and none was delivered for {t.length} ({t.span}) {owner}"


SENTENCES: Mapping[str, Callable[[_Telling], str]] = {
    "lost-write": lambda t: (
        f"{t.records} {t.were} acknowledged to {t.who} ({t.span}) and {'is' if t.one else 'are'} not in the log"
    ),
    "phantom": lambda t: (
        f"{t.records} {t.were} delivered to {t.who} ({t.span}), but nobody produced it and the log does not hold it"
    ),
    "unseen": _unseen,
    "redelivery": _redelivery,
    "avoidable-redelivery": lambda t: f"{_twice(t)}, although {t.who} gave the partition up cleanly",
    "redelivery-below-commit": lambda t: (
        f"{t.who} processed {t.records} again ({t.span}) although the group had committed past "
        f"{t.them} before {t.who} started"
    ),
    "redelivery-loop": _loop,
    "rewind": _rewind,
    "poll-skip": lambda t: f"{t.who} was never given {t.records} inside one assignment that went past, {t.span}",
    "key-order": lambda t: (
        f"{t.who} began {t.records} from {t.at(t.a.from_ns)} on, before an earlier record of the same key was first "
        f"finished (by {t.other}, {t.at(t.a.to_ns)} at the latest)"
    ),
    "assignment-overlap": _overlap,
    "processing-overlap": _at_work,
    "stale-backlog": lambda t: (
        f"{t.who} began to process {t.records} ({t.span}) although the coordinator had given {t.place} to {t.other}"
    ),
    "processing-after-revocation": _after_revocation,
    "unconsumed": lambda t: f"{t.records} {t.were} left when the drain ended; the last owner was {t.who}",
    "stuck-partition": _stuck,
    "history-incomplete": lambda t: f"the history of {t.who} lacks {t.a.count:,} deliveries of {t.place} ({t.span})",
}
