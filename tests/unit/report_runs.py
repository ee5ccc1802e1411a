"""Made-up run folders for the tests of the reports: plausible in every file that a report reads."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.history import DELIVERED_COLUMNS, EVENT_COLUMNS, PRODUCED_COLUMNS
from fencepost.model import Check, Finding, Severity, Validity, Verdict

ORIGIN_NS = 5_000_000_000_000
NS = 1_000_000_000


def at(seconds: float) -> int:
    """A moment of the run."""
    return ORIGIN_NS + int(seconds * NS)


@dataclass
class History:
    """Collects events as the members and the harness would write them."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, kind: str, actor: str, begin_s: float, end_s: float = 0.0, partitions: Any = (), **more: Any) -> None:
        """One event; a row per (topic, partition, offset), or one row when it has none."""
        detail = json.dumps(more.pop("detail", {}))
        event = {"kind": kind, "actor": actor, "id": len(self.rows), "detail": detail, **more}
        times = {"begin_ns": at(begin_s), "end_ns": at(end_s) if end_s else 0}
        for topic, partition, offset in partitions or [(None, None, None)]:
            self.rows.append({**event, **times, "topic": topic, "partition": partition, "offset": offset})

    def write(self, path: Path) -> None:
        """As ``events.parquet``."""
        schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in EVENT_COLUMNS.items()])
        pq.write_table(pa.Table.from_pylist(self.rows, schema=schema), path)


def orders(*numbers: int, offset: int | None = None, topic: str = "orders") -> list[tuple[str, int, int | None]]:
    """Partitions of the topic."""
    return [(topic, n, offset) for n in numbers]


def group_history(topic: str = "orders", evidence: str = "process 4711 in state T") -> History:
    """Four members, twelve partitions, a coordinator move, a black hole, a pause past the session, and a bounce."""
    h = History()
    phases = {"provision": (0.2, 3.1), "warm-up": (3.1, 7), "chaos": (7, 44), "heal": (44, 44.6), "drain": (44.6, 49)}
    for name, (begin, end) in {**phases, "audit": (49, 50.5), "seal": (50.5, 51.4)}.items():
        h.add("phase", "harness", begin, end, detail={"name": name})
    for m in range(4):
        h.add("launched", f"member-{m}.1", 3.2 + m / 10, detail={"pid": 4000 + m, "slot": m, "member": m})
        h.add("started", f"member-{m}.1", 3.5 + m / 10, detail={"pid": 4000 + m, "slot": m, "member": m})
    h.add("launched", "producer-0", 3.3, detail={"pid": 4999})

    def give(kind: str, member: str, s: float, took_s: float, generation: int, *numbers: int) -> None:
        h.add(kind, member, s, s + took_s, orders(*numbers, topic=topic), generation=generation, outcome="ok")

    for m in range(4):
        give("assigned", f"member-{m}.1", 4.6 + m / 50, 0.02, 3, *range(m * 3, m * 3 + 3))
    # Member 2 is paused from 15 to 24 s: the others take over at 21.2 s, it learns of it at 24.1 s.
    for n, m in ((6, 0), (7, 1), (8, 3)):
        give("assigned", f"member-{m}.1", 21.2, 0.03, 4, n)
    give("lost", "member-2.1", 24.1, 0.2, 3, 6, 7, 8)
    for n, m in ((6, 0), (7, 1), (8, 3)):
        give("revoked", f"member-{m}.1", 25.0, 0.35, 5, n)
    give("assigned", "member-2.1", 25.5, 0.02, 6, 6, 7, 8)
    # Member 1 is bounced at 33 s.
    give("revoked", "member-1.1", 33.1, 0.2, 6, 3, 4, 5)
    h.add("closed", "member-1.1", 33.1, 33.5)
    h.add("ended", "member-1.1", 33.6, 33.6, detail={"exit_code": 0, "how": "closed"})
    for n, m in ((3, 0), (4, 2), (5, 3)):
        give("assigned", f"member-{m}.1", 33.7, 0.02, 7, n)
    h.add("launched", "member-1.2", 34.4, detail={"pid": 4011, "slot": 1, "member": 1})
    for n, m in ((3, 0), (4, 2), (5, 3)):
        give("revoked", f"member-{m}.1", 35.6, 0.1, 8, n)
    give("assigned", "member-1.2", 36.2, 0.02, 9, 3, 4, 5)
    for m, life in ((0, 1), (1, 2), (2, 1)):
        h.add("closed", f"member-{m}.{life}", 48.8, 49.0)
    h.add("ended", "member-3.1", 47.2, 47.2, detail={"exit_code": -9, "how": "killed"})
    _commits(h, topic)
    _faults(h, evidence)
    h.rows.sort(key=lambda row: row["begin_ns"])
    return h


