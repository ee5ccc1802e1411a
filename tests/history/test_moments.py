"""What happens at the very same moment as something else, or a nanosecond later: which side of it a definition is on.

Each pair differs in one nanosecond (or in one fact that is missing), and the oracle and the kernel agree on both.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.checkers import oracle
from fencepost.checkers.counts import Bounds
from fencepost.checkers.detections import aggregate, run_rules
from fencepost.checkers.tables import load
from fencepost.checkers.tables.records import load_records
from fencepost.checkers.tables.rows import NS
from fencepost.history import SendOutcome
from fencepost.model import Anomaly
from fencepost_member.recording.events import EventLog
from history import random_histories
from history.builder import HistoryBuilder, MemberTeller, ns
from history.test_kernel_equals_oracle import agreed
from history.test_kinds import A, B, rest, two

A_NS = 1e-9
LATER = pytest.mark.parametrize("later", [0, A_NS], ids=["at once", "later"])


def found(h: HistoryBuilder, kind: str, recovers_s: int = 0) -> list[Anomaly]:
    return [a for a in agreed(h.seal(), Bounds(recovers_ns=recovers_s * NS))[0] if a.kind == kind]


@LATER
def test_owners_overlap_from_a_nanosecond_on(tmp_path: Path, later: float) -> None:
    h = HistoryBuilder(tmp_path)
    a, b = two(h)
    a.commit(6, 3.5)
    b.assigned(4.95, took=0.01, reported=False)
    a.revoked(4.96 + later)
    rest(b, 6)
    assert [(o.from_ns, o.to_ns) for o in found(h, "assignment-overlap")] == [(ns(4.96), ns(4.96) + 1)] * bool(later)


@LATER
def test_a_loop_takes_longer_than_its_bound(tmp_path: Path, later: float) -> None:
    h = HistoryBuilder(tmp_path)
    h.phases = {}
    a, _ = two(h)
    for n, at in enumerate((100, 120, 130 + later)):
        a.intervals[0] = n + 1
        a.deliver(6, at)
    assert [o.cause for o in found(h, "redelivery-loop")] == ["standing"] * bool(later)


@pytest.mark.parametrize(
    ("begun", "done", "excuse"),
    [
        (4.5 - A_NS, 12 + A_NS, "in flight when frozen"),
        (4.5, 12 + A_NS, "begun as its owner"),
        (4.5 - A_NS, 12, "begun as its owner"),
    ],
)
def test_what_was_frozen_in_flight_began_before_and_ended_after_the_pause(
    tmp_path: Path, begun: float, done: float, excuse: str
) -> None:
    h = HistoryBuilder(tmp_path)
    a, b = two(h)
    a.commit(6, 3.5)
    a.poll([6], 4)[0].begin(begun).end(done)
    a.pause(4.5, 12)
    a.evicted(10)
    b.assigned(10.5)
    b.process([6], 11)
    a.lost(12.6)
    a.close(14)
    rest(b, 7)
    assert [late.excuse for late in found(h, "stale-effect")] == [excuse]


@pytest.mark.parametrize(("begun", "excuse"), [(4.5 - A_NS, "in flight when frozen"), (4.5, "")])
def test_two_at_work_of_whom_one_was_frozen(tmp_path: Path, begun: float, excuse: str) -> None:
    h = HistoryBuilder(tmp_path)
    a, b = two(h)
    a.poll([6], 4)[0].begin(begun).end(12.5)
    a.pause(4.5, 12)
    a.evicted(10)
    b.assigned(10.5)
    b.poll([7], 12.2)[0].begin(12.2).end(12.3)
    a.lost(12.6)
    assert [both.excuse for both in found(h, "processing-overlap")] == [excuse]


@LATER
def test_a_recovery_begins_when_the_step_is_over(tmp_path: Path, later: float) -> None:
    """What is delivered in that very moment is not delivered after it."""
    h = HistoryBuilder(tmp_path, promises=[{"type": "progress", "recovers_within_s": 5}])
    a, b = two(h)
    b.pause(4, 9)  # proven healed at 9.01 s
    a.deliver(6, 9.01 + later)
    rest(a, 7, at=14.2)
    late = found(h, "slow-recovery", recovers_s=5)
    assert [(s.from_ns, s.members) for s in late] == [] if later else [(ns(9.01), (A,))]


@LATER
def test_who_is_assigned_a_partition_in_the_moment_that_it_is_stuck_owns_it(tmp_path: Path, later: float) -> None:
    h = HistoryBuilder(tmp_path)
    a, b = two(h)  # the last delivery is at 2 s: it is stuck from 32 s on
    a.commit(6, 3)
    a.revoked(4)
    b.assigned(31.99, took=0.01 + later)
    rest(b, 6, at=33)
    (stuck,) = found(h, "stuck-partition")
    assert (stuck.cause, stuck.members) == (("unowned", ()) if later else ("", (B,)))


@pytest.mark.parametrize(
    ("paused", "cause"),
    [
        ((30, None), "paused"),
        ((20, 21), "paused"),
        ((20, 20.99), ""),
        ((0, 2.5), ""),
    ],
)
def test_who_has_paused_a_partition_for_what_it_waited_too_long_is_told_so(
    tmp_path: Path, paused: tuple[float, float | None], cause: str
) -> None:
    h = HistoryBuilder(tmp_path)
    a, b = two(h)  # it waits from 2 s to 33 s: 1 s longer than it may
    a.pauses(*paused)
    b.pauses(1, None)  # which is not its owner
    rest(a, 6, at=33)
    (stuck,) = found(h, "stuck-partition")
    assert (stuck.cause, stuck.excuse, stuck.members) == (cause, "", (A,))


@LATER
def test_a_commit_that_begins_with_the_interval_is_of_that_interval(tmp_path: Path, later: float) -> None:
    h = HistoryBuilder(tmp_path)
    h.write(10)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    a.commit(6, 1 - A_NS + later, outcome="fail", error="REBALANCE_IN_PROGRESS")
    a.process(range(6), 2)
    a.revoked(4)
    b.assigned(5)
    rest(b, 4)
    assert [again.excuse for again in found(h, "redelivery")] == ["final commit was refused"] * bool(later)


def test_a_record_that_landed_twice_of_a_call_that_nobody_told_of(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    a, _ = two(h)
    again = h.lands_again(9)
    h.produced = [p for p in h.produced if p.offset != 9]
    a.process([*range(6, 10), again], 15)
    a.close(39)
    (twice,) = found(h, "duplicate-write")
    assert (twice.from_ns, twice.to_ns) == (0, 0)


def test_a_call_that_was_told_of_twice_was_made_at_the_first_time(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    a, _ = two(h)
    again = h.lands_again(9)
    h.produced.append(h.produced[9]._replace(sent_ns=ns(5), outcome=SendOutcome.INFO, offset=-1, acked_ns=0))
    a.process([*range(6, 10), again], 15)
    a.close(39)
    assert [(o.from_ns, o.to_ns) for o in found(h, "duplicate-write")] == [(ns(0.5), ns(0.5))]


def test_records_of_a_member_that_nobody_launched_are_judged(tmp_path: Path) -> None:
    """Its process was seen by nobody: it has no pauses, no intervals, and does what it does as anybody."""
    h = HistoryBuilder(tmp_path)
    a, _ = two(h)
    a.poll([6], 4)[0].begin(4).end(6)
    name = "member-9.1"
    ghost = MemberTeller(h, name, "", EventLog(h.run.history / "events" / f"{name}.jsonl", name))
    ghost.deliver(7, 5).begin(5).end(5.5)
    h.members.append(ghost)
    rest(a, 8)
    (both,) = found(h, "processing-overlap")
    assert both.members == (name, A)


def test_a_partition_that_nobody_knows_is_judged_by_its_records(tmp_path: Path) -> None:
    """The audit did not see it: what was written there is lost, what was delivered from there is not in the log."""
    h = HistoryBuilder(tmp_path)
    a, _ = two(h)
    rest(a, 6)
    h.produced.append(h.produced[0]._replace(tp=7, seq=100))
    a.deliver(0, 4, tp=7, interval=-1).begin(4).end(4.1)
    a.deliver(1, 4.2, tp=7, interval=3).begin(4.2).end(4.3)
    shown = [(o.kind, o.first_offset, o.last_offset, o.count) for o in agreed(h.seal(), Bounds())[0]]
    assert shown == [
        ("delivery-outside-assignment", 0, 1, 2),
        ("lost-write", 0, 0, 1),
        ("phantom", 0, 1, 2),
    ]


@pytest.mark.parametrize(("log_start", "missing"), [(0, 4), (3, 1), (4, 0)])
def test_what_is_below_the_start_of_the_log_is_nobodys(tmp_path: Path, log_start: int, missing: int) -> None:
    h = HistoryBuilder(tmp_path)
    h.write(10)
    h.log_starts[0] = log_start
    a = h.member(0)
    a.assigned(1)
    a.process(range(4, 10), 2)
    a.commit(10, 3)
    a.close(39)
    counts = Counter({o.kind: o.count for o in agreed(h.seal(), Bounds())[0]})
    assert (counts["unseen"], counts["wrong-start"]) == (missing, bool(missing))


def test_a_group_whose_offset_is_above_the_end_starts_where_the_log_does(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    h.write(10)
    h.log_starts[0] = 4
    h.accepts(100, 0.95)
    a = h.member(0)
    a.assigned(1)
    a.process(range(4, 10), 2)
    assert not found(h, "wrong-start")


def committed_before_sent(folder: Path, sent_s: float) -> tuple[HistoryBuilder, MemberTeller]:
    """Seven records are committed at 3 s, and the last of them is sent only then."""
    h = HistoryBuilder(folder)
    h.write(6)
    a = h.member(0)
    a.assigned(1)
    a.process(range(6), 2)
    a.commit(7, 3)
    h.write(1, at=sent_s)
    return h, a


@LATER
def test_a_record_sent_after_a_commit_above_it_was_certainly_written(tmp_path: Path, later: float) -> None:
    """The coordinator's clock is off by 0.5 ms at most: the commit of 3.001 s was written by 3.0015 s."""
    h, a = committed_before_sent(tmp_path, 3.0015 + later)
    a.process([6], 4)
    a.commit(7, 5)
    a.close(39)
    assert [o.count for o in found(h, "commit-beyond-end")] == [1] * bool(later)


