"""Rows from the coordinator's own records: accepted commits, owners of partitions, removed members, rebalances. Pure.

The input is the lines of ``offsets.jsonl``, ``requests.jsonl`` and ``metadata.jsonl``; only ``tables.load`` calls this.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, zip_longest
from operator import itemgetter
from typing import Any

from fencepost.checkers.tables.interval_index import IntervalIndex
from fencepost.checkers.tables.rows import (
    FOREVER,
    AssignmentChange,
    Commit,
    CoordinatorChange,
    DoubleAssignment,
    LeaderChange,
    Life,
    MemberRemoval,
    OffsetCommit,
    Rebalance,
    Window,
)
from fencepost.checkers.tables.transactions import settled
from fencepost.model import OFFSETS_TOPIC, group_partition

Line = Mapping[str, Any]
Numbers = Mapping[tuple[str, int], int]


def incarnations(events: Iterable[Line], requests: Iterable[Line], lives: Mapping[str, Life]) -> dict[str, str]:
    """Member id -> incarnation: from the members' own events; else from the client id (which all but black boxes set to
    their name); else from the slot, if exactly one life fits the time."""
    found: dict[str, set[str]] = {}
    for event in events:
        if event["member_id"] and event["actor"] in lives:
            found.setdefault(event["member_id"], set()).add(event["actor"])
    by_request: dict[str, set[str]] = {}
    client_of = clients(lives)
    for request in requests:
        member_id = request.get("member_id")
        if not member_id or member_id in found or (request.get("slot") is None and not client_of(request)):
            continue
        fits = {client_of(request)} - {""}
        by_request.setdefault(member_id, set()).update(fits or {"", "?"})
    return {m: next(iter(names)) for m, names in {**by_request, **found}.items() if len(names) == 1}


def clients(lives: Mapping[str, Life]) -> Callable[[Line], str]:
    """A function from a request to its incarnation: by its client id, else by its slot, if exactly one life fits the
    time; empty if unknown."""
    alive = IntervalIndex(lives.values(), lambda life: life.slot, lambda life: life.alive)

    def of(request: Line) -> str:
        client, slot, start_ns = request.get("client_id") or "", request.get("slot"), int(request.get("start_ns") or 0)
        there = () if slot is None else alive.meeting(slot, Window(start_ns, start_ns))
        fits = {client} if client in lives else {life.incarnation for life in there}
        return fits.pop() if len(fits) == 1 else ""

    return of


def accepted(
    lines: Sequence[Line], commits: Sequence[Commit], numbers: Numbers
) -> tuple[tuple[OffsetCommit, ...], tuple[OffsetCommit, ...]]:
    """The commits that came into force, and the overtaken commits (see ``transactions``), in the order of the log.

    Without the coordinator's log: the commits for which members received "ok".
    """
    answers: dict[tuple[int, int], list[int]] = {}
    for commit in sorted(commits, key=lambda c: c.end_ns):
        if commit.outcome == "ok" and commit.end_ns:
            answers.setdefault((commit.tp, commit.offset), []).append(commit.end_ns)
    found: dict[bool, list[OffsetCommit]] = {True: [], False: []}
    for line, ended_ns, in_force in settled(lines):
        tp = numbers.get((line.get("topic") or "", int(line.get("partition", -1))))
        if tp is None:
            continue
        at, blur = int(line.get("at_ns") or 0), int(line.get("uncertainty_ns") or 0)
        offset = -1 if line.get("deleted") else int(line.get("committed", -1))
        ends = answers.get((tp, offset), [])
        after = bisect_left(ends, at - blur)
        answered = max(ends[after], ended_ns + blur if ended_ns else 0) if after < len(ends) else 0
        late = max(0, ended_ns - at) // 2  # it came into force between its record and the end of its transaction
        place, transactional = (tp, offset, int(line.get("order", 0))), int(line.get("producer", -1)) >= 0
        found[in_force].append(OffsetCommit(*place, at + late, blur + late, answered, transactional))
    if lines:
        return tuple(sorted(found[True], key=lambda a: a.order)), tuple(sorted(found[False], key=lambda a: a.order))
    ok = sorted((c for c in commits if c.outcome == "ok" and c.end_ns), key=lambda c: (c.end_ns, c.tp))
    rows = (
        OffsetCommit(
            *(c.tp, c.offset, n, (c.begin_ns + c.end_ns) // 2, (c.end_ns - c.begin_ns + 1) // 2, c.end_ns),
            transactional=c.mode == "transaction",
        )
        for n, c in enumerate(ok)
    )
    return tuple(rows), ()


def assignments(
    lines: Iterable[Line], who: Mapping[str, str], numbers: Numbers
) -> tuple[tuple[AssignmentChange, ...], tuple[MemberRemoval, ...], tuple[DoubleAssignment, ...]]:
    """Every change of a partition's owner, and every removed member id, in the order of the log.

    The third table has the partitions that two member ids owned after a batch; all records of one batch take effect at
    once.

    Classic protocol: a record of the group holds all members and assignments of one generation. Consumer protocol: a
    member owns the partitions in its current-assignment record, including partitions that it has yet to revoke. In a
    converted group, one batch deletes the records of one protocol and writes the records of the other one: no member
    leaves.
    """
    ledger, batch = _Ledger(who), None
    for line in lines:
        if batch is not None and line.get("batch") != batch.get("batch"):
            ledger.end_batch(batch)
        batch = line
        kind, deleted = line.get("type"), bool(line.get("deleted"))
        if kind == "classic-group":
            members = [] if deleted else list(line.get("members") or ())
            has = {m["member_id"]: _tps(m.get("assignment"), numbers) for m in members}
            left = [m for m in ledger.has if m not in has]
            ledger.change({**dict.fromkeys(left, frozenset()), **has}, line)
            for member_id in left:
                ledger.remove(member_id, line)
        elif kind == "current" and not deleted:
            pending = _tps(line.get("pending_revocation"), numbers)
            ledger.change({line["member_id"]: _tps(line.get("assigned"), numbers) | pending}, line)
        elif kind in ("current", "member") and deleted:
            ledger.remove(line["member_id"], line)
    if batch is not None:
        ledger.end_batch(batch)
    return tuple(ledger.given), tuple(ledger.gone), tuple(ledger.doubled)


def _tps(assignment: Mapping[str, Iterable[int]] | None, numbers: Numbers) -> frozenset[int]:
    places = ((topic, int(p)) for topic, partitions in (assignment or {}).items() for p in partitions)
    return frozenset(numbers[place] for place in places if place in numbers)


class _Ledger:
    """The current owners of partitions, and all changes so far."""

    def __init__(self, who: Mapping[str, str]) -> None:
        self._who = who
        self.has: dict[str, frozenset[int]] = {}
        self.given: list[AssignmentChange] = []
        self.gone: list[MemberRemoval] = []
        self.doubled: list[DoubleAssignment] = []
        self._owner: dict[int, str] = {}
        self._owners: defaultdict[int, set[str]] = defaultdict(set)  # several during a double assignment
        self._twice: set[int] = set()  # partitions with several owners after the last batch
        self._changed: set[int] = set()  # partitions changed in this batch
        self._left: dict[str, Line] = {}  # members removed in this batch

    def remove(self, member_id: str, line: Line) -> None:
        if member_id in self.has:
            self.change({member_id: frozenset()}, line)
            del self.has[member_id]
            self._left[member_id] = line

    def end_batch(self, line: Line) -> None:
        """Add rows for the removed members, and for the partitions that have several owners now and did not before."""
        self.gone += [MemberRemoval(m, self._who.get(m, ""), *_when(left)) for m, left in self._left.items()]
        self._left.clear()
        twice = {tp for tp in self._changed if len(self._owners[tp]) > 1}
        for tp in sorted(twice - self._twice):
            owners = sorted(self._owners[tp])
            self.doubled.append(DoubleAssignment(tp, _when(line)[1], tuple(self._who.get(m, m) for m in owners)))
        self._twice = (self._twice - self._changed) | twice
        self._changed = set()

    def change(self, has: Mapping[str, frozenset[int]], line: Line) -> None:
        """Set exactly these partitions of these members, and add a row for each partition with a new owner.

        Two members may own one partition name for a long time: one owns the deleted partition, the other one the
        recreated partition. Each line of a member lists all of its partitions. So a line that repeats a partition does
        not end the other member's ownership."""
        for member_id in has:
            if member_id in self._left and _of_classic(self._left[member_id]) != _of_classic(line):
                del self._left[member_id]
        had = {member_id: self.has.get(member_id, frozenset[int]()) for member_id in has}
        touched = frozenset[int]().union(*has.values(), *had.values())
        before = {tp: self._owner.get(tp, "") for tp in touched}
        for member_id, tps in has.items():
            for tp in had[member_id] - tps:
                self._owners[tp].discard(member_id)
                if self._owner.get(tp) == member_id:
                    del self._owner[tp]
        for member_id, tps in has.items():
            self.has[member_id] = tps
            self._owner.update(dict.fromkeys(tps - had[member_id], member_id))
            for tp in tps:
                self._owner.setdefault(tp, member_id)
                self._owners[tp].add(member_id)
        self._changed |= touched
        for tp in sorted(touched):
            member_id = self._owner.get(tp, "")
            if member_id != before[tp]:
                self.given.append(AssignmentChange(tp, *_when(line), member_id, self._who.get(member_id, "")))


