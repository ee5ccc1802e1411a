"""Random run folders, told with the builder: several partitions, each with a story of its own, then tampered with.

They are no likely histories. Times lie on a coarse grid, so that moments coincide; every field of a record that a rule
looks at is sometimes changed; so that two finders that agree on some hundred of them agree on what the rules mean.
"""

from __future__ import annotations

import random
from pathlib import Path

from fencepost.checkers.tables.effects import LETTER_NS
from fencepost.checkers.tables.retention import same_key
from fencepost.history import RecordState
from history.builder import HistoryBuilder, MemberTeller, Row, ns

HUGE = 3_000_000_000_000
FENCED = "UNKNOWN_MEMBER_ID"
CLIENTS = ("confluent-kafka", "kafka-python", "json-lines")  # by their defaults: reads what is committed, all, unknown


def tell(folder: Path, seed: int, partitions: int = 6) -> Path:
    """Write and seal one run; the same seed tells the same run."""
    rng = random.Random(seed)
    config = {"auto.offset.reset": "latest"} if rng.random() < 0.2 else {}
    config |= {"heartbeat.interval.ms": 250} if rng.random() < 0.5 else {}
    h = HistoryBuilder(folder, partitions, keys=rng.choice([1, 2, 5]), classic=rng.random() < 0.3, config=config)
    h.promises = [
        {"type": "rebalances", "pause_within_s": 2},
        {"type": "effects"},
        {"type": "parked", "in_order": seed % 4 > 0},
        {"type": "requeued"},
    ]  # what is looked for only where it is promised
    h.workload = rng.choice([{}, {"poison_every": 3}])
    h.protocol = rng.choice(["", "eager", "cooperative", "cooperative"])
    if rng.random() < 0.3:
        h.phases = {**h.phases, "drain": (20.1, rng.choice([21.0, 60.0, 120.0]))}
    static, starts = rng.choice([(None,), (None, "one")]), [0.9, 0.9, 3.0, 12.0]
    reads = random.Random(f"reads/{seed}")
    members = [
        h.member(n, instance_id=rng.choice(static), at=rng.choice(starts), client=reads.choice(CLIENTS))
        for n in (0, 1, 2, 1)
    ]
    for tp in range(partitions):
        _write(h, rng, tp)
        _story(h, rng, tp, members)
    for member in members:
        _end(rng, member)
    _surroundings(h, rng, members)
    _rounds(h, rng, members, partitions)
    _effects(random.Random(seed), members, partitions)
    _copies(h, random.Random(f"copies/{seed}"), members)
    for member in members:
        for row in member.rows:
            _tamper(h, rng, row)
    rows = [row for member in members for row in member.rows]
    for _ in range(len(rows) // 4):
        _tie(rng, rows)
    _tamper_with_log(h, rng)
    _abort(h, random.Random(f"aborted/{seed}"))
    _compact(h, random.Random(f"compacted/{seed}"))
    _expire(h, random.Random(f"expired/{seed}"))
    return h.seal()


def _expire(h: HistoryBuilder, rng: random.Random) -> None:
    """The coordinator deletes committed offsets, some of which may have expired."""
    for tp in range(len(h.partitions)) if rng.random() < 0.3 else ():
        h.accepts(None, _time(rng), tp)
    if rng.random() < 0.3 and not h.settings:
        h.keeps("delete", offsets_minutes=0)


def _compact(h: HistoryBuilder, rng: random.Random) -> None:
    """The topic is compacted: of some records that a later one of their key replaced nothing is left, and of others."""
    if rng.random() < 0.3:
        policies = rng.choice([("compact",), ("compact", "delete")])
        h.keeps(*policies, tombstones_s=rng.choice([0, 20, 3600]), offsets_minutes=rng.choice([0, 10_080]))
        for tp in range(len(h.partitions)):
            if rng.random() < 0.5:
                h.write_strange(rng.choice([None, b"0", b"1", b"else"]), tp, hole=rng.choice([0, 0, 3]))
        latest = {(r.tp, same_key(r.key, r.writer)): r.offset for r in sorted(h.log)}
        for r in [*h.log]:
            last = latest[r.tp, same_key(r.key, r.writer)] == r.offset
            if rng.random() < (0.1 if last else 0.7):
                h.loses(r.offset, r.tp)


def _abort(h: HistoryBuilder, rng: random.Random) -> None:
    """Transactions are aborted, and of some of their records the calls are told once more as acknowledged."""
    for record in [*h.log] if rng.random() < 0.4 else ():
        if rng.random() < 0.1 and (record.tp, record.offset) in h.content:
            h.aborts(record.offset, record.tp, acked=rng.random() < 0.2)
    if rng.random() < 0.3:
        h.config = {**h.config, "isolation.level": "read_uncommitted"}


def _time(rng: random.Random, low: float = 1.0, high: float = 30.0) -> float:
    return rng.randrange(round(low * 4), round(high * 4)) / 4


def _moment(rng: random.Random) -> int:
    """Likely to be the moment of something else, too; or just around a record of the coordinator."""
    return ns(rng.randrange(2, 24) / 2 - rng.choice([0.0, 0.0, 0.0, 0.01 - 0.0004, 0.01, 0.01 + 0.0004]))


def _write(h: HistoryBuilder, rng: random.Random, tp: int) -> None:
    first = rng.choice([0, 0, 7, HUGE])
    for number in range(rng.randrange(1, 5)):
        hole = rng.choice([0, 0, 1, 2, 40, 1_000_000]) if rng.random() < 0.5 else 0
        hole += 0 if number else first
        acked = rng.random() < 0.9
        h.write(rng.randrange(1, 9), tp, at=rng.choice([0.5, 5.0, 25.0]), hole=hole, acked=acked)


def _story(h: HistoryBuilder, rng: random.Random, tp: int, members: list[MemberTeller]) -> None:
    """Some owners after (or beside) one another, each with some polls, commits, and a way to go."""
    offsets = sorted(offset for number, offset in h.content if number == tp)
    at, position = 1.0, 0
    for _ in range(rng.randrange(0, 5)):
        member = rng.choice(members)
        if rng.random() < 0.9:
            took, generation = rng.choice([0.0, 0.25, 1.0]), rng.choice([1, 1, 1, 2])
            member.assigned(at, tp, took=took, reported=rng.random() < 0.8, generation=generation)
        for _ in range(rng.choice([0, 0, 1, 2])):
            member.fetches(rng.choice([None, 3]), at + rng.choice([0.0, 0.25, 1.0]), tp)
        position = max(0, position - rng.choice([0, 0, 0, 2, 5]))
        for _ in range(rng.randrange(0, 6)):
            if rng.random() < 0.1:
                if rng.random() < 0.5:  # because a transaction was aborted, or for no reason
                    ends = rng.choice(["fail", "info", "ok"])
                    member.commit(
                        offsets[min(position, len(offsets) - 1)], at - 0.01, tp, outcome=ends, mode="transaction"
                    )
                member.seek(offsets[max(0, min(position, len(offsets)) - 3)], at, tp)
            if rng.random() < 0.1:
                position = max(0, position + rng.choice([-3, -1, 1, 2]))
            some = offsets[position : position + rng.randrange(0, 6)]
            rows = member.process(some, at + 0.25, tp, each=rng.choice([0.0, 0.001, 0.5]))
            if rows and rng.random() < 0.3:
                rows[-1].end(at + rng.choice([2.0, 5.0]))
            position += len(some)
            at += rng.choice([0.0, 0.25, 1.0, 4.0])
            if some and rng.random() < 0.6:
                outcome = rng.choice(["ok", "ok", "ok", "fail", "info", None])
                accepted = rng.random() < (0.9 if outcome == "ok" else 0.5)
                reported = {
                    "logged": rng.choice([True, True, False, FENCED]),
                    "mode": rng.choice(["sync", "sync", "auto"]),
                }
                reported["error"] = rng.choice(["", FENCED, "ILLEGAL_GENERATION"]) if outcome == "fail" else ""
                position_told = some[-1] + rng.choice([1, 1, 1, 0, 3])
                who = member if rng.random() < 0.9 else rng.choice(members)
                who.commit(position_told, at, tp, outcome=outcome, accepted=accepted, **reported)
        how = rng.random()
        if how < 0.35:
            member.revoked(at, tp, took=rng.choice([0.0, 0.5, 0.5, 2.5]), reported=rng.random() < 0.8)
        elif how < 0.55:
            member.lost(at, tp, took=rng.choice([0.0, 0.5]))
        elif how < 0.65:
            member.evicted(at)
        at = max(1.0, at + rng.choice([-2.0, -0.5, 0.0, 0.25, 1.0]))
    if offsets and rng.random() < 0.6:
        h.accepts(rng.choice([None, offsets[0], offsets[-1] + 1, offsets[len(offsets) // 2]]), _time(rng), tp)


def _end(rng: random.Random, member: MemberTeller) -> None:
    for _ in range(rng.choice([0, 0, 1, 3])):
        member.unpolled(_time(rng, 1, 12), _time(rng, 12, 30))
    for _ in range(rng.choice([0, 5])):
        member.heartbeat(_time(rng, 15), error=rng.choice([None, None, "REBALANCE_IN_PROGRESS", FENCED]))
    how = rng.random()
    if how < 0.3:
        member.close(_time(rng, 15))
    elif how < 0.7:
        polled = rng.choice([None, 1.0, 5.0, 10.0])
        member.die(_time(rng, 10), rng.choice(["killed", "crashed"]), polled=polled)


def _surroundings(h: HistoryBuilder, rng: random.Random, members: list[MemberTeller]) -> None:
    for step in range(rng.randrange(0, 6)):
        at = _time(rng, 1, 12)
        if rng.random() < 0.8:
            rng.choice(members).pause(at, at + rng.choice([0.25, 1.0, 3.0, 9.0]), step=step)
        else:
            h.fault("kill", at, None, step=step, healed=False)
    if rng.random() < 0.2:
        h.act(rng.choice(["reset", "delete-records"]), _time(rng), rng.choice([None, 0, 1]))
    if rng.random() < 0.3:
        h.leader(-1, _time(rng, 10, 100), 0)
        h.leader(2, _time(rng, 10, 100), 0)


def _effects(rng: random.Random, members: list[MemberTeller], partitions: int) -> None:
    """A store that refuses little, and a topic of dead letters."""
    for kind in ("effect", "dead-letter"):
        for seq in range(rng.choice([0, 0, 4])):
            token, tp = max(0, rng.choice([0, seq, seq - 1])), min(1, rng.randrange(partitions))
            key, of_record = rng.choice([-1, 0, 0, 1]), rng.randrange(3)
            more = {"retried_ns": _retried(rng)} if kind == "dead-letter" and rng.random() < 0.6 else {}
            rng.choice(members).effect(of_record, _time(rng), seq=seq, token=token, tp=tp, kind=kind, key=key, **more)


def _retried(rng: random.Random) -> int:
    return ns(_time(rng)) + rng.choice([0, LETTER_NS, LETTER_NS + 1])


def _copies(h: HistoryBuilder, rng: random.Random, members: list[MemberTeller]) -> None:
    """Some records were re-queued, also twice; where they lie again is something else now and then."""
    some = rng.choice([0.0, 0.1, 0.3])
    for tp, offset in sorted(h.content):
        for _ in range(rng.choice([1, 1, 2]) if rng.random() < some else 0):
            again = h.lands_again(offset, tp) if rng.random() < 0.5 else offset + rng.randrange(6)
            key, seq = rng.choice([-1, h.content[tp, offset][0]]), rng.randrange(3)
            rng.choice(members).effect(offset, _time(rng), seq=seq, tp=tp, kind="requeued", key=key, again=again)


def _rounds(h: HistoryBuilder, rng: random.Random, members: list[MemberTeller], partitions: int) -> None:
    """A few rebalances, or one after the other to the end of the drain; then, as a rule, nothing but a heartbeat."""
    end, number = h.phases["drain"][1] or 0.0, rng.choice([1, 100])
    first, step = _time(rng, 1, 21), rng.choice([2.5, 4.0, 4.75])
    many = rng.random() < (0.5 if end > 50 else 0.1)
    few = sorted(_time(rng) for _ in range(rng.choice([0, 0, 1, 3])))
    for at in [first + n * step for n in range(round((end - first) / step))] if many else few:
        there = [member for member in members if rng.random() < 0.7]
        h.round(at, *((m, rng.sample(range(partitions), min(2, partitions))) for m in there), generation=number)
        for member in there if rng.random() < 0.3 else ():
            member.heartbeat(rng.choice([at + 1.5, end - 2.0]), generation=number)
        number += rng.choice([1, 1, 1, 1, 0, -1])


def _tamper(h: HistoryBuilder, rng: random.Random, row: Row) -> None:
    if rng.random() > 0.2:
        return
    offsets = [offset for number, offset in h.content if number == row.tp]
    what = rng.randrange(13)
    if what == 0:
        row.offset = rng.choice([*offsets, max(offsets) + 3, row.offset + 1])
    elif what == 1:
        row.key, row.seq = rng.choice([(row.key + 1, row.seq), (row.key, 9_999), (row.key, row.seq)])
    elif what == 2:
        row.state = rng.choice([RecordState.PARKED, RecordState.FAILED])
    elif what == 3:
        row.done_ns, row.state = 0, RecordState.BEGUN
    elif what == 4:
        row.begin_ns, row.done_ns, row.state = 0, 0, RecordState.DELIVERED
    elif what == 5:
        row.begin_ns = _moment(rng)
    elif what == 6:
        row.done_ns = _moment(rng)
    elif what == 7:
        row.delivered_ns = _moment(rng)
    elif what == 8:
        row.interval = rng.choice([-1, 0, 1, 7])
    elif what == 9:
        row.ord += rng.choice([-1, 1, 2])
    elif what == 10:
        row.poll = rng.randrange(0, 5)
    else:
        row.begin_ns, row.done_ns = sorted((_moment(rng), _moment(rng)))


def _tie(rng: random.Random, rows: list[Row]) -> None:
    """Two records of one partition end at the same moment, or all deliveries of one record do not end at all."""
    one = rng.choice(rows)
    if rng.random() < 0.5:
        other = rng.choice([row for row in rows if row.tp == one.tp])
        one.done_ns = other.done_ns = max(one.done_ns, other.done_ns)
    else:
        for row in rows:
            if (row.tp, row.offset) == (one.tp, one.offset) and row.state != RecordState.DELIVERED:
                row.done_ns, row.state = 0, RecordState.BEGUN


def _tamper_with_log(h: HistoryBuilder, rng: random.Random) -> None:
    if rng.random() < 0.5:
        for record in [record for record in h.log if rng.random() >= 0.95]:
            h.loses(record.offset, record.tp)
    for record in [*h.log] if rng.random() < 0.3 else ():
        if rng.random() <= 0.05:
            writer, seq = rng.choice([record.writer, 1, -1, 70_000]), record.seq + rng.choice([-3, -1, 0, 1_000])
            h.holds(record.offset, record.tp, writer=writer, seq=max(0, seq))
    if rng.random() < 0.3:
        for sent in [sent for sent in h.produced if rng.random() >= 0.9]:
            h.forgets(sent.seq)