@LATER
def test_an_offset_delivered_before_its_record_was_sent_was_given_twice(tmp_path: Path, later: float) -> None:
    h, a = committed_before_sent(tmp_path, 3.5 + later)
    a.process([6], 3.5)
    a.close(39)
    assert [o.count for o in found(h, "commit-beyond-end")] == ([] if later else [1])


@pytest.mark.parametrize(
    ("records", "finals", "found_in"),
    [
        ((10, 10), (9, 9), 2),
        ((10,), (9,), 0),  # one partition is no habit
        ((1, 1), (0, 0), 2),
        ((10, 10, 0), (9, 9, 0), 2),  # nothing was finished in the third
        ((10, 10, 10), (9, 9, None), 2),  # nothing is committed of the third
    ],
)
def test_a_group_is_off_by_one_in_all_partitions_that_show_it(
    tmp_path: Path, records: tuple[int, ...], finals: tuple[int | None, ...], found_in: int
) -> None:
    h = HistoryBuilder(tmp_path, len(records))
    a = h.member(0)
    for tp, (count, final) in enumerate(zip(records, finals, strict=True)):
        h.write(count, tp)
        a.assigned(1, tp)
        a.process(range(count), 2, tp)
        if final is None:
            h.accepts(None, 16, tp)
        else:
            a.commit(final, 16, tp)
    assert len(found(h, "off-by-one")) == found_in