def _commits(h: History, topic: str) -> None:
    owners = {n: f"member-{n // 3}.1" for n in range(12)}
    for tenth in range(50, 485, 10):
        for n, owner in owners.items():
            paused = n in (6, 7, 8) and 150 < tenth < 212
            if not paused:
                spot = orders(n, offset=tenth * 40, topic=topic)
                h.add("commit", owner, tenth / 10 + n / 50, tenth / 10 + n / 50 + 0.01, spot, outcome="ok")
    for n in (6, 7, 8):
        spot = orders(n, offset=612, topic=topic)
        h.add("commit", "member-2.1", 24.02, 24.05, spot, outcome="fail", error="UNKNOWN_MEMBER_ID")


def _faults(h: History, evidence: str) -> None:
    def step(
        number: int, fault: str, target: str, begin: float, proven: float, healed: float, what: str, *m: str
    ) -> None:
        detail = {"step": number, "fault": fault, "target": target, "members": list(m), "brokers": [], "required": True}
        detail["expect"] = "fenced" if fault == "pause" else None
        ok = {"took_effect": True, "at_ns": at(proven), "what": what, "data": {}}
        h.add("fault", "harness", begin, proven, outcome="ok", detail={**detail, "evidence": ok})
        if healed:
            gone = {"took_effect": True, "at_ns": at(healed), "what": "undone, and proven undone", "data": {}}
            h.add("healed", "harness", healed - 0.05, healed, outcome="ok", detail={**detail, "evidence": gone})

    move = "broker-1 led __consumer_offsets-31 and broker-3 does since 9.121 s; FindCoordinator names broker-3"
    step(0, "move_coordinator", "broker-1", 9.0, 9.14, 0, move)
    step(1, "pause", "member-2", 15.0, 15.004, 24.0, evidence, "member-2.1")
    hole = "18,204 bytes went in and 0 came out on 3 links since 28.010 s"
    step(2, "black_hole", "member-0", 28.0, 28.6, 31.5, hole, "member-0.1")
    step(3, "bounce", "member-1", 33.0, 33.61, 34.9, "process 4001 ended with exit code 0", "member-1.1")


DEALT = {3: {"moved": 0, "most": 3, "least": 3}, 4: {"moved": 3, "most": 4, "least": 0}}  # older verdicts say nothing


def verdict(name: str, checks: tuple[Check, ...], **more: Any) -> Verdict:
    """A verdict over ``checks``."""
    rounds = [(4.6, 3, "four members joined"), (9.2, 3, "coordinator moved"), (21.1, 4, "member-2: session expired")]
    rounds += [(24.9, 5, "member-2.1 joined"), (33.6, 7, "member-1.1 left"), (35.5, 8, "member-1.2 joined")]
    return Verdict(
        name,
        20261121,
        Validity.worst(c.validity for c in checks),
        checks,
        rebalances=tuple({"begin_s": s, "generation": g, "cause": why, **DEALT.get(g, {})} for s, g, why in rounds),
        measures={"records_in_log": 132_614, "throughput_per_s": 3921.4, "recovery_s": 6.2},
        versions={"kafka": "4.3.1", "confluent-kafka": "2.16.1", "fencepost": "0.1.0"},
        **more,
    )


def lost(topic: str = "orders", sentence: str = "") -> Finding:
    """Records that nobody processed."""
    reported = sentence or (
        "member-2.1 committed offset 4712 (generation 3, 24.020 s), past offset 4711 of orders-7, which it had begun "
        "but not finished; member-2.1 crashed at 24.100 s; no member processed it."
    )
    first = {
        "topic": topic,
        "partition": 7,
        "offset": 4711,
        "last_offset": 4723,
        "key": 118,
        "members": ["member-2.1", "member-1.1"],
        "generation": 3,
        "from_ns": at(20.1),
        "to_ns": at(24.02),
        "cause": "committed-unprocessed",
        "sentence": reported,
        "witnesses": [
            "history/delivered/member-2.1.parquet: delivered 20.100 s, begun 20.101 s, never done",
            {"file": "history/coordinator/offsets.jsonl", "order": 412, "offset": 4712, "member": "member-2.1"},
        ],
    }
    return Finding("unseen", Severity.VIOLATION, 13, "at-least-once forbids it", (first,))