def _of_classic(line: Line) -> bool:
    return line.get("type") == "classic-group"


def _when(line: Line) -> tuple[int, int, int]:
    return int(line.get("order", 0)), int(line.get("at_ns") or 0), int(line.get("uncertainty_ns") or 0)


def rounds(lines: Iterable[Line], requests: Sequence[Line], who: Mapping[str, str]) -> tuple[Rebalance, ...]:
    """Every new generation or group epoch. Each began with the first join since the last one (else with its record). A
    join that was answered with the current generation began none, such as the join of a returning static member.

    Classic protocol: its members are in its record. Consumer protocol: its members had a member record by then. A
    converted group keeps its generation.
    """
    asked = (
        (int(r["start_ns"]), str(r.get("reason") or ""), r.get("answered_generation"))
        for r in requests
        if r.get("api") == "JOIN_GROUP" and r.get("start_ns")
    )
    joins = sorted(asked, key=itemgetter(0, 1))
    found: list[Rebalance] = []
    deleted: Line = {}
    anew, joined = False, dict[str, None]()
    for line in lines:
        if line.get("type") == "member":
            joined[line["member_id"]] = None
            if line.get("deleted"):
                del joined[line["member_id"]]
        number = line.get("generation") if line.get("type") == "classic-group" else line.get("epoch")
        if line.get("type") not in ("classic-group", "group-epoch"):
            continue
        if line.get("deleted") or number is None or (_of_classic(line) and not line.get("members")):
            deleted = line if line.get("deleted") and not anew else {}
            anew = True  # the group was deleted or is empty: nothing was assigned
            continue
        converted = deleted.get("batch") == line.get("batch") and _of_classic(deleted) != _of_classic(line)
        anew, deleted = anew and not (deleted and converted), {}
        if found and found[-1].generation == number and not anew:
            continue  # the same generation again, from a new coordinator or for a static member
        at = int(line.get("at_ns") or 0)
        since = found[-1].end_ns if found else 0
        between = joins[bisect_right(joins, since, key=itemgetter(0)) : bisect_right(joins, at, key=itemgetter(0))]
        was = found[-1].generation if found and not anew else None
        starting = [join for join in between if was is None or join[2] != was]
        ids = joined if line["type"] == "group-epoch" else [m["member_id"] for m in line.get("members") or ()]
        members = tuple(who.get(member_id, member_id) for member_id in ids)
        reason = next((why for _, why, _ in starting if why), "")
        begin, blur = starting[0][0] if starting else at, int(line.get("uncertainty_ns") or 0)
        found.append(Rebalance(int(line.get("term", -1)), int(number), begin, at, members, reason, blur, anew))
        anew = False
    return tuple(found)