@LATER
def test_who_finished_before_the_last_commit_was_written_knew(tmp_path: Path, later: float) -> None:
    """It was written at 16.001 s, give or take 0.5 ms."""
    h = HistoryBuilder(tmp_path, 2)
    a = h.member(0)
    for tp in (0, 1):
        h.write(10, tp)
        a.assigned(1, tp)
        a.process(range(10), 2, tp)[9].end(16.0005 - later)
        a.commit(9, 16, tp)
    assert len(found(h, "off-by-one")) == (2 if later else 0)


def test_the_order_in_which_records_are_read_changes_nothing(tmp_path: Path) -> None:
    """But of two deliveries under one number, which only a damaged history has."""
    for seed in range(3):
        run = random_histories.wild(tmp_path, seed)
        tables, records = load(run), load_records(run)
        turned = replace(records, produced=records.produced[::-1], log=records.log[::-1])
        turned = replace(turned, delivered=tuple(sorted(records.delivered, key=lambda r: r.ord, reverse=True)))
        rules = oracle.RULES
        first, second = (run_rules(rules, oracle.History(tables, those, Bounds())) for those in (records, turned))
        assert aggregate(first[0], tables.partitions) == aggregate(second[0], tables.partitions)


@LATER
def test_a_poll_counts_as_late_when_more_than_a_heartbeat_interval_went_by(tmp_path: Path, later: float) -> None:
    """The first late poll may have begun before the member could know; the one after it not."""
    h = HistoryBuilder(tmp_path)
    a, b = two(h)
    a.evicted(3.9)
    a.commit(6, 4, outcome="fail", error="UNKNOWN_MEMBER_ID")  # answered at 4.002 s; heartbeats come each 3 s
    a.process([6], 7.002 + later)
    a.process([7], 9.5)
    a.lost(9.7)
    b.assigned(10)
    rest(b, 4)
    assert [o.first_offset for o in found(h, "work-after-fencing")] == [7] * bool(later)


