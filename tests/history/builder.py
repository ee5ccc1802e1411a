"""Writes small run folders from a compact notation: real Parquet, event lines and evidence, sealed by the real seal.

Times are seconds since the run's start. Nothing is implied but what is convenient and harmless: an assigned callback
also writes the coordinator's record of it just before; a commit is also a request that a broker logs, and an "ok" one
is accepted by the coordinator. ::

    h = HistoryBuilder(tmp_path)
    h.write(10)                                # offsets 0..9 of partition 0, acknowledged and in the log
    a = h.member(0)                            # member-0.1
    a.assigned(at=1)
    a.process(range(10), at=2)                 # one poll, one after the other, 1 ms each
    a.commit(10, at=3)
    a.close(at=9)
    run = h.seal()
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fencepost.checkers.tables.records import Logged, Produced
from fencepost.evidence.sealing import parquet_records
from fencepost.evidence.sealing.seal import seal
from fencepost.history import (
    DELIVERED_COLUMNS,
    FORMAT_VERSION,
    LOG_COLUMNS,
    PRODUCED_COLUMNS,
    RecordState,
    SendOutcome,
)
from fencepost.history.run_folder import RunFolder
from fencepost.model import TopicPartition
from fencepost_member.payload import key_hash
from fencepost_member.recording.events import EventLog

ORIGIN_NS = 1_000 * 10**9
WALL_AHEAD_NS = 1_700_000_000 * 10**9
TOPIC = "orders"
BLUR_NS = 500_000
STEP_S = 0.001


def ns(seconds: float) -> int:
    """A time of the notation as the history keeps it."""
    return ORIGIN_NS + round(seconds * 1e9)


@dataclass
class Row:
    """One delivered record while it is being told; ``tests`` may change any field before the seal."""

    incarnation: str
    tp: int
    offset: int
    key: int
    writer: int
    seq: int
    interval: int
    poll: int
    position: int
    ord: int
    delivered_ns: int
    begin_ns: int = 0
    done_ns: int = 0
    state: int = RecordState.DELIVERED
    thread: int = 0

    def begin(self, at: float) -> Row:
        self.begin_ns, self.state = ns(at), RecordState.BEGUN
        return self

    def end(self, at: float, state: RecordState = RecordState.DONE) -> Row:
        self.done_ns, self.state = ns(at), state
        return self


@dataclass
class MemberTeller:
    """One incarnation; its methods tell what it did."""

    history: HistoryBuilder
    name: str
    member_id: str
    events: EventLog
    intervals: dict[int, int] = field(default_factory=dict)
    ords: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    rows: list[Row] = field(default_factory=list)
    polls: int = 0
    held: set[int] = field(default_factory=set)

    def assigned(
        self, at: float, tp: int = 0, *, took: float = STEP_S, reported: bool = True, generation: int = 1
    ) -> None:
        """The assigned callback; ``reported``: the coordinator's record 10 ms before it."""
        if reported:
            self.history.gives(self, tp, at - 0.01)
        self.intervals[tp] = self.intervals.get(tp, -1) + 1
        self.held.add(tp)
        self._event("assigned", at, at + took, tp=tp, generation=generation)

    def revoked(self, at: float, tp: int = 0, *, took: float | None = STEP_S, reported: bool = True) -> None:
        """The revoked callback (took None: it never returned); ``reported``: 10 ms later nobody has the partition."""
        self.held.discard(tp)
        self._event("revoked", at, None if took is None else at + took, tp=tp)
        if reported and took is not None:
            self.history.takes(self, tp, at + took + 0.01)

    def lost(self, at: float, tp: int = 0, *, took: float = STEP_S) -> None:
        """The lost callback."""
        self.held.discard(tp)
        self._event("lost", at, at + took, tp=tp)

    def evicted(self, at: float) -> None:
        """The coordinator removes it; it hears nothing of that."""
        self.history.removes(self, at)

    def deliver(self, offset: int, at: float, tp: int = 0, **changes: Any) -> Row:
        """One record of a poll of its own; its content is the log's. ``changes`` set any of its columns."""
        logged = self.history.content.get((tp, offset), (0, 0, offset))
        if "poll" not in changes:
            self.polls += 1
        row = Row(
            self.name,
            tp,
            offset,
            *logged,
            interval=self.intervals.get(self.history.successors.get(tp, tp), -1),
            poll=self.polls - 1,
            position=0,
            ord=self.ords[tp],
            delivered_ns=ns(at),
        )
        for name, value in changes.items():
            setattr(row, name, value)
        self.ords[tp] = row.ord + 1
        self.rows.append(row)
        return row

    def poll(self, offsets: Iterable[int], at: float, tp: int = 0) -> list[Row]:
        """One poll that returns these records; nothing is begun yet."""
        self.polls += 1
        return [self.deliver(o, at, tp, poll=self.polls - 1, position=n) for n, o in enumerate(offsets)]

    def process(self, offsets: Iterable[int], at: float, tp: int = 0, each: float = STEP_S) -> list[Row]:
        """One poll, then each record begun and done, one after the other."""
        rows = self.poll(offsets, at, tp)
        for n, row in enumerate(rows):
            row.begin(at + n * each).end(at + (n + 0.9) * each)
        return rows

    def commit(
        self,
        offset: int,
        at: float,
        tp: int = 0,
        *,
        outcome: str | None = "ok",
        error: str = "",
        accepted: bool | None = None,
        logged: bool | str = True,
        mode: str = "sync",
        asked: int | None = None,
        generation: int = 1,
        connection: str = "1",
    ) -> None:
        """One commit of 2 ms; outcome None: never answered. Accepted 1 ms after its start, if ok or told so.

        ``asked``: the program named nothing, and this was stored then.
        ``logged``: a broker logged the request from 0.5 to 1.5 ms after the start, with the error (or another one).
        """
        fields: dict[str, Any] = {"outcome": outcome, "error": error or None} if outcome else {}
        begin, end = (at + 0.002, at + 0.002) if mode == "auto" else (at, at + 0.002 if outcome else None)
        place = [[*self.history.partitions[tp], asked]] if asked is not None else None
        fields = {**fields, "detail": {"mode": mode, **({"asked": place} if place else {})}}
        self._event("commit", begin, end, tp=tp, offset=offset, generation=generation, **fields)
        taken = outcome == "ok" if accepted is None else accepted
        if taken and mode == "transaction":
            self.history.accepts(offset, at + 0.001, tp, producer=7)
            self.history.ends_transaction(7, at + 0.001)
        elif taken:
            self.history.accepts(offset, at + 0.001, tp)
        if logged is not False:
            why = logged if isinstance(logged, str) else "" if taken else error or "REQUEST_TIMED_OUT"
            self.asks_to_commit(offset, at + 0.0005, tp, error=why, connection=connection)

    def asks_to_commit(
        self, offset: int, at: float, tp: int = 0, *, error: str = "", connection: str = "1", api: str = "OFFSET_COMMIT"
    ) -> None:
        """A broker logs a request of 1 ms to commit, with its answer; nothing else comes of it."""
        self.history.logs(api, self, offset, at, tp, error=error, member_id=self.member_id)
        self.history.requests[-1]["connection"] = connection

    def fetches(
        self,
        offset: int | None,
        at: float,
        tp: int = 0,
        *,
        error: str = "",
        stable: bool = False,
        broker: int | None = None,
    ) -> None:
        """A broker logs that it told this member the committed offset (None: there is none), in 1 ms; ``stable``: which
        no open transaction may still change.

        As brokers do: the consumer protocol names the member, the classic one does not.
        """
        member_id = None if self.history.classic else self.member_id
        self.history.logs(
            "OFFSET_FETCH", self, -1 if offset is None else offset, at, tp, error=error, member_id=member_id
        )
        self.history.requests[-1] |= {"request": {"requireStable": stable}, "broker": broker}

    def heartbeat(self, at: float, *, generation: int = 1, error: str | None = None) -> None:
        """A heartbeat that the coordinator answered, within 1 ms."""
        api = "HEARTBEAT" if self.history.classic else "CONSUMER_GROUP_HEARTBEAT"
        times = {"start_ns": ns(at), "end_ns": ns(at + STEP_S), "uncertainty_ns": self.history.blur_ns}
        asked = {"api": api, "member_id": self.member_id, "generation": generation, "error": error}
        self.history.requests.append({**asked, **times})

    def unpolled(self, at: float, until: float) -> None:
        """It does not poll between two moments."""
        self._event("poll-gap", at, until)

    def polled_by_fork(self, at: float) -> None:
        """A process that was forked from its own polls its consumer, for the first time."""
        self.events.note("forked", detail={"pid": 2}, begin_ns=ns(at), end_ns=ns(at))

    def subscribes(self, at: float) -> None:
        """It subscribes to other topics."""
        self._event("subscribed", at, at + STEP_S)

    def gives_up(self, error: str, at: float) -> None:
        """Its client meets a fatal error."""
        if not self.history.black_box:
            self.events.note("error", error=error, detail={"fatal": True}, begin_ns=ns(at), end_ns=ns(at))

    def miscounts(self, by: int, tp: int = 0) -> None:
        """The numbers of its records of a partition go on ``by`` too high."""
        self.ords[tp] += by

    def seek(self, offset: int, at: float, tp: int = 0) -> None:
        """The program moves its position."""
        self._event("seek", at, at + STEP_S, tp=tp, offset=offset)

    def pauses(self, at: float, until: float | None, tp: int = 0) -> None:
        """The program has its client fetch nothing of the partition, for ever without an end."""
        self._event("paused", at, until, tp=tp)

    def effect(
        self,
        offset: int,
        at: float,
        *,
        seq: int,
        token: int = 0,
        tp: int = 0,
        kind: str = "effect",
        key: int = -1,
        **more: int,
    ) -> None:
        """A store outside of Kafka tells, in the end, what it wrote there; or another topic (``dead-letter``), or the
        record's own (``requeued``: ``again`` at an offset)."""
        self.history.harness.note(
            kind,
            actor=self.name,
            partitions=[[*self.history.partitions[tp], offset]],
            detail={"seq": seq, "token": token, "key": key, **more},
            begin_ns=ns(at),
            end_ns=ns(at),
        )

    def pause(self, at: float, until: float, *, step: int = 0, **options: Any) -> None:
        """A fault step that stops it, proven at once, and lets it go on at ``until``, proven 10 ms later."""
        self.history.fault("pause", at, until, step=step, members=(self.name,), **options)

    def close(self, at: float, reaped: float | None = None, asked: float | None = None) -> None:
        """A clean end: closed, and reaped 10 ms later or at ``reaped``; a member was asked at ``asked``."""
        self._event("closed", at, at)
        asked = at if asked is None and self.history.black_box else asked
        self.history.ended(self.name, at + 0.01 if reaped is None else reaped, "closed", asked=asked)
        self.history.removes(self, at + 0.005)

    def die(
        self,
        at: float,
        how: str = "killed",
        exit_code: int = 0,
        polled: float | None = None,
        asked: float | None = None,
        place: str = "",
    ) -> None:
        """Reaped at ``at``, which had polled last at ``polled``, and was asked to end at ``asked``."""
        self.history.ended(self.name, at, how, exit_code, polled, asked, place)

    def _event(self, kind: str, at: float, end: float | None, *, tp: int | None = None, **fields: Any) -> None:
        if self.history.black_box:
            return
        offset = fields.pop("offset", None)
        if tp is not None:
            name = self.history.partitions[tp]
            fields["partitions"] = [[name.topic, name.partition, offset]]
            fields["member_id"] = self.member_id
        times = {"begin_ns": ns(at), "end_ns": 0 if end is None else ns(end)}
        self.events.note(kind, **times, **fields)