def terms(lines: Iterable[Line]) -> tuple[tuple[int, int, int], ...]:
    """(term, at_ns, uncertainty_ns) of the first record that each coordinator wrote."""
    found: dict[int, tuple[int, int, int]] = {}
    for line in lines:
        if "term" in line and line.get("at_ns"):
            found.setdefault(
                int(line["term"]), (int(line["term"]), int(line["at_ns"]), int(line.get("uncertainty_ns") or 0))
            )
    return tuple(found.values())


def seats(lines: Iterable[Line], group: str) -> tuple[CoordinatorChange, ...]:
    """The group's coordinators, from the changes of leaders in the metadata log."""
    led = [line for line in lines if line.get("topic") == OFFSETS_TOPIC and line.get("leader") is not None]
    place = group_partition(group, len({line.get("partition") for line in led})) if led and group else -1
    own = [line for line in led if line.get("partition") == place]
    changes = [now for before, now in pairwise([{}, *own]) if now["leader"] != before.get("leader")]
    found = []
    for now, after in zip_longest(changes, changes[1:]):
        at_ns, blur_ns = int(now.get("at_ns") or 0), int(now.get("uncertainty_ns") or 0)
        until_ns = int(after.get("at_ns") or 0) + int(after.get("uncertainty_ns") or 0) if after else FOREVER
        marks = (-1 if (mark := now.get(name)) is None else int(mark) for name in ("log_end", "high_watermark"))
        found.append(CoordinatorChange(at_ns, blur_ns, int(now["leader"]), until_ns, *marks))
    return tuple(found)


def loads(seats: Sequence[CoordinatorChange], lines: Iterable[Line]) -> tuple[Window, ...]:
    """When another broker may have become the group's coordinator, and loaded the group.

    If no coordinators are known (``seats`` is empty): between the records of two terms.
    """
    if seats:
        return tuple(Window.around(seat.at_ns, seat.uncertainty_ns) for seat in seats[1:] if seat.leader >= 0)
    dated = sorted(
        (line for line in lines if "term" in line and line.get("at_ns")), key=lambda line: int(line.get("order", 0))
    )
    when = [
        (int(line["term"]), Window.around(int(line["at_ns"]), int(line.get("uncertainty_ns") or 0))) for line in dated
    ]
    return tuple(
        Window(before.begin_ns, now.end_ns) for (former, before), (term, now) in pairwise(when) if term != former
    )


def leaders(lines: Iterable[Line], numbers: Numbers) -> tuple[LeaderChange, ...]:
    """Each partition change that names a leader."""
    found = []
    for line in lines:
        tp = numbers.get((line.get("topic") or "", int(line.get("partition", -1))))
        if tp is not None and line.get("leader") is not None:
            found.append(
                LeaderChange(int(line.get("at_ns") or 0), int(line.get("uncertainty_ns") or 0), tp, int(line["leader"]))
            )
    return tuple(found)