@LATER
def test_what_was_begun_with_a_fault_is_hindered_by_it(tmp_path: Path, later: float) -> None:
    h = HistoryBuilder(tmp_path)
    a, b = two(h)
    h.fault("black_hole", 9 + later, 9.6, members=(A,))
    a.evicted(3.9)
    a.commit(6, 4, outcome="fail", error="UNKNOWN_MEMBER_ID")
    a.process([6], 8)
    a.process([7], 9)
    a.lost(9.7)
    b.assigned(10)
    rest(b, 4)
    excuses = [o.excuse for o in found(h, "work-after-fencing")]
    assert excuses == ["" if later else "black_hole was in effect"]


@LATER
def test_who_begins_with_a_later_generation_is_not_fenced(tmp_path: Path, later: float) -> None:
    h = HistoryBuilder(tmp_path, 2, classic=True)
    h.blur_ns = 0
    a, b = two(h)
    b.assigned(2, 1)
    a.commit(6, 4, outcome="fail", error="ILLEGAL_GENERATION", generation=2)
    a.process([6], 8)
    a.process([7], 9)
    h.gives(b, 1, 9 + later)  # generation 3 has both members
    rest(a, 8)
    assert [o.first_offset for o in found(h, "work-after-fencing")] == [7] * bool(later)


def stands(h: HistoryBuilder) -> None:
    """One record at 100, 120 and 131 s, and no more; a fault touches that from 70 s on."""
    h.phases = {}
    a, _ = two(h)
    for n, at in enumerate((100, 120, 131)):
        a.intervals[0] = n + 1
        a.deliver(6, at)


@LATER
@pytest.mark.parametrize(("begun", "healed"), [(50, 69.99), (131, 140), (131, None)])
def test_a_fault_excuses_a_loop_that_it_touches(
    tmp_path: Path, begun: float, healed: float | None, later: float
) -> None:
    """It is proven healed 10 ms after its undoing; ``later``: it is over a nanosecond too early, or begins too late."""
    h = HistoryBuilder(tmp_path)
    stands(h)
    if begun < 100 and healed:
        h.fault("pause", begun, healed - later, members=(B,))
    else:
        h.fault("pause" if healed else "kill", begun + later, healed, members=(B,))
    assert len(found(h, "redelivery-loop")) == bool(later)


@LATER
@pytest.mark.parametrize("accepted", [99.9995, 131.0005])
def test_a_commit_that_may_have_been_written_between_ends_a_loop(tmp_path: Path, accepted: float, later: float) -> None:
    """The coordinator's clock is off by 0.5 ms at most."""
    h = HistoryBuilder(tmp_path)
    stands(h)
    h.accepts(7, accepted + (later if accepted > 100 else -later))
    assert len(found(h, "redelivery-loop")) == bool(later)


@pytest.mark.parametrize(("sought", "cause"), [(4.5, "seek"), (None, "")])
def test_a_seek_explains_a_rewind_in_an_interval_that_nobody_told_of(
    tmp_path: Path, sought: float | None, cause: str
) -> None:
    h = HistoryBuilder(tmp_path)
    a, _ = two(h)
    a.deliver(8, 4, interval=7)
    if sought:
        a.seek(6, sought)
    a.deliver(6, 5, interval=7)
    assert [o.cause for o in found(h, "rewind")] == [cause]
