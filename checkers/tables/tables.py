"""The tables of one run, and how to look things up in them. Pure: ``loading`` fills them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from fencepost.checkers.tables.requests import Heartbeat, Request, writers
from fencepost.checkers.tables.rows import (
    FOREVER,
    Accepted,
    Act,
    Commit,
    Damage,
    Doubled,
    Given,
    Gone,
    Interval,
    Life,
    Partition,
    Round,
    Seek,
    Step,
    Stray,
    Window,
)

HEARTBEAT_MS = "3000"  # Kafka's default heartbeat.interval.ms
R = TypeVar("R")
K = TypeVar("K")


@dataclass(frozen=True)
class Tables:
    """The small tables of one run. Rows are ordered by time (commits of the broker: by the offsets log).

    Attributes:
        scenario: ``scenario.json`` as it is; ``asked`` is the scenario proper.
        origin_ns: the run's start; sentences count seconds from here.
        leaders: (at_ns, uncertainty_ns, tp, leader) of every change of a leader, -1 = none.
        phases: the window of each phase by name; an end of 0 means that it never ended.
        broken_off: the phase in which the run was interrupted; empty when it went through.
        unguarded: writers whose client was not told to be idempotent.
    """

    run: Path
    scenario: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    origin_ns: int = 0
    partitions: Mapping[int, Partition] = field(default_factory=dict)
    lives: Mapping[str, Life] = field(default_factory=dict)
    intervals: tuple[Interval, ...] = ()
    commits: tuple[Commit, ...] = ()
    accepted: tuple[Accepted, ...] = ()
    given: tuple[Given, ...] = ()
    gone: tuple[Gone, ...] = ()
    doubled: tuple[Doubled, ...] = ()
    strays: tuple[Stray, ...] = ()
    rounds: tuple[Round, ...] = ()
    steps: tuple[Step, ...] = ()
    seeks: tuple[Seek, ...] = ()
    acts: tuple[Act, ...] = ()
    stalls: tuple[Window, ...] = ()
    phases: Mapping[str, Window] = field(default_factory=dict)
    broken_off: str = ""
    terms: tuple[tuple[int, int, int], ...] = ()
    leaders: tuple[tuple[int, int, int, int], ...] = ()
    unguarded: frozenset[int] = frozenset()
    asked_commits: tuple[Request, ...] = ()
    fetched: tuple[Request, ...] = ()
    heartbeats: tuple[Heartbeat, ...] = ()
    damage: tuple[Damage, ...] = ()

    @property
    def asked(self) -> Mapping[str, Any]:
        """The scenario proper."""
        value = self.scenario.get("scenario")
        return value if isinstance(value, Mapping) else {}

    @cached_property
    def interval(self) -> Mapping[tuple[str, int, int], Interval]:
        """Assignment intervals by (incarnation, tp, number)."""
        return {(i.incarnation, i.tp, i.number): i for i in self.intervals}

    @cached_property
    def intervals_of(self) -> Mapping[tuple[str, int], list[Interval]]:
        """Assignment intervals by (incarnation, tp), in the order of time."""
        return _grouped(self.intervals, lambda i: (i.incarnation, i.tp))

    @cached_property
    def intervals_by_tp(self) -> Mapping[int, list[Interval]]:
        """Assignment intervals by partition, in the order of time."""
        return _grouped(self.intervals, lambda i: i.tp)

    @cached_property
    def commits_of(self) -> Mapping[tuple[str, int], list[Commit]]:
        """What members tell of their commits, by (incarnation, tp), in the order of their begins."""
        return _grouped(sorted(self.commits, key=lambda c: c.begin_ns), lambda c: (c.incarnation, c.tp))

    @cached_property
    def accepted_of(self) -> Mapping[int, list[Accepted]]:
        """Accepted commits by partition, in the order of the coordinator's log."""
        return _grouped(self.accepted, lambda a: a.tp)

    @cached_property
    def given_of(self) -> Mapping[int, list[Given]]:
        """The coordinator's changes of owners by partition, in the order of its log."""
        return _grouped(self.given, lambda g: g.tp)

    @cached_property
    def _writers(self) -> Mapping[int, str]:
        return writers(self.accepted, self.asked_commits)

    def writer(self, commit: Accepted) -> str:
        """The incarnation that wrote an accepted commit; empty when that is not certain."""
        return self._writers.get(commit.order, "")

    def commits_in(self, interval: Interval) -> list[Commit]:
        """The commits of an interval's partition that its incarnation began while it may have owned it, by begin."""
        own = self.commits_of.get((interval.incarnation, interval.tp), ())
        return [c for c in own if interval.possible_at(c.begin_ns)]

    def log_start(self, tp: int) -> int:
        """Where the log of a partition began at the audit: what was below is deleted, and that is no loss."""
        return self.partitions[tp].log_start if tp in self.partitions else 0

    def final_committed(self, tp: int) -> int:
        """The group's last committed offset of a partition; -1 when there is none."""
        rows = self.accepted_of.get(tp)
        return rows[-1].offset if rows else -1

    def committed_between(self, tp: int, from_ns: int, to_ns: int) -> tuple[int, ...]:
        """Every committed offset that somebody may have fetched between two moments; -1 stands for none.

        That is: the last one that was certainly in force at ``from_ns`` (a member had its "ok") and all that were
        appended, or may have been, after it and before ``to_ns``. Moments in the wrong order, which only a history that
        was tampered with has, are taken in the right one.
        """
        from_ns, to_ns = sorted((from_ns, to_ns))
        rows = self.accepted_of.get(tp, [])
        certain = [n for n, a in enumerate(rows) if a.answered_ns and a.answered_ns <= from_ns]
        possible = [a.offset for a in rows[certain[-1] if certain else 0 :] if a.at_ns - a.uncertainty_ns <= to_ns]
        return tuple(possible) if certain else (-1, *possible)

    @cached_property
    def fetched_of(self) -> Mapping[tuple[str, int], list[Request]]:
        """Answered fetches of offsets by (incarnation, tp), in the order of time."""
        return _grouped(self.fetched, lambda f: (f.incarnation, f.tp))

    def certain_owner(self, tp: int, at_ns: int) -> Given | None:
        """The coordinator's record that gave the partition to whoever certainly had it at ``at_ns``.

        None when that is not certain: no record, a change within the uncertainty, nobody, or an unknown member id.
        """
        rows = self.given_of.get(tp, [])
        last = bisect_right(rows, at_ns, key=lambda g: g.at_ns - g.uncertainty_ns) - 1
        if last < 0 or rows[last].at_ns + rows[last].uncertainty_ns > at_ns or not rows[last].incarnation:
            return None
        return rows[last]

    def removed(self, interval: Interval, by_ns: int) -> Gone | None:
        """The coordinator's record that the owner of ``interval`` was gone during it, if possibly by ``by_ns``."""
        for g in self.gone:
            same = g.member_id == interval.member_id if interval.member_id else g.incarnation == interval.incarnation
            during = g.at_ns + g.uncertainty_ns >= interval.assigned_begin_ns
            if same and during and g.at_ns - g.uncertainty_ns <= by_ns:
                return g
        return None

    def act_on(self, tp: int, by_ns: int) -> str:
        """The name of a declared act on the partition that began before ``by_ns``; empty when there is none."""
        return next((a.what for a in self.acts if a.tp in (-1, tp) and a.begin_ns <= by_ns), "")

    def declared(self, tp: int, by_ns: int) -> str:
        """The excuse by a declared act on the partition that began before ``by_ns``; empty when there is none."""
        act = self.act_on(tp, by_ns)
        return f"declared act: {act}" if act else ""

    def not_idempotent(self, writer: int) -> str:
        """The excuse for a client that writes a record twice or late; empty when it was told to be idempotent."""
        return "producer not idempotent" if writer in self.unguarded else ""

    def setting(self, name: str, default: str) -> str:
        """A setting of the group's clients."""
        config = (self.asked.get("group") or {}).get("config") or {}
        return str(config.get(name, default))

    @property
    def protocol(self) -> str:
        """The group's protocol: eager, cooperative or consumer; empty when it is not known."""
        return str((self.asked.get("group") or {}).get("protocol") or "")

    @property
    def resets_to_end(self) -> bool:
        """Whether a member without a committed offset starts at the end."""
        return self.setting("auto.offset.reset", "earliest") in ("latest", "largest", "end")

    @property
    def heartbeat_ns(self) -> int:
        """The heartbeat interval of the group's clients; of the consumer protocol's too, which the brokers decide."""
        brokers = (self.scenario.get("cluster") or {}).get("broker_config") or {}
        both = (
            self.setting("heartbeat.interval.ms", HEARTBEAT_MS),
            brokers.get("group.consumer.heartbeat.interval.ms"),
        )
        return max(int(float(ms or 0) * 1_000_000) for ms in both)

    def leaderless(self, tp: int, from_ns: int, to_ns: int) -> bool:
        """Whether the partition had possibly no leader at some moment between two."""
        changes = [change for change in self.leaders if change[2] == tp]
        ends = [*(at_ns + blur for at_ns, blur, _, _ in changes[1:]), FOREVER]
        gaps = (Window(c[0] - c[1], end) for c, end in zip(changes, ends, strict=False) if c[3] < 0)
        return any(gap.begin_ns <= to_ns and gap.end_ns >= from_ns for gap in gaps)

    @cached_property
    def closing_ns(self) -> int:
        """When the first member began to leave in the drain (who loses a partition does not); FOREVER when none did."""
        drain = self.phases.get("drain", Window(FOREVER, 0))
        signs = []
        for life in self.lives.values():
            if life.how == "closed" and life.ended_ns >= drain.begin_ns:
                own = (i for i in self.intervals if i.incarnation == life.incarnation and i.how not in ("", "lost"))
                given_up = (i.given_up_begin_ns for i in own if i.given_up_begin_ns >= drain.begin_ns)
                signs.append(max(given_up, default=life.ended_ns))
        return min(signs, default=FOREVER)

    @property
    def quiet(self) -> Window:
        """When liveness is judged: from the end of healing (without faults: of warming up) to the end of the drain.

        Empty when the run never got there.
        """
        after = self.phases.get("heal" if self.steps else "warm-up", Window(0, 0)).end_ns
        end = self.phases.get("drain", Window(0, 0)).end_ns
        return Window(after, end) if after and end else Window(0, 0)


def _grouped(rows: Iterable[R], key: Callable[[R], K]) -> Mapping[K, list[R]]:
    found: dict[K, list[R]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found