def overlap() -> Finding:
    """A zombie: two owners by their own callbacks, excused."""
    examples = tuple(
        {
            "topic": "orders",
            "partition": n,
            "members": ["member-2.1", f"member-{m}.1"],
            "from_ns": at(21.23),
            "to_ns": at(24.1),
            "excuse": "member-2.1 was removed by the coordinator and could not know",
            "sentence": f"orders-{n} was owned by member-2.1 and member-{m}.1 for 2.87 s, by their own callbacks; "
            "the coordinator had removed member-2.1 at 21.104 s, while it was paused.",
        }
        for n, m in ((6, 0), (7, 1), (8, 3))
    )
    return Finding("assignment-overlap", Severity.PERMITTED, 3, "a removed member could not yet know", examples)


def redelivered() -> Finding:
    """What at-least-once permits."""
    example = {
        "topic": "orders",
        "partition": 6,
        "first_offset": 598,
        "last_offset": 611,
        "members": ["member-0.1"],
        "from_ns": at(21.3),
        "to_ns": at(21.4),
        "sentence": "offsets 598 to 611 of orders-6 were finished by member-2.1 and again by member-0.1.",
    }
    return Finding("redelivery", Severity.PERMITTED, 214, "permitted under at-least-once", (example,) * 6)


def checks(validity: str, finding: Finding | None = None) -> tuple[Check, ...]:
    """Three promises; the first has the given validity."""
    broken = (finding or lost(),) if validity == "invalid" else ()
    reasons = {
        "valid": "every record of the domain was finished",
        "invalid": "13 records were never finished",
        "unknown": "412 facts judged, at least 1,000 are needed",
    }
    facts = 412 if validity == "unknown" else 132_614
    delivery = Check(
        "delivery", "at-least-once", Validity(validity), facts, reasons[validity], (*broken, redelivered())
    )
    ownership = Check(
        "ownership", "one owner by assignment", Validity.VALID, 61, "no overlap is unexcused", (overlap(),)
    )
    note = Finding("redelivery-loop", Severity.NOTE, 1, "healed before anybody fetched the offset")
    progress = Check("progress", "within 30 s", Validity.VALID, 12, "all partitions caught up after 4.1 s", (note,))
    return delivery, ownership, progress


def write_run(
    path: Path, reported: Verdict | None, history: History | None, records: int = 132_614, **names: Any
) -> Path:
    """A run folder with everything that a run leaves, but for its logs."""
    name, partitions = names.get("name", "coordinator moves while a member is a zombie"), names.get("partitions", 12)
    for part in ("history/delivered", "history/produced", "history/coordinator"):
        (path / part).mkdir(parents=True)
    group = {"client": "confluent-kafka", "members": 4, "protocol": "cooperative", "static": False}
    group["config"] = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1500}
    topic = {"name": names.get("topic", "orders"), "partitions": partitions, "replication_factor": 3, "config": {}}
    scenario = {"name": name, "topics": [topic], "group": group, "workload": {"type": "poll_loop", "rate_hz": 4000}}
    versions = {
        "fencepost": "0.1.0",
        "python": "3.11.9",
        "kafka": "4.3.1",
        "confluent-kafka": "2.16.1",
        "java": "21.0.4",
    }
    _json(path / "scenario.json", {
        "format_version": 1, "scenario": scenario, "seed": 20261121, "backend": "local", "versions": versions,
        "cluster": {"brokers": 3, "slots": 4, "broker_config": {"group.min.session.timeout.ms": 1000}},
        "network": {"links": "yes", "packets": "no: iptables is missing"},
    })  # fmt: skip
    drawn = {"pick": 0.5, "expect": None, "required": True}
    steps = [
        {**drawn, "step": n, "at_s": s, "fault": {"type": f}, "target": t, "heal_after_s": 5 if t else None}
        for n, (s, f, t) in enumerate(_PLAN)
    ]
    _json(path / "plan.json", {"format_version": 1, "seed": 20261121, "steps": steps})
    if reported is not None:
        _json(path / "verdict.json", {"format_version": 1, **reported.to_json()})
    known = [{"tp": n, "topic": topic["name"], "partition": n, "begin": 0, "end": 9} for n in range(partitions)]
    _json(path / "history/partitions.json", {"format_version": 1, "partitions": known})
    _json(path / "history/clock.json", {"format_version": 1, "pairs": [[ORIGIN_NS, 1], [at(51), 2]]})
    stall = {"kind": "stall", "why": "gap", "from_ns": at(39.5), "to_ns": at(39.9), "seconds": 0.4}
    (path / "history/host.jsonl").write_text(
        json.dumps(stall) + "\n" + json.dumps({"kind": "summary", "gaps": 1}) + "\n"
    )
    if history is not None:
        history.write(path / "history/events.parquet")
    _records(path / "history", records)
    return path