class HistoryBuilder:
    """One run. ``partitions`` of one topic, numbered like their ``tp``; ``classic``: the coordinator's records are
    those of the classic protocol instead of the consumer protocol; ``black_box``: members tell nothing of what they do,
    but what brokers and the harness see of it is there."""

    def __init__(
        self,
        folder: Path,
        partitions: int = 1,
        *,
        promises: Iterable[Mapping[str, Any]] = (),
        min_records: int = 1,
        keys: int = 3,
        classic: bool = False,
        black_box: bool = False,
        config: Mapping[str, Any] | None = None,
        protocol: str = "",
        workload: Mapping[str, Any] | None = None,
        name: str = "history",
    ) -> None:
        self.run, self.name = RunFolder.create(folder, name, 1), name
        self.partitions = [TopicPartition(TOPIC, n) for n in range(partitions)]
        self.promises = list(promises)
        self.min_records, self.keys, self.classic, self.config = min_records, keys, classic, dict(config or {})
        self.protocol, self.workload, self.black_box = protocol, dict(workload or {}), black_box
        self.content: dict[tuple[int, int], tuple[int, int, int]] = {}
        self.produced: list[Produced] = []
        self.log: list[Logged] = []
        self.members: list[MemberTeller] = []
        self.steps: list[dict[str, Any]] = []
        self.coordinator: list[dict[str, Any]] = []
        self.metadata: list[dict[str, Any]] = []
        self.host: list[dict[str, Any]] = [{"kind": "summary"}]
        self.requests: list[dict[str, Any]] = []
        self.reasons: dict[str, str] = {}  # phase -> why the runner gave it up
        self.phases: dict[str, tuple[float, float | None]] = {
            "warm-up": (0.0, 1.0),
            "heal": (20.0, 20.1),
            "drain": (20.1, 40.0),
        }
        self.harness = EventLog(self.run.history / "events" / "harness.jsonl", "harness")
        self.delivered_version = FORMAT_VERSION  # rows are as the rule of processing makes them, unless it is another
        self.client: dict[str, str] = {}  # what members report of theirs
        self.term = 1
        self.blur_ns = BLUR_NS  # the uncertainty of every time that a broker told
        self.log_starts: dict[int, int] = {}
        self.settings: dict[str, dict[str, Any]] = {}  # those that brokers told; nothing: it is a run of before
        self.successors: dict[int, int] = {}  # of partitions that are gone, by their numbers
        self._renewals: dict[int, tuple[int, int]] = {}
        self._has: dict[str, set[int]] = {}
        self._known: set[str] = set()
        self._batch: int | None = None
        self._next: dict[int, int] = defaultdict(int)

    def write(
        self, count: int = 1, tp: int = 0, *, at: float = 0.5, key: int | None = None, hole: int = 0, acked: bool = True
    ) -> range:
        """``count`` records of producer-0, after a ``hole`` of offsets with nothing visible. Returns the offsets."""
        self._next[tp] += hole
        first = self._next[tp]
        for offset in range(first, first + count):
            content = (offset % self.keys if key is None else key, 0, len(self.produced))
            self.content[tp, offset] = content
            known = (tp, offset, *content, ns(at), ns(at) + 10**6, SendOutcome.OK)
            self.produced.append(Produced(*known if acked else (tp, -1, *content, ns(at), 0, SendOutcome.INFO)))
            self.log.append(Logged(tp, offset, *content, (ns(at) + WALL_AHEAD_NS) // 10**6))
        self._next[tp] = first + count
        return range(first, first + count)

    def lands_again(self, offset: int, tp: int = 0) -> int:
        """The record at an offset lands a second time, at the end; where."""
        again = self._next[tp]
        self.content[tp, again] = self.content[tp, offset]
        self.log += [r._replace(offset=again) for r in self.log if (r.tp, r.offset) == (tp, offset)]
        self._next[tp] += 1
        return again

    def land_crossed(self, one: int, other: int, tp: int = 0) -> None:
        """Two records land each at the other's offset."""
        cross = {one: other, other: one}
        self.content |= {(tp, cross[o]): self.content[tp, o] for o in cross}
        for rows in (self.produced, self.log):
            rows[:] = [r._replace(offset=cross.get(r.offset, r.offset)) if r.tp == tp else r for r in rows]

    def loses(self, offset: int, tp: int = 0) -> None:
        """The record at an offset is not in the log."""
        self.log = [r for r in self.log if (r.tp, r.offset) != (tp, offset)]

    def aborts(self, offset: int, tp: int = 0, acked: bool = False) -> None:
        """The transaction that wrote the record at an offset was aborted: nobody sees it there. ``acked``: its call is
        told once more, as acknowledged."""
        self.loses(offset, tp)
        content = self.content[tp, offset]
        calls = [p for p in self.produced if (p.tp, p.key, p.writer, p.seq) == (tp, *content)]
        ends = {p: p._replace(outcome=SendOutcome.ABORTED, offset=-1, acked_ns=p.acked_ns or p.sent_ns) for p in calls}
        self.produced = [ends.get(p, p) for p in self.produced] + calls * acked

    def keeps(self, *policies: str, tombstones_s: float = 86_400, offsets_minutes: int = 10_080) -> None:
        """Brokers tell by which settings they keep what is written."""
        topic = {"cleanup.policy": ",".join(policies) or "delete", "delete.retention.ms": f"{1000 * tombstones_s:.0f}"}
        broker = {"log.cleaner.enable": "true", "offsets.retention.minutes": str(offsets_minutes)}
        self.settings = {"topics": {TOPIC: topic}, "broker": broker}
        self.phases["audit"] = (40.0, 41.0)

    def write_strange(self, key: bytes | None, tp: int = 0, *, hole: int = 0, at: float = 0.5) -> int:
        """A record of nobody whom the harness knows, as a tombstone of a program is; its offset."""
        offset = self._next[tp] = self._next[tp] + hole
        self.content[tp, offset] = (key_hash(key), -1, -1)
        self.log.append(Logged(tp, offset, *self.content[tp, offset], (ns(at) + WALL_AHEAD_NS) // 10**6))
        self._next[tp] += 1
        return offset

    def holds(self, offset: int, tp: int = 0, *, writer: int, seq: int) -> None:
        """The record at an offset of the log is another one."""
        self.log = [r._replace(writer=writer, seq=seq) if (r.tp, r.offset) == (tp, offset) else r for r in self.log]

    def forgets(self, seq: int) -> None:
        """The producer's own row of a send is not there."""
        self.produced = [p for p in self.produced if p.seq != seq]

    def producer(self, *, idempotent: object, writer: int = 0) -> None:
        """A producer tells, as it starts, of its client's setting."""
        detail = {"writer": writer, "config": {"enable.idempotence": idempotent}}
        self.harness.note("started", actor=f"producer-{writer}", detail=detail, begin_ns=ns(0.1), end_ns=ns(0.1))

    def member(
        self, index: int, *, member_id: str = "", instance_id: str | None = None, at: float = 0.9, **reported: Any
    ) -> MemberTeller:
        """The next life of a member, started at ``at``; ``reported``: what it tells then besides."""
        life = sum(m.name.startswith(f"member-{index}.") for m in self.members) + 1
        name, detail = f"member-{index}.{life}", {"slot": index, "member": index, "pid": 1}
        self.harness.note("launched", actor=name, detail=detail, begin_ns=ns(at), end_ns=ns(at))
        return self.consumer(name, index, member_id=member_id, instance_id=instance_id, at=at, **reported)

    def consumer(
        self,
        name: str,
        index: int,
        *,
        member_id: str = "",
        instance_id: str | None = None,
        at: float = 0.9,
        **reported: Any,
    ) -> MemberTeller:
        """A consumer of that name in a process of the member ``index``."""
        events = EventLog(self.run.history / "events" / f"{name}.jsonl", name)
        teller = MemberTeller(self, name, member_id or f"id-{name}", events)
        times = {"begin_ns": ns(at), "end_ns": ns(at)}
        detail = {"slot": index, "member": index, "config": {}, "instance_id": instance_id, **self.client, **reported}
        if not self.black_box:
            events.note("started", detail=detail, **times)
        self.members.append(teller)
        return teller

    def ended(
        self,
        name: str,
        at: float,
        how: str,
        exit_code: int = 0,
        polled: float | None = None,
        asked: float | None = None,
        place: str = "",
    ) -> None:
        """A process was reaped, which had polled last at ``polled``, and was asked to end at ``asked``."""
        reported = {"polled_ns": polled, "asked_ns": asked}
        times = {name: ns(moment) for name, moment in reported.items() if moment is not None}
        detail = {"exit_code": exit_code, "how": how, **times, **({"place": place} if place else {})}
        self.harness.note("ended", actor=name, detail=detail, begin_ns=ns(at), end_ns=ns(at))

    def affected(self, tp: int, *offsets: int) -> None:
        """The records at these offsets have an effect, nobody knows whose; that is read when the run is over."""
        for offset in offsets:
            place, detail = [[*self.partitions[tp], offset]], {"seq": offset + 1, "token": 0, "key": -1}
            self.harness.note("effect", partitions=place, detail=detail, begin_ns=ns(41), end_ns=ns(41))

    def ends_transaction(self, producer: int, at: float, *, committed: bool = True) -> None:
        """The end of a producer's transaction arrives where the coordinator writes its commits."""
        self._line(at, type="transaction-end", producer=producer, committed=committed)

    def accepts(self, offset: int | None, at: float, tp: int = 0, **more: Any) -> None:
        """The coordinator writes a commit (None: it deletes it); ``producer``: of a transaction of that one."""
        name = self.partitions[tp]
        where = {"topic": name.topic, "partition": name.partition, "deleted": offset is None}
        self._line(at, type="commit", **where, **({} if offset is None else {"committed": offset}), **more)

    def gives(self, member: MemberTeller, tp: int, at: float) -> None:
        """The coordinator gives a partition to a member, and to nobody else."""
        for other in self.members:
            if other is not member and tp in self._has.get(other.member_id, ()):
                self.takes(other, tp, at - STEP_S)
        self._has.setdefault(member.member_id, set()).add(tp)
        self._assignment(member.member_id, at)

    def join(self, member: MemberTeller, at: float) -> None:
        """The request of a member to join the (classic) group, of which the next generation's round began."""
        slot, times = _slot(member), {"start_ns": ns(at), "end_ns": ns(at + STEP_S)}
        self.requests.append({"api": "JOIN_GROUP", "slot": slot, "member_id": member.member_id, **times})

    def logs(
        self, api: str, member: MemberTeller, offset: int, at: float, tp: int, *, error: str, member_id: str | None
    ) -> None:
        """A line of a broker's request log, as ``fencepost.evidence.brokers.request_log`` keeps it."""
        name, slot = self.partitions[tp], _slot(member)
        times = {"start_ns": ns(at), "end_ns": ns(at + STEP_S), "uncertainty_ns": self.blur_ns}
        who = {"slot": slot, "client_id": member.name, "member_id": member_id}
        offsets = [[name.topic, name.partition, offset, error]]
        self.requests.append({"api": api, **who, **times, "error": error or None, "offsets": offsets})

    def takes(self, member: MemberTeller, tp: int, at: float) -> None:
        """The coordinator takes a partition away."""
        self._has.get(member.member_id, set()).discard(tp)
        self._assignment(member.member_id, at)

    def removes(self, member: MemberTeller, at: float) -> None:
        """The coordinator forgets a member."""
        if self._has.pop(member.member_id, None) is not None:
            if self.classic:
                self._assignment(member.member_id, at)
            else:
                self._line(at, type="current", member_id=member.member_id, deleted=True)

    def round(self, at: float, *has: tuple[MemberTeller, Iterable[int]], generation: int) -> None:
        """One batch of the coordinator: a generation (or epoch) with exactly these members, who have this. Nobody: a
        classic group is empty."""
        now = {member.member_id: set(tps) for member, tps in has}
        with self.batch():
            if not self.classic:
                for member_id in sorted(self._known - set(now)):
                    self._line(at, type="current", member_id=member_id, deleted=True)
                    self._line(at, type="member", member_id=member_id, deleted=True)
                for member_id in sorted(set(now) - self._known):
                    self._line(at, type="member", member_id=member_id, deleted=False)
                self._line(at, type="group-epoch", deleted=False, epoch=generation)
            before, self._has, self._known = self._has, now, set(now)
            changed = [m for m in now if now[m] != before.get(m)] if not self.classic else [""]
            for member_id in changed:
                self._assignment(member_id, at, generation)

    def deletes(self, at: float) -> None:
        """The coordinator deletes the group."""
        self._line(at, type="classic-group" if self.classic else "group-epoch", deleted=True)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """The coordinator writes all of this at once."""
        self._batch = len(self.coordinator)
        yield
        self._batch = None

    def fault(
        self,
        fault: str,
        at: float,
        until: float | None = None,
        *,
        step: int = 0,
        members: tuple[str, ...] = (),
        brokers: tuple[int, ...] = (),
        proven: bool = True,
        healed: bool = True,
        required: bool = True,
        expect: str | None = None,
    ) -> None:
        """A step as it went; ``until`` None: there is nothing to heal."""
        heal_after = None if until is None else (ns(until) - ns(at)) / 1e9
        self.plan_step(fault, at, step=step, heal_after_s=heal_after, required=required, expect=expect)
        named = {"step": step, "fault": fault, "target": ", ".join(m.rpartition(".")[0] for m in members)}
        detail = {**named, "members": members, "brokers": brokers, "expect": expect, "required": required}
        self._proof("fault", detail, at, at, proven)
        if until is not None:
            self._proof("healed", detail, until, until + 0.01, healed)

    def plan_step(self, fault: str, at: float, *, step: int = 0, **options: Any) -> None:
        """A step of the plan, whatever becomes of it."""
        entry = {
            "step": step,
            "at_s": (ns(at) - ORIGIN_NS) / 1e9,
            "fault": {"type": fault},
            "pick": 0.5,
            "target": None,
        }
        self.steps.append({**entry, "heal_after_s": None, "required": True, "expect": None, **options})

    def skipped(self, step: int, at: float) -> None:
        """A step that found no target."""
        self.harness.note("skipped", detail={"step": step, "reason": "nothing matched"}, begin_ns=ns(at), end_ns=ns(at))

    def act(self, what: str, at: float, tp: int | None = None) -> None:
        """A declared act of the harness."""
        where = [] if tp is None else [[*self.partitions[tp], None]]
        self.harness.note("act", detail={"what": what}, partitions=where, begin_ns=ns(at), end_ns=ns(at))

    def remade(self, what: str, at: float, until: float, tp: int = 0) -> int:
        """A declared act deletes a partition and makes it again; the number that records of the former one have.

        Whatever else is told of the former one, callbacks, assignments and commits, is told of ``tp``.
        """
        self.partitions.append(self.partitions[tp])
        number = len(self.partitions) - 1
        self.successors[number], self._renewals[number] = tp, (ns(at), ns(until))
        where, detail = [[*self.partitions[tp], None]], {"what": what, "renews": True}
        self.harness.note("act", detail=detail, partitions=where, begin_ns=ns(at), end_ns=ns(until))
        return number

    def _renewed(self, number: int) -> dict[str, Any]:
        """What the seal finds out of members' records."""
        tp, (begin_ns, end_ns) = self.successors[number], self._renewals[number]
        old, new = ([row for m in self.members for row in m.rows if row.tp == n] for n in (number, tp))
        begun = {m.name: [r.begin_ns for r in m.rows if r.tp == tp and r.begin_ns] for m in self.members}
        done = {m.name: [r.done_ns for r in m.rows if r.tp == tp and r.done_ns] for m in self.members}
        return {
            "as": tp,
            "begin_ns": begin_ns,
            "end_ns": end_ns,
            "last_ns": max((max(r.delivered_ns, r.begin_ns, r.done_ns) for r in old), default=0),
            "next": max((r.offset + 1 for r in old), default=0),
            "begun": min((r.offset for r in new), default=-1),
            "begin_ns_of": {name: min(times) for name, times in begun.items() if times},
            "done_ns": {name: min(times) for name, times in done.items() if times},
        }

    def stall(self, begin: float, end: float) -> None:
        """The host itself stood still."""
        self.host.append(
            {"kind": "stall", "why": "gap", "from_ns": ns(begin), "to_ns": ns(end), "seconds": end - begin}
        )

    def leader(self, broker: int, at: float, tp: int = 0) -> None:
        """A leader change (-1: none)."""
        name = self.partitions[tp]
        where = {"topic": name.topic, "partition": name.partition, "leader": broker, "change": "leader"}
        self.metadata.append({"type": "partition", "at_ns": ns(at), "uncertainty_ns": self.blur_ns, **where})

    def coordinates(self, broker: int, at: float, *, log_end: int | None = None, mark: int | None = None) -> None:
        """A broker becomes the group's coordinator; ``mark``: the high watermark of its log then."""
        where = {"topic": "__consumer_offsets", "partition": 0, "leader": broker, "change": "leader"}
        reported = {"log_end": log_end, "high_watermark": mark}
        self.metadata.append(
            {"type": "partition", "at_ns": ns(at), "uncertainty_ns": self.blur_ns, **where, **reported}
        )

    def seal(self, without: Iterable[str] = (), sealed: bool = True) -> Path:
        """Write everything and seal it (unless ``sealed`` is False); ``without`` names files (below the run folder) to
        take away afterwards. A phase whose end is None never ended."""
        for name, (begin, end) in self.phases.items():
            end_ns = 0 if end is None else ns(end)
            reason = {"reason": self.reasons[name]} if name in self.reasons else {}
            self.harness.note("phase", detail={"name": name, **reason}, begin_ns=ns(begin), end_ns=end_ns)
        for log in (self.harness, *(m.events for m in self.members)):
            log.close()
        client = {"client": "black-box"} if self.black_box else {}
        group = {"config": self.config, "protocol": self.protocol, **client}
        scenario = {"name": self.name, "group": group, "workload": self.workload, "promises": self.promises}
        scenario["min_records"] = self.min_records
        self.run.write_json(
            "scenario.json", {"scenario": scenario, "group": self.name, "seed": 1, "versions": {"kafka": "4.3.1"}}
        )
        self.run.write_json("plan.json", {"seed": 1, "steps": self.steps})
        if self.settings:
            self.run.write_json("history/settings.json", self.settings)
        self.run.write_json("history/clock.json", {"pairs": [[ORIGIN_NS, ORIGIN_NS + WALL_AHEAD_NS]]})
        entries = [
            {
                "tp": tp,
                "topic": name.topic,
                "partition": name.partition,
                "log_start": self.log_starts.get(tp, 0),
                "log_end": 0 if tp in self.successors else self._next[tp],
                **({"committed": -1, "renewed": self._renewed(tp)} if tp in self.successors else {}),
            }
            for tp, name in enumerate(self.partitions)
        ]
        self.run.write_json("history/partitions.json", {"partitions": entries})
        self.log = [record for record in self.log if record.tp not in self.successors]
        self._write_records()
        self.coordinator.sort(key=lambda line: (line["at_ns"], line["order"]))
        self._number()
        for name, lines in (("offsets", self.coordinator), ("metadata", self.metadata), ("requests", self.requests)):
            _write_lines(self.run.history / "coordinator" / f"{name}.jsonl", lines)
        _write_lines(self.run.history / "host.jsonl", self.host)
        if sealed:
            seal(self.run.path)
        for name in without:
            path = self.run.path / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return self.run.path

    def _number(self) -> None:
        """Order, batches, and of classic groups all members and the generations that were not told, as the log goes."""
        first: dict[int, int] = {}
        has: dict[str, Any] = {}
        generation = 0
        for order, line in enumerate(self.coordinator):
            line["order"] = order
            line["batch"] = first.setdefault(line["batch"], order)
            if line["type"] == "classic-group" and not line["deleted"]:
                line["generation"] = generation = line["generation"] or generation + 1
                reported = line.pop("told")
                has = reported if line.pop("all") else {**has, **reported}
                members = ((m, assignment) for m, assignment in sorted(has.items()) if assignment is not None)
                line["members"] = [{"member_id": m, "assignment": assignment} for m, assignment in members]

    def _write_records(self) -> None:
        history = self.run.history
        for member in () if self.black_box else self.members:
            file = history / "delivered" / f"{member.name}.parquet"
            _write_rows(file, DELIVERED_COLUMNS, member.rows, self.delivered_version)
        known = sorted((p for p in self.produced if p.outcome == SendOutcome.OK), key=lambda p: p.offset)
        unknown = [p for p in self.produced if p.outcome != SendOutcome.OK]
        _write_rows(history / "produced" / "producer-0.parquet", PRODUCED_COLUMNS, known)
        _write_rows(history / "produced" / "producer-0.unacked.parquet", PRODUCED_COLUMNS, unknown)
        _write_rows(history / "log" / "audit.parquet", LOG_COLUMNS, sorted(self.log))

    def _proof(self, kind: str, detail: Mapping[str, Any], at: float, proven_at: float, proven: bool) -> None:
        evidence = {"took_effect": proven, "at_ns": ns(proven_at), "what": f"{kind} as told", "data": {}}
        times = {"begin_ns": ns(at), "end_ns": ns(proven_at), "outcome": "ok" if proven else "info"}
        self.harness.note(kind, detail={**detail, "evidence": evidence}, **times)

    def _assignment(self, member_id: str, at: float, generation: int | None = None) -> None:
        if not self.classic:
            given = {"assigned": self._names(self._has.get(member_id, ())), "pending_revocation": {}}
            self._line(at, type="current", member_id=member_id, deleted=False, epoch=1, state="STABLE", **given)
            return
        has = {m: self._names(tps) for m, tps in self._has.items()}
        reported = {member_id: has.get(member_id)} if member_id else has
        self._line(at, type="classic-group", deleted=False, generation=generation, told=reported, all=not member_id)

    def _names(self, tps: Iterable[int]) -> dict[str, list[int]]:
        return {TOPIC: sorted(self.partitions[tp].partition for tp in tps)} if tps else {}

    def _line(self, at: float, **fields: Any) -> None:
        times = {"at_ns": ns(at), "uncertainty_ns": self.blur_ns, "term": self.term}
        order = len(self.coordinator)
        batch = order if self._batch is None else self._batch
        self.coordinator.append({"order": order, "batch": batch, **times, **fields})


def _slot(member: MemberTeller) -> int:
    """Of ``member-0.1``, and of ``member-0b.1``."""
    return int(member.name.split("-")[1].split(".")[0].rstrip("bcdefghijklmnopqrstuvwxyz"))


def _write_rows(path: Path, names: Mapping[str, str], rows: Iterable[Any], version: int = FORMAT_VERSION) -> None:
    by_tp: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        by_tp[row.tp].append(row)
    groups = ({n: np.array([getattr(row, n) for row in of]) for n in names} for _, of in sorted(by_tp.items()))
    parquet_records.write(path, names, groups, version)


def _write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
