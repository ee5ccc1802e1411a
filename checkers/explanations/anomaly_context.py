"""The facts about one anomaly in words, from the tables: times, places, members, and witnesses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from heapq import nlargest
from typing import TypeVar

from fencepost.checkers.detections import EXPIRED
from fencepost.checkers.promises import Commits
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.answers import KIND, Stale
from fencepost.checkers.tables.rows import FOREVER, NS, Commit, Interval
from fencepost.model import Anomaly, TopicPartition

WITNESSES_MAX = 12
R = TypeVar("R")


class AnomalyContext:
    """The facts about one anomaly in words; templates of sentences use its attributes."""

    def __init__(self, tables: Tables, anomaly: Anomaly) -> None:
        self.tables, self.a = tables, anomaly
        name = TopicPartition(anomaly.topic, anomaly.partition)
        self.place = str(name) if anomaly.topic else "a partition whose name is lost"
        self.tp = tables.tp_of.get(name, -1)
        self.who = anomaly.members[0] if anomaly.members else "an unknown member"
        self.other = anomaly.members[-1] if anomaly.members else "an unknown member"
        self.one = anomaly.count == 1

    def at(self, ns: int) -> str:
        """A time in seconds since the start of the run: ``12.034 s``."""
        return f"{(ns - self.tables.origin_ns) / NS:.3f} s"

    @property
    def begin(self) -> str:
        """The time at which the anomaly began."""
        return self.at(self.a.from_ns)

    @property
    def end(self) -> str:
        """The time at which the anomaly ended."""
        return self.at(self.a.to_ns)

    @property
    def span(self) -> str:
        """The time of the anomaly: ``at 12.034 s``, or ``from 12.034 s to 13.533 s``."""
        one = self.a.to_ns <= self.a.from_ns or self.begin == self.end
        return f"at {self.begin}" if one else f"from {self.begin} to {self.end}"

    @property
    def length(self) -> str:
        """The duration of the anomaly: ``1.499 s``."""
        return f"{(self.a.to_ns - self.a.from_ns) / NS:.3f} s"

    @property
    def records(self) -> str:
        """``offset 4711 of orders-3``, or ``12 records of orders-3 (offsets 4711 to 4730)``."""
        if self.one:
            return f"offset {self.a.first_offset} of {self.place}"
        return f"{self.a.count:,} records of {self.place} (offsets {self.a.first_offset} to {self.a.last_offset})"

    @property
    def offsets(self) -> str:
        """``4711``, or ``4711 to 4730``."""
        first, last = self.a.first_offset, self.a.last_offset
        return str(first) if first == last else f"{first} to {last}"

    @property
    def were(self) -> str:
        """The verb of ``records``."""
        return "was" if self.one else "were"

    @property
    def them(self) -> str:
        """The pronoun of ``records``."""
        return "it" if self.one else "them"

    @property
    def they(self) -> str:
        """The same pronoun as a subject."""
        return "it" if self.one else "they"

    @cached_property
    def passer(self) -> Commit | None:
        """For ``unseen``: the first commit past the record that was not refused; None for other kinds."""
        if self.a.kind != "unseen":
            return None
        own = self.tables.commits_of.get((self.who, self.tp), ())
        return next((c for c in own if c.offset > self.a.first_offset and c.outcome != "fail"), None)

    @cached_property
    def stale(self) -> Stale | None:
        """The last stale answer that the anomaly is about, or that caused it."""
        if self.a.kind != KIND:
            return None
        until_ns, member = self.a.to_ns or FOREVER, self.a.members[:1]
        found = [one for one in self.tables.stale.values() if one.answer.tp == self.tp]
        found = [one for one in found if not member or one.answer.incarnation == member[0]]
        if member or self.a.cause:
            found = [one for one in found if one.answer.offset <= self.a.first_offset or not self.a.cause]
        else:
            found = [one for one in found if one.answer.incarnation not in self.tables.lives]
        return max((one for one in found if one.answer.served.begin_ns <= until_ns), key=_answered, default=None)

    @property
    def generation(self) -> int:
        """The generation (or epoch) of the commit or interval that the anomaly is about; -1: unknown."""
        if self.passer:
            return self.passer.generation
        own = [i for i in self.intervals if i.incarnation == self.who]
        return own[-1].generation if own else -1

    @cached_property
    def intervals(self) -> list[Interval]:
        """The anomaly's members' assignment intervals of the partition that meet the anomaly's time."""
        concerned = (i for member in {*self.a.members} for i in self.tables.intervals_of.get((member, self.tp), ()))
        end = self.a.to_ns or FOREVER
        met = (i for i in concerned if i.assigned_begin_ns <= end and (i.given_up_end_ns or FOREVER) >= self.a.from_ns)
        return sorted(met, key=lambda i: (i.assigned_begin_ns, i.incarnation))

    @property
    def owned(self) -> str:
        """The first member's partitions when the anomaly began: ``orders-1 and 3 more``; empty: none."""
        own = self.tables.intervals_by_incarnation.get(self.who, ())
        own = [i for i in own if i.assigned_end_ns <= self.a.from_ns]
        names = [str(self.tables.partitions[i.tp].name) for i in own if i.possible_at(self.a.from_ns)]
        return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else "".join(names)

    def death(self, incarnation: str) -> str:
        """How and when an incarnation ended; empty if it ended cleanly or not at all."""
        life = self.tables.lives.get(incarnation)
        if life is None or life.how not in ("killed", "crashed"):
            return ""
        return f"{incarnation} {'was killed' if life.how == 'killed' else 'crashed'} at {self.at(life.ended_ns)}"

    def witnesses(self) -> list[str]:
        """The facts of the history behind the sentence, ordered by time."""
        found: list[tuple[int, str]] = []
        until_ns = self.a.to_ns or FOREVER
        for i in _last(self.intervals, lambda i: i.assigned_begin_ns):
            until = (
                f"generation {i.generation}, {i.how} at {self.at(i.given_up_begin_ns)}" if i.how else "never revoked"
            )
            found.append((i.assigned_begin_ns, f"{i.incarnation} was assigned {self.place}: {until}"))
        if self.passer:
            c = self.passer
            found.append(
                (c.begin_ns, f"{c.incarnation} committed {c.offset} ({c.outcome}{', ' if c.error else ''}{c.error})")
            )
        found += self._answer()
        accepted = self.tables.accepted_of.get(self.tp, ()) if self.a.kind in Commits.kinds else ()
        for a in [a for a in accepted if a.at_ns <= until_ns][-2:]:
            by = f", written by {writer}" if (writer := self.tables.writer(a)) else ""
            found.append((a.at_ns, f"the coordinator recorded {a.offset} as committed (record {a.order}{by})"))
        given = (g for g in self.tables.given_of.get(self.tp, ()) if g.incarnation in self.a.members)
        for g in _last((g for g in given if g.at_ns <= until_ns), lambda g: g.at_ns):
            found.append((g.at_ns, f"the coordinator assigned {self.place} to {g.incarnation} (record {g.order})"))
        for member in dict.fromkeys(self.a.members):
            for gone in self.tables.gone_by_incarnation.get(member, ()):
                if gone.at_ns <= until_ns:
                    found.append((gone.at_ns, f"{member} left the coordinator's records (record {gone.order})"))
        for member in self.a.members:
            if death := self.death(member):
                found.append((self.tables.lives[member].ended_ns, death))
        sought = self.tables.seeks_of.get((self.who, self.tp), ()) if self.a.cause == "seek" else ()
        for s in _last((s for s in sought if s.begin_ns <= self.a.to_ns), lambda s: s.begin_ns):
            found.append((s.begin_ns, f"the program of {s.incarnation} moved its position to {s.offset}"))
        forgotten = self.a.excuse == EXPIRED or self.a.cause == "expired"
        for e in self.tables.expiries.get(self.tp, ()) if forgotten else ():
            found.append((e.at_ns, f"the coordinator deleted the committed offset {e.offset} (record {e.order})"))
        for step in self.tables.steps:
            over_ns = (step.healed_ns or FOREVER) if step.heals else step.begun_ns
            if step.begun_ns and step.begun_ns <= until_ns and over_ns >= self.a.from_ns:
                found.append(
                    (step.begun_ns, f"{step.fault} of {step.target or 'the cluster'} was in effect (step {step.step})")
                )
        return [f"{self.at(ns)}: {what}" for ns, what in sorted(found)[-WITNESSES_MAX:]]

    def _answer(self) -> Iterator[tuple[int, str]]:
        """Witnesses of a stale answer: the acknowledged commit, the answer, the end of the new coordinator's log."""
        if self.stale is None:
            return
        answer, commit, at_ns = self.stale
        asks = (q for q in self.tables.asked_commits if (q.tp, q.offset, q.error) == (self.tp, commit.offset, ""))
        asked = next((q for q in asks if q.served.meets(commit.written)), None)
        by = f", of {asked.incarnation or 'an unknown member'}, answered by {broker(asked.broker)}" if asked else ""
        yield at_ns, f"a commit of {commit.offset} had been acknowledged (record {commit.order}{by})"
        client = answer.incarnation or "an unknown client"
        answered = f"{broker(answer.broker)} answered {client}, asked at {self.at(answer.begin_ns)}"
        yield answer.end_ns, f"{answered}: {answer.offset} is committed"
        seats = (s for s in self.tables.seats if s.leader == answer.broker and s.at_ns <= answer.end_ns)
        if (seat := max(seats, key=lambda s: s.at_ns, default=None)) and seat.high_watermark >= 0:
            mark = f"high watermark {seat.high_watermark} (its log ended at {seat.log_end})"
            yield seat.at_ns, f"broker {seat.leader} began to lead the group's partition of the offsets topic: {mark}"


def broker(number: int) -> str:
    """One broker, if its number is known."""
    return f"broker {number}" if number >= 0 else "a broker"


def _answered(one: Stale) -> int:
    return one.answer.end_ns


def _last(rows: Iterable[R], at_ns: Callable[[R], int]) -> list[R]:
    """The last rows, at most ``WITNESSES_MAX``."""
    return nlargest(WITNESSES_MAX, rows, key=at_ns)