_PLAN = [
    (2, "move_coordinator", None),
    (8, "pause", "one_member"),
    (21, "black_hole", "one_member"),
    (26, "bounce", "one_member"),
]


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value))


def _records(history: Path, count: int) -> None:
    """Producers at a steady rate, members with a gap while the group had no coordinator and a burst after it."""
    when = np.sort(np.random.default_rng(7).uniform(5, 46, count))
    late = np.where((when > 9) & (when < 9.8), 9.8 + (when - 9) / 2, when)
    for folder, columns, column, times in (
        ("produced/producer-0", PRODUCED_COLUMNS, "acked_ns", when),
        ("delivered/member-0.1", DELIVERED_COLUMNS, "delivered_ns", late + 0.01),
    ):
        zeros = {name: np.zeros(count, dtype=kind) for name, kind in columns.items()}
        table = pa.table({**zeros, column: (times * NS).astype(np.int64) + ORIGIN_NS})
        pq.write_table(table, history / f"{folder}.parquet", row_group_size=100_000)


def huge_history(partitions: int, moves: int, commits: int) -> History:
    """Hours of it: partitions that wander between twenty members, a commit every now and then."""
    rng, h = np.random.default_rng(3), History()
    h.add("phase", "harness", 0.1, 30_000, detail={"name": "chaos"})
    for m in range(20):
        h.add("launched", f"member-{m}.1", 0.2, detail={"member": m})
    for n in range(partitions):
        cuts = np.sort(rng.uniform(1, 30_000, moves))
        for index, (begin, end) in enumerate(pairwise(cuts)):
            owner = f"member-{rng.integers(20)}.1"
            h.add("assigned", owner, begin, begin + 0.01, orders(n), generation=index)
            h.add("revoked", owner, end - 0.2, end - 0.1, orders(n), generation=index)
    for s, n in zip(rng.uniform(1, 30_000, commits), rng.integers(0, partitions, commits), strict=True):
        h.add("commit", "member-0.1", s, s + 0.01, orders(int(n), offset=1), outcome="ok")
    h.rows.sort(key=lambda row: row["begin_ns"])
    return h


def valid_run(path: Path) -> Path:
    """Every promise kept."""
    return write_run(path, verdict("coordinator moves", checks("valid")), group_history())


def invalid_run(path: Path) -> Path:
    """Records lost."""
    return write_run(path, verdict("coordinator moves", checks("invalid")), group_history())


def unknown_run(path: Path) -> Path:
    """Too few facts, and a pause that nobody could prove."""
    history = group_history()
    for row in history.rows:
        detail = json.loads(row["detail"])
        if row["kind"] == "fault" and detail["fault"] == "pause":
            detail["evidence"] = {"took_effect": False, "what": "process 4711 was in state S for 5 s, awaited T"}
            row.update(outcome="info", detail=json.dumps(detail))
        if row["kind"] == "fault" and detail["fault"] == "bounce":
            row.update(kind="skipped", detail=json.dumps({"step": 3, "fault": "bounce", "reason": "nothing matched"}))
    return write_run(path, verdict("coordinator moves", checks("unknown")), history)


def huge_run(path: Path) -> Path:
    """A million records and hours of history."""
    history = huge_history(partitions=100, moves=600, commits=50_000)
    return write_run(path, verdict("soak", checks("valid")), history, records=1_000_000, partitions=100)
