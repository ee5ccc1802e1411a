"""Kinds about owners and progress by callbacks and the coordinator's log, each beside near misses.

A case tells one story in several ways: ``wrong`` must give exactly what is listed, and every other way, which differs
from it in one thing only, nothing (or what is listed for it).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fencepost.checkers import group_rules, oracle
from fencepost.checkers.counts import Bounds
from fencepost.checkers.detections import aggregate, run_rules
from fencepost.checkers.explanations import example
from fencepost.checkers.group_rules.rebalances import _other_cause
from fencepost.checkers.judge import judge
from fencepost.checkers.tables import Tables, load
from fencepost.checkers.tables.rows import AssignmentChange, Rebalance, Window
from fencepost.checkers.tables.stable_periods import stable_periods
from fencepost.model import Anomaly, Validity
from history.builder import HistoryBuilder, ns

A, B, C = "member-0.1", "member-1.1", "member-2.1"
Told = tuple[str, str, str, tuple[str, ...]]  # kind, cause, excuse, members
Tell = Callable[[HistoryBuilder, str], None]
OWN = {
    kind
    for rule, kinds in group_rules.RULES.items()
    for kind in kinds
    if not rule.__module__.endswith("group_rules.commits")
} - {"stale-offset-answer"}  # its histories are in test_stale_answers


@dataclass(frozen=True)
class Case:
    """``ways``: what each way of the story shows; ``options``: of the builder."""

    tell: Tell
    ways: Mapping[str, Sequence[Told]]
    options: Mapping[str, Any]
    forms: tuple[str, ...]

    def told(self, folder: Path, way: str, form: str) -> HistoryBuilder:
        """The history, not sealed yet."""
        h = HistoryBuilder(folder, classic=form == "classic", **{"partitions": 4, **self.options})
        h.phases["drain"] = (20.1, 21.0)  # too short for anything to be late
        self.tell(h, way)
        return h

    def build(self, folder: Path, way: str, form: str) -> Path:
        return self.told(folder, way, form).seal()


CASES: list[Case] = []


def case(
    wrong: Told, *misses: str, forms: tuple[str, ...] = ("consumer", "classic"), **options: Any
) -> Callable[[Tell], Tell]:
    """A story that shows ``wrong``, and the names of its near misses; ``excused=...`` of a way: with that excuse."""

    def add(tell: Tell) -> Tell:
        ways: dict[str, Sequence[Told]] = {"wrong": [wrong]}
        for miss in misses:
            name, _, excuse = miss.partition("=")
            ways[name] = [(wrong[0], wrong[1], excuse, wrong[3])] if excuse else []
        CASES.append(Case(tell, ways, options, forms))
        return tell

    return add


def found(run: Path) -> tuple[Tables, list[Anomaly]]:
    tables = load(run)
    sightings, failed = run_rules(group_rules.RULES, tables)
    assert not failed
    return tables, [a for a in aggregate(sightings, tables.partitions) if a.kind in OWN]


def told(run: Path) -> list[Told]:
    return [(a.kind, a.cause, a.excuse, a.members) for a in found(run)[1]]


def members(h: HistoryBuilder) -> tuple[Any, Any]:
    """Two members, whose ids are known by an early callback of a partition that no story is about."""
    return known(h, 0), known(h, 1)


def known(h: HistoryBuilder, index: int) -> Any:
    member = h.member(index)
    member.assigned(0.95, 2 + index, reported=False)
    return member


# What the coordinator itself wrote.


@case(("coordinator-overlap", "", "", (A, B)), "taken first", "one batch", forms=("consumer",))
def one_partition_for_two(h: HistoryBuilder, way: str) -> None:
    a, b = members(h)
    h.round(1, (a, [0, 1]), (b, []), generation=1)
    lines = [(a, [1]), (b, [0])] if way == "taken first" else [(b, [0]), (a, [1])]
    if way == "one batch":
        with h.batch():
            tell_current(h, lines, [2, 2])
    else:
        tell_current(h, lines, [2, 3])


def tell_current(h: HistoryBuilder, lines: Sequence[tuple[Any, list[int]]], at: Sequence[float]) -> None:
    for (member, tps), moment in zip(lines, at, strict=True):
        h._has[member.member_id] = set(tps)
        h._assignment(member.member_id, moment)


@case(("coordinator-overlap", "", "", (A, B)), "apart", forms=("classic",))
def a_leader_that_gives_one_partition_to_two(h: HistoryBuilder, way: str) -> None:
    a, b = members(h)
    h.round(1, (a, [0]), (b, [1] if way == "apart" else [0, 1]), generation=1)


@case(("generation-regression", "", "", (A,)), "deleted", "not lower", "written again")
def a_generation_that_goes_back(h: HistoryBuilder, way: str) -> None:
    a = known(h, 0)
    h.round(1, (a, [0]), generation=5)
    h.round(2, (a, [0, 1]), generation=6)
    if way == "deleted":
        h.deletes(3)
    h.term = 2
    h.round(4, (a, [0]), generation={"not lower": 7, "written again": 6}.get(way, 5))


@pytest.mark.parametrize("classic", [False, True])
@pytest.mark.parametrize("deleted", [False, True])
def test_a_generation_again_is_a_round_only_if_the_group_began_anew(
    tmp_path: Path, classic: bool, deleted: bool
) -> None:
    h = HistoryBuilder(tmp_path, classic=classic)
    a = h.member(0)
    h.round(1, (a, [0]), generation=1)
    if deleted:
        h.deletes(2)
    h.round(3, (a, [0]), generation=1)
    assert len(load(h.seal()).rounds) == (2 if deleted else 1)


@case(("generation-regression", "", "", (A,)), "emptied", forms=("classic",))
def a_group_that_was_empty_begins_anew(h: HistoryBuilder, way: str) -> None:
    a = known(h, 0)
    h.round(1, (a, [0]), generation=5)
    if way == "emptied":
        h.round(2, generation=6)
    h.round(3, (a, [0]), generation=1)


# What callbacks say of each other.


@case(("callback-imbalance", "assigned twice", "", (A,)), "given up between", "another life", "another partition")
def assigned_twice(h: HistoryBuilder, way: str) -> None:
    a, _ = members(h)
    a.assigned(1)
    if way == "given up between":
        a.revoked(2)
    if way == "another life":
        a.die(2)
        a = h.member(0)
    a.assigned(3, 1 if way == "another partition" else 0)


@case(("callback-imbalance", "given up twice", "", (A,)), "assigned between", "once", "died in it")
def given_up_twice(h: HistoryBuilder, way: str) -> None:
    a, _ = members(h)
    a.assigned(1)
    a.revoked(2, took=None if way == "died in it" else 0.001)
    if way == "assigned between":
        a.assigned(2.5)
    if way in ("wrong", "assigned between"):
        a.lost(3)


@case(("callback-imbalance", "given up twice", "", (A,)), "soon=closing")
def given_up_twice_long_before_it_closes(h: HistoryBuilder, way: str) -> None:
    a, _ = members(h)
    a.assigned(1)
    a.revoked(2)
    a.revoked(3)
    a.close(4 if way == "soon" else 9)


@case(("callback-imbalance", "given up twice", "", (A,)), "assigned nothing=closing")
def given_up_twice_and_assigned_before_it_closes(h: HistoryBuilder, way: str) -> None:
    a, _ = members(h)
    a.assigned(1)
    a.revoked(2)
    a.revoked(3)
    if way == "wrong":
        a.assigned(3.5, 1)
    a.close(4)
    if way == "died in it":
        a.die(3)


@case(
    ("early-assignment", "", "", (A, B)),
    "answered before",
    "removed=zombie",
    "lost",
    "never returned",
    "auto",
)
def assigned_while_the_former_owner_still_commits(h: HistoryBuilder, way: str) -> None:
    a, b = members(h)
    a.assigned(1)
    if way == "lost":
        a.lost(5, took=0.5)
    else:
        a.revoked(5, took=None if way == "never returned" else 0.5, reported=False)
    a.commit(3, 5.1 if way == "answered before" else 5.3, mode="auto" if way == "auto" else "on-revoke")
    if way == "removed":
        a.evicted(5.1)
    b.assigned(5.2)


@case(("early-assignment", "", "", (A, B)), "soon after", "frozen", "host stood still", "same member", "after it")
def assigned_long_before_the_former_owner_was_through(h: HistoryBuilder, way: str) -> None:
    a, b = members(h)
    a.assigned(1)
    a.revoked(5, took=0.9 if way == "soon after" else 1.5, reported=False)
    if way == "frozen":
        a.pause(5.3, 6.3)
    if way == "host stood still":
        h.stall(5.3, 6.3)
    if way == "same member":
        a.assigned(5.2)
    else:
        b.assigned(6.6 if way == "after it" else 5.2)


@case(
    ("early-assignment", "generation", "", (A, B)),
    *("given up before", "in its callback", "lost", "never given up", "removed", "not in the new one"),
    *("cooperative", "later", "of no known round", "assigned after it", "named too early", "of one partition"),
    forms=("classic",),
    protocol="eager",
)
def a_generation_begins_while_a_member_still_has_its_partitions(h: HistoryBuilder, way: str) -> None:
    """Generation 2 is written at 5 s, and B hears of it at 5.1 s; A begins to give up at 6 s."""
    two_of_a_generation(h, way)
    a, b = h.members
    if way == "assigned after it":
        a.assigned(5.05, reported=False)
    if way == "removed":  # and joined again, under another id
        a.member_id += "'"
    if way != "of no known round":
        crew = [(b, [1])] if way == "not in the new one" else [(a, [0]), (b, [1])]
        h.round(5, *crew, generation=2)
    b.assigned(4.99 if way == "named too early" else 6.1 if way == "later" else 5.1, 1, reported=False, generation=2)
    if way == "of one partition":
        b.assigned(5.1, 0, reported=False, generation=2)
    if way == "lost":
        a.lost(6)
    elif way != "never given up":
        given_up = {"given up before": (4.5, 0.001), "in its callback": (5.05, 0.9)}.get(way, (6, 0.001))
        a.revoked(given_up[0], took=given_up[1], reported=False)


def two_of_a_generation(h: HistoryBuilder, way: str) -> None:
    """A has partition 0 and B partition 1 of generation 1; B gives its own up at 4 s."""
    h.protocol = "cooperative" if way == "cooperative" else h.protocol
    a, b = h.member(0), h.member(1)
    if way != "not in the new one":
        h.round(1, (a, [0]), (b, [1]), generation=1)
    b.assigned(1.1, 1, reported=False)
    b.revoked(4, 1, reported=False)
    if way != "assigned after it":
        a.assigned(1.1, reported=False)


@case(
    ("early-assignment", "generation", "", (A, B)), "answered before", "through", forms=("classic",), protocol="eager"
)
def a_generation_begins_while_a_member_still_commits(h: HistoryBuilder, way: str) -> None:
    two_of_a_generation(h, way)
    a, b = h.members
    h.round(5, (a, [0]), (b, [1]), generation=2)
    a.revoked(4.5, took=0.5 if way == "through" else 1, reported=False)
    a.commit(3, 4.7 if way == "through" else 5 if way == "answered before" else 5.2, mode="on-revoke")
    b.assigned(5.1, 1, reported=False, generation=2)


@pytest.mark.parametrize("took", [1.5, 0.9])
def test_a_generation_that_begins_long_before_a_callback_returned_is_early(tmp_path: Path, took: float) -> None:
    h = HistoryBuilder(tmp_path, 4, classic=True, protocol="eager")
    two_of_a_generation(h, "")
    a, b = h.members
    h.round(5, (a, [0]), (b, [1]), generation=2)
    a.revoked(5, took=took + 0.1, reported=False)
    b.assigned(5.1, 1, reported=False, generation=2)
    early = [("early-assignment", "generation", "", (A, B))]
    assert [t for t in told(h.seal()) if t[0] == "early-assignment"] == (early if took > 1 else [])


def test_a_member_that_is_assigned_more_before_it_gave_up_what_it_had_is_early_itself(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path, 4, classic=True, protocol="eager")
    two_of_a_generation(h, "")
    a, b = h.members
    h.round(5, (a, [3]), (b, [1]), generation=2)
    a.assigned(5.1, 3, reported=False, generation=2)
    a.revoked(6, reported=False)
    assert ("early-assignment", "generation", "", (A,)) in told(h.seal())


NEEDLESS = ("another joined", "another came and went", "lost", "moved between", "unknown round", "group made anew")


@case(
    ("needless-revocation", "", "", (A,)),
    *NEEDLESS,
    "partition made",
    "process started",
    "another subscribed",
    "declared=declared act: remove-member",
    protocol="cooperative",
)
def taken_and_given_back(h: HistoryBuilder, way: str) -> None:
    a, b = members(h)
    c = h.member(2)
    crew = [(b, [1]), (c, [])]
    h.round(1, (a, [0]), *crew, generation=1)
    a.assigned(1.1, reported=False)
    between = {
        "another joined": [*crew, (h.member(3), [])],
        "another came and went": crew[:1],
        "moved between": [(b, [0, 1]), (c, [])],
    }
    if way == "process started":
        h.member(4, at=3)
    if way == "another subscribed":
        b.subscribes(3)
    if way == "lost":
        a.lost(4)
    else:
        a.revoked(4, reported=False)
    if way == "partition made":
        h.leader(1, 2, tp=1)
    if way == "declared":
        h.act("remove-member", 3)
    if way == "group made anew":
        h.deletes(4.5)
    if way != "unknown round":
        h.round(5, (a, []), *between.get(way, crew), generation=2)
    stays = between["another joined"] if way == "another joined" else crew
    h.round(6, (a, [0]), *stays, generation=3)
    a.assigned(6.1, reported=False, generation=4 if way == "unknown round" else 3)


BALANCED, STICKY = [{"type": "rebalances"}], [{"type": "rebalances", "sticky": True}]


@case(
    ("unbalanced", "2 and 0", "", (A, C)),
    *("even", "soon over", "given soon", "just taken", "not promised", "of one member", "the last to leave"),
    "dropped topics=subscriptions",
    promises=BALANCED,
    partitions=5,
)
def one_member_is_given_nothing(h: HistoryBuilder, way: str) -> None:
    a, b = members(h)
    c = known(h, 2)
    even = (a, [0, 1]), (b, [2]), (c, [3])
    if way == "not promised":
        h.promises.clear()
    if way == "dropped topics":
        c.subscribes(2)
    if way == "of one member":
        h.round(1, (a, [0, 1, 2, 3]), generation=1)
    elif way == "the last to leave":
        h.phases["drain"] = (20.1, 26.0)
        h.round(1, *even, generation=1)
        h.round(20.5, (a, [0, 1, 2]), (b, [3]), generation=2)
        c.close(20.4)
    else:
        h.round(1, *even if way in ("even", "just taken") else ((a, [0, 1]), (b, [2, 3]), (c, [])), generation=1)
    if way == "soon over":
        h.round(5.9, *even, generation=2)
    if way == "given soon":
        h.gives(c, 3, 4)
    if way == "just taken":
        h.gives(a, 3, 17)


@case(
    ("not-sticky", "3 instead of 1", "", (A, B)),
    *("as few as must", "another one came and went", "soon after", "not promised", "of who left"),
    "dropped topics=subscriptions",
    promises=STICKY,
    partitions=5,
)
def more_is_taken_than_must(h: HistoryBuilder, way: str) -> None:
    a, b = members(h)
    c = known(h, 2)
    if way == "not promised":
        h.promises.clear()
    if way == "dropped topics":
        b.subscribes(2)
    h.round(1, (a, [0, 1]), (b, [2, 3]), generation=1)
    if way == "another one came and went":
        h.round(7.5, (a, [0]), (b, [2, 3]), (c, []), (h.member(3), [1]), generation=2)
    after = 5.5 if way == "soon after" else 8
    if way == "of who left":
        h.round(after, (a, [0, 1]), (c, [2, 3]), generation=3)
    elif way == "as few as must":
        h.round(after, (a, [0, 1]), (b, [2]), (c, [3]), generation=3)
    else:
        h.round(after, (a, [0]), (b, [1]), (c, [2, 3]), generation=3)


@case(
    ("duplicate-effect", "", "", (B, A)),
    *("once", "another record", "another partition"),
    partitions=5,
)
def a_record_has_two_effects(h: HistoryBuilder, way: str) -> None:
    a, b = members(h)
    a.effect(3, 2, seq=1)
    if way != "once":
        b.effect(4 if way == "another record" else 3, 3, seq=2, tp=1 if way == "another partition" else 0)


@case(
    ("dead-letter-twice", "one owner", "", (A, A)),
    *("once", "another record", "an effect"),
    partitions=5,
)
def a_record_has_two_dead_letters_of_one_owner(h: HistoryBuilder, way: str) -> None:
    a, _ = members(h)
    a.effect(3, 2, seq=1, tp=2, kind="dead-letter")
    if way != "once":
        kind = "effect" if way == "an effect" else "dead-letter"
        a.effect(4 if way == "another record" else 3, 3, seq=2, tp=2, kind=kind)


@case(("dead-letter-twice", "", "", (A, A)), "once", partitions=5)
def a_record_has_two_dead_letters_of_one_who_had_the_partition_again(h: HistoryBuilder, way: str) -> None:
    a, _ = members(h)
    a.effect(3, 2, seq=1, tp=2, kind="dead-letter")
    a.revoked(3, 2)
    a.assigned(4, 2, reported=False)
    if way != "once":
        a.effect(3, 5, seq=2, tp=2, kind="dead-letter")


@case(("dead-letter-twice", "", "", (B, A)), "once", partitions=5)
def a_record_has_dead_letters_of_two_owners(h: HistoryBuilder, way: str) -> None:
    a, b = members(h)
    a.effect(3, 2, seq=1, tp=2, kind="dead-letter")
    a.revoked(2.2, 2)
    b.assigned(2.4, 2, reported=False)
    if way != "once":
        b.effect(3, 3, seq=2, tp=2, kind="dead-letter")


@case(
    ("requeue-twice", "one owner", "", (A, A)),
    *("once", "another record", "a dead letter"),
    partitions=5,
)
def a_record_has_two_copies_of_one_owner(h: HistoryBuilder, way: str) -> None:
    a, _ = members(h)
    a.effect(3, 2, seq=1, tp=2, kind="requeued", again=7)
    if way != "once":
        kind = "dead-letter" if way == "a dead letter" else "requeued"
        a.effect(4 if way == "another record" else 3, 3, seq=2, tp=2, kind=kind, again=8)


@case(("requeue-twice", "", "", (B, A)), "once", partitions=5)
def a_record_has_copies_of_two_owners(h: HistoryBuilder, way: str) -> None:
    a, b = members(h)
    a.effect(3, 2, seq=1, tp=2, kind="requeued", again=7)
    a.revoked(2.2, 2)
    b.assigned(2.4, 2, reported=False)
    if way != "once":
        b.effect(3, 3, seq=2, tp=2, kind="requeued", again=8)


@case(
    ("effects-out-of-order", "", "", ()),
    *("in order", "no order is known", "another key", "no key", "another partition", "its second effect"),
    "declared=declared act: delete-records",
    partitions=5,
)
def a_record_has_its_effect_after_a_later_one_of_its_key(h: HistoryBuilder, way: str) -> None:
    members(h)
    h.workload = {"type": "own_program", "effects_in_order": way != "no order is known"}
    a, _ = h.members
    if way == "declared":
        h.act("delete-records", 1)
    if way in ("in order", "its second effect"):
        a.effect(3, 2, seq=1, tp=1, key=6)
    a.effect(4, 2, seq=2, tp=1, key=-1 if way == "no key" else 6)
    if way != "in order":
        a.effect(
            3, 3, seq=3, tp=2 if way == "another partition" else 1, key={"another key": 7, "no key": -1}.get(way, 6)
        )


@case(
    ("stale-write", "", "", (A, B)),
    *("refused", "it came before", "its lease is the newest again", "another partition"),
    partitions=5,
)
def who_had_the_lease_before_writes_last(h: HistoryBuilder, way: str) -> None:
    a, b = members(h)
    a.effect(3, 2, seq=1, token=1, tp=1)
    b.effect(4, 3, seq=5, token=2, tp=0 if way == "another partition" else 1)
    if way == "its lease is the newest again":
        a.effect(5, 4, seq=6, token=3, tp=1)
    elif way != "refused":
        a.effect(5, 4, seq=2 if way == "it came before" else 6, token=1, tp=1)


@case(
    ("long-pause", "", "", (A, B)),
    *("short enough", "not promised", "no bound", "another one between", "when the run is over", "never again"),
    "nobody lived=nobody could",
    "all stood still=nobody could",
    promises=[{"type": "rebalances", "pause_within_s": 5}],
    partitions=5,
)
def a_partition_is_nobodys_for_long(h: HistoryBuilder, way: str) -> None:
    a, b = members(h) if way != "nobody lived" else (known(h, 0), h.member(1, at=5))
    c = known(h, 2) if way != "nobody lived" else h.member(2, at=5)
    if way in ("not promised", "no bound"):
        h.promises = [] if way == "not promised" else [{"type": "rebalances", "pause_within_s": 0}]
    a.assigned(1, reported=False)
    a.revoked(3, reported=False)
    if way == "another one between":
        c.assigned(4, reported=False)
        c.revoked(6, reported=False)
    if way == "nobody lived":
        a.die(4)
    if way == "all stood still":
        for number, one in enumerate((a, b, c)):
            one.pause(4, 5, step=number)
    if way == "when the run is over":
        h.phases["drain"] = (2.9, 21.0)
        a.close(3.1)
    if way != "never again":
        b.assigned(7.9 if way == "short enough" else 8.1, reported=False)


@case(
    ("rebalance-on-static-bounce", "", "", (B, "member-1.2")),
    *("no rebalance", "dynamic", "late", "rebalance before", "rebalance after", "no rest before", "not promised"),
    *("another started", "another ended", "another subscribed", "another gone", "another coordinator"),
    *("another leader", "another step", "a step for all", "never back"),
    promises=[{"type": "rebalances", "static": True}],
    partitions=6,
    config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 500},
)
def a_static_member_is_soon_back(h: HistoryBuilder, way: str) -> None:
    h.phases["drain"] = (20.1, 41.0)
    if way == "not promised":
        h.promises = []
    a, name = known(h, 0), None if way == "dynamic" else "one"
    b, c = h.member(1, instance_id=name), known(h, 2)
    crew = [(a, [0, 1]), (c, [2])]
    idle = [(known(h, 3), [])] if way == "another gone" else []
    h.round(1, *crew, *idle, (b, [3]), generation=1)
    b.assigned(1.1, 3, reported=False)
    if way == "no rest before":
        h.round(9, *crew, (b, [3]), generation=2)
    at = 5 if way == "another started" else None
    if at:
        h.member(3, at=at)
    if way == "another ended":
        c.die(10)
    if way == "another subscribed":
        c.subscribes(10)
    if way == "another gone":
        h.removes(idle[0][0], 10)
    if way == "another leader":
        h.leader(1, 10, tp=1)
    if way in ("another step", "a step for all"):
        h.fault("pause", 9, 9.5, step=4, members=(A,) if way == "another step" else ())
    h.fault("bounce", 11.9, 13.1, step=1, members=(B,))
    b.revoked(12, 3, reported=False)
    b.die(12.1)  # whatever it says at its end: the coordinator keeps a static member until its session is over
    if way == "rebalance before":
        h.round(11.5, *crew, (b, [3]), generation=3)
    if way == "another coordinator":
        h.term += 1
    again = h.member(1, at=13, instance_id=name)
    if way not in ("no rebalance", "rebalance before", "rebalance after"):
        h.round(12.5, *crew, (again, [3]), generation=4)
    if way != "never back":
        again.assigned(17.6 if way == "late" else 17.4, 3, reported=False, generation=4)
    if way == "rebalance after":
        h.round(18, *crew, (again, [3]), generation=4)


@case(
    ("unbalanced", "2 and 0", "", ("member-0.2", A)),
    "static",
    promises=BALANCED,
    partitions=6,
)
def a_member_is_back_while_the_group_rests(h: HistoryBuilder, way: str) -> None:
    """To the coordinator nothing of a static one is new but its member id; another one it does not know."""
    h.phases["drain"] = (20.1, 25.0)
    a, c = h.member(0, instance_id="one" if way == "static" else None), known(h, 2)
    a.assigned(0.95, reported=False)
    h.round(1, (a, [0, 1]), (c, [2, 3]), generation=1)
    a.die(3)
    again = h.member(0, at=4, instance_id="one" if way == "static" else None)
    again.assigned(5, reported=False)
    h.round(5, (again, [0, 1]), (c, [2, 3]), generation=1)
    h.round(15, (c, [2, 3]), (again, [0, 1]), generation=2)


def test_each_pause_is_one_and_a_member_may_come_after_itself(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path, 4, promises=[{"type": "rebalances", "pause_within_s": 1}, {"type": "rebalances"}])
    a, b = members(h)
    a.assigned(1, reported=False)
    b.assigned(1.5, reported=False)
    b.revoked(2, reported=False)
    a.revoked(3, took=1.0, reported=False)
    a.assigned(5.5, reported=False)
    a.revoked(6, reported=False)
    a.assigned(6.9, reported=False)
    a.revoked(7, reported=False)
    b.assigned(8.5, reported=False)
    _, pauses = found(h.seal())
    shown = [(p.members, p.count, p.from_ns, p.to_ns) for p in pauses if p.kind == "long-pause"]
    assert shown == [((A,), 1, ns(4), ns(5.5)), ((A, B), 1, ns(7.001), ns(8.5))]


def test_a_group_of_nobody_may_rest_as_well(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path, 2, promises=STICKY)
    a = h.member(0)
    h.round(1, (a, [0]), generation=1)
    h.round(8, generation=2)
    h.round(15, (a, [0]), generation=3)
    tables, anomalies = found(h.seal())
    assert [len(rest.members) for rest in tables.rests] == [1, 0, 1]
    assert not {"unbalanced", "not-sticky"} & {anomaly.kind for anomaly in anomalies}


def test_a_group_rests_when_its_round_is_certainly_over_and_until_the_next_one_may_begin() -> None:
    rounds = [Rebalance(0, n, *map(ns, times), uncertainty_ns=200_000_000) for n, times in enumerate([(1, 2), (8, 9)])]
    (rest,) = stable_periods(rounds, [AssignmentChange(0, 0, ns(2), 100_000_000, "m", A)], ns(30), lambda names: names)[
        :1
    ]
    assert rest.window == (ns(2.2), ns(7.8))


@pytest.mark.parametrize(("at", "rested"), [(7.9, [ns(15)]), (8.0, [ns(7.8), ns(15)])])
def test_a_rest_ends_before_a_partition_may_be_given_away(at: float, rested: list[int]) -> None:
    """Within what is not certain of the moment, from 0.2 s before it on."""
    rounds = [Rebalance(0, n, *map(ns, times), uncertainty_ns=200_000_000) for n, times in enumerate([(1, 2), (8, 9)])]
    found = stable_periods(rounds, [AssignmentChange(0, 0, ns(at), 200_000_000, "m", A)], ns(15), lambda names: names)
    assert [rest.window.end_ns for rest in found] == rested


@pytest.mark.parametrize(("at_ns", "is_one"), [(4, False), (5, True), (9, True), (10, False)])
def test_a_cause_lies_inside_of_a_window_with_its_edges(at_ns: int, is_one: bool) -> None:
    tables = SimpleNamespace(terms=[(0, at_ns, 1)], leaders=[], gone=[], lives={}, steps=[])
    assert _other_cause(cast("Tables", tables), Window(5, 9), {A}) is is_one


def test_a_group_without_a_rebalance_has_no_rest(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path, promises=STICKY)
    run = h.seal()
    assert load(run).rests == []
    assert told(run) == []


@case(("not-sticky", "1 instead of 0", "", (A,)), "nothing taken", promises=STICKY, partitions=5)
def what_who_left_had_is_no_reason_to_take_more(h: HistoryBuilder, way: str) -> None:
    a, b = members(h)
    c, mine, others = known(h, 2), *((0, 1) if way == "nothing taken" else (1, 0))
    h.round(1, (a, [0]), (b, [1, 2]), generation=1)
    h.round(8, (a, [mine]), (c, [others]), (h.member(3), [2]), generation=2)


@case(("needless-revocation", "", "", (A,)), "eager", "protocol unknown")
def eager_members_give_everything_up(h: HistoryBuilder, way: str) -> None:
    h.protocol = {"wrong": "consumer", "eager": "eager"}.get(way, "")
    a, b = members(h)
    for generation, at in ((1, 1), (2, 5)):
        h.round(at, (a, [0]), (b, [1]), generation=generation)
        a.assigned(at + 0.1, reported=False, generation=generation)
        a.revoked(at + 2, reported=False)


@case(
    ("lost-reported-as-revoked", "UNKNOWN_MEMBER_ID", "", (A,)),
    "lost",
    "an overtaken commit",
    "answered in the callback",
    "of an earlier interval",
    "leaving",
)
def fenced_and_told_revoked(h: HistoryBuilder, way: str) -> None:
    a, _ = members(h)
    a.assigned(1)
    if way == "of an earlier interval":
        a.commit(3, 2, outcome="fail", error="UNKNOWN_MEMBER_ID")
        a.lost(3)
        a.assigned(4)
    else:
        error = "ILLEGAL_GENERATION" if way == "an overtaken commit" else "UNKNOWN_MEMBER_ID"
        a.commit(3, 5.001 if way == "answered in the callback" else 4.5, outcome="fail", error=error)
    if way == "lost":
        a.lost(5)
    else:
        a.revoked(5, took=0.1)
    if way == "leaving":
        a.close(6)


@case(("lost-reported-as-revoked", "UNKNOWN_MEMBER_ID", "", (A,)), "what it had before", "of another member")
def fenced_and_told_revoked_before_it_got_others_and_left(h: HistoryBuilder, way: str) -> None:
    a, b = members(h)
    a.assigned(1)
    if way == "what it had before":
        a.assigned(2, tp=1)
        a.revoked(2.5, tp=1)
    a.commit(3, 4.5, outcome="fail", error="UNKNOWN_MEMBER_ID")
    a.revoked(5, took=0.1)
    if way != "what it had before":
        (b if way == "of another member" else a).assigned(6, tp=1)
        a.revoked(7, tp=1)
    a.close(8)


# Callbacks beside the coordinator's log.


@case(
    ("assignment-mismatch", "", "", (A,)),
    "told",
    "no heartbeat",
    "an early heartbeat",
    "a late heartbeat",
    "an old generation",
    "refused",
    "a round before",
    "a callback before",
    "a fault before",
    "not healed",
    "host stood still",
    "a slow program",
    "a commit unanswered",
    "ended",
    "no drain",
    "another's id",
)
def given_and_never_told(h: HistoryBuilder, way: str) -> None:
    """Partition 1 is A's by the coordinator's log, from 20 s before the drain ends, at 40 s."""
    h.phases["drain"] = (20.1, 40.0)
    a, b = members(h)
    h.round(1, (a, [0]), (b, []), generation=1)
    a.assigned(1.1, reported=False)
    if way != "another's id":
        h.round(20, (a, [0, 1]), (b, []), generation=2)
    else:
        h.round(20, (a, [0]), (b, []), (unknown(h), [1]), generation=2)
    if way == "told":
        a.assigned(20.1, 1, reported=False)
    if way == "a round before":
        h.round(37, (a, [0, 1]), (b, []), generation=3)
        a.heartbeat(37.5, generation=3)
    if way == "a callback before":
        b.assigned(37, reported=False)
    if way == "a fault before":
        h.fault("kill", 37, step=1)
    if way == "not healed":
        h.fault("black_hole", 5, 9, step=1, healed=False)
    if way == "host stood still":
        h.stall(36, 37)
    if way == "a slow program":
        h.workload = {"batch": 100, "handler_ms": 10}
    if way == "a commit unanswered":
        a.commit(3, 30, outcome=None)
    if way != "no heartbeat":
        generation = 1 if way == "an old generation" else 2
        at = {"an early heartbeat": 35.9, "a late heartbeat": 39.1}.get(way, 38.5)
        a.heartbeat(at, generation=generation, error="REBALANCE_IN_PROGRESS" if way == "refused" else None)
    if way == "no drain":
        h.phases["drain"] = (20.1, None)
    if way == "ended":
        a.die(30)
    else:
        a.close(41)
    b.close(41.1)


def unknown(h: HistoryBuilder) -> Any:
    """A member id of a process that is not ours."""

    @dataclass
    class Other:
        member_id: str = "somebody"

    return Other()


@case(("duplicate-instance", "", "", (A, B)), "the older stops", "refused", "other ids", "no ids", "uncertain", "ended")
def two_processes_with_one_static_id(h: HistoryBuilder, way: str) -> None:
    ids = {"other ids": ("one", "two"), "no ids": (None, None)}.get(way, ("one", "one"))
    a, b = h.member(0, instance_id=ids[0]), h.member(1, instance_id=ids[1], at=2)
    a.assigned(1)
    b.assigned(3, 1)
    a.heartbeat(2.5)
    b.heartbeat(3)
    if way != "the older stops":
        a.heartbeat(3.9 if way == "uncertain" else 4.5, error="FENCED_INSTANCE_ID" if way == "refused" else None)
    b.heartbeat(5)
    if way == "ended":
        a.die(2.9)


# Getting on.


@case(
    ("orphaned-partition", "", "", ()),
    "given",
    "not so long",
    "promised within longer",
    "no leader=no leader",
    "made later",
    "host stood still",
    "owned by callbacks",
    "nobody lives",
    "everybody frozen",
    "no drain",
)
def a_partition_for_nobody(h: HistoryBuilder, way: str) -> None:
    """Partition 1 is nobody's in the quiet window, from 20.1 s to 60 s; partition 0 is A's."""
    h.phases["drain"] = (20.1, None if way == "no drain" else 60.0)
    h.fault("kill", 5, members=("member-9.1",))
    a, b = members(h)
    a.assigned(1)
    if way == "given":
        h.gives(b, 1, 2)
    if way == "not so long":
        b.assigned(45, 1)
    if way == "promised within longer":
        h.promises.append({"type": "progress", "within_s": 45})
    h.leader(1, 10 if way == "made later" else 0.1, tp=1)
    if way == "no leader":
        h.leader(-1, 30, tp=1)
    if way == "host stood still":
        h.stall(30, 31)
    if way == "owned by callbacks":
        b.assigned(30, 1, reported=False)
    if way == "nobody lives":
        a.die(40)
        b.die(30)
    if way == "everybody frozen":
        h.fault("pause", 25, 26, step=1, members=(A, B))


@case(
    ("never-stable", "", "", (A, B)),
    "a pause",
    "not so long",
    "promised within longer",
    "a dead one is let go",
    "another starts",
    "host stood still",
)
def rounds_without_end(h: HistoryBuilder, way: str) -> None:
    """A round every 4 s in the quiet window."""
    h.phases["drain"] = (20.1, 45.0 if way == "not so long" else 60.0)
    h.fault("kill", 5, members=("member-9.1",))
    a, b = members(h)
    dead = h.member(2)
    dead.die(6)
    if way == "promised within longer":
        h.promises.append({"type": "progress", "within_s": 45})
    for n, at in enumerate(range(8, 45 if way == "not so long" else 60, 4)):
        there = [(dead, [])] if way == "a dead one is let go" and at < 40 else []
        if way != "a pause" or at != 40:
            h.round(at, (a, [n % 2]), (b, [1 - n % 2]), *there, generation=n + 1)
    if way == "another starts":
        h.member(3, at=40)
    for n, member in enumerate((a, b)):  # as real ones do: within the drain, when it is over
        member.close((45 if way == "not so long" else 60) - 0.5 + n / 10)
    if way == "host stood still":
        h.stall(40, 41)


@case(
    ("dead-member", "", "", (A,)),
    "closed",
    "killed",
    "a fault's",
    "lives",
    "while the group forms",
)
def a_member_ends_by_itself(h: HistoryBuilder, way: str) -> None:
    a, _ = members(h)
    a.assigned(1)
    if way == "while the group forms":
        h.phases["warm-up"] = (0.0, 6.0)
    if way == "a fault's":
        h.fault("bounce", 4, members=(A,))
    if way == "closed":
        a.close(5)
    elif way != "lives":
        a.die(5, "killed" if way == "killed" else "crashed")


@case(("dead-member", "SIGKILL", "", (A,)), "the harness's own", "a fault of an earlier life=-")
def a_member_that_the_kernel_kills(h: HistoryBuilder, way: str) -> None:
    a, _ = members(h)
    a.assigned(1)
    a.die(5, "killed" if way == "the harness's own" else "crashed", -9)
    if way != "wrong":
        h.fault("kill", 0.5, members=("member-0.0",))


@case(
    ("dead-member", "FENCED_INSTANCE_ID", "", (A,)),
    "stopped by a fault",
    "a fault before",
    "a fault after it=-",
)
def a_client_gives_up(h: HistoryBuilder, way: str) -> None:
    a, _ = members(h)
    a.assigned(1)
    a.gives_up("FENCED_INSTANCE_ID", 3)
    a.die(4, "crashed")
    if way == "a fault before":  # which ended the life before this one
        h.fault("kill", 0.5, members=("member-0.0",))
    elif way != "wrong":
        h.fault("bounce", 3.5 if way == "stopped by a fault" else 5, members=(A,))


@case(
    ("hung-shutdown", "", "", (A,)),
    "just in time",
    "never asked",
    "frozen meanwhile",
    "frozen too late=-",
    "the host stood still",
    "a broker is away=another fault",
    "a broker was away just before=another fault",
    "a broker was away long before=-",
    "a broker is away too late=-",
    "it is cut off=another fault",
    "its former life was cut off=another fault",
    "another member is cut off=-",
    "the coordinator moves=another fault",
    "a broker is asked to end=another fault",
    "it never reported anything",
)
def a_member_that_does_not_end(h: HistoryBuilder, way: str) -> None:
    a, _ = members(h)
    a.assigned(1)
    h.fault("bounce", 17.4, members=(A,))
    brokers = {
        "a broker is away": (19, 21),
        "a broker was away just before": (3, 4),
        "a broker was away long before": (1.2, 1.3),
        "a broker is away too late": (36, 37),
    }
    if way in brokers:
        h.fault("kill", *brokers[way], step=1, brokers=(1,))
    cut = {"it is cut off": A, "its former life was cut off": "member-0.0", "another member is cut off": B}
    if way in cut:
        h.fault("black_hole", 16, 21, step=1, members=(cut[way],))
    if way.startswith("frozen"):
        h.fault("pause", *((36, 37) if way == "frozen too late" else (19, 21)), step=1, members=(A,))
    if way == "the host stood still":
        h.stall(22, 23)
    if way == "the coordinator moves":
        h.fault("move_coordinator", 19, step=1)
    if way == "a broker is asked to end":
        h.fault("bounce", 19, 21, step=1, brokers=(1,))
    if way == "it never reported anything":
        h.ended(C, 40, "killed", -9, asked=17.5)
        return
    a.die(32.4 if way == "just in time" else 40, exit_code=-9, asked=None if way == "never asked" else 17.5)


@case(("hung-shutdown", "after its client was closed", "", (A,)), "in time")
def a_program_that_lives_on_without_its_client(h: HistoryBuilder, way: str) -> None:
    a, _ = members(h)
    a.assigned(1)
    a.close(4, reaped=10 if way == "in time" else 19, asked=3)


ALL = [
    pytest.param(c, way, form, id=f"{c.tell.__name__}-{way}-{form}")
    for c in CASES
    for way in c.ways
    for form in c.forms
]


@pytest.mark.parametrize(("story", "way", "form"), ALL)
def test_each_way_of_a_story_shows_exactly_this(tmp_path: Path, story: Case, way: str, form: str) -> None:
    expected = [(kind, cause, excuse.strip("-"), who) for kind, cause, excuse, who in story.ways[way]]
    shown = told(story.build(tmp_path, way, form))
    kind = story.ways["wrong"][0][0]
    assert [t for t in shown if t[0] == kind] == expected
    if way == "wrong":
        assert shown == expected


@pytest.mark.parametrize(
    ("listed", "asked", "validity"),
    [(True, True, Validity.INVALID), (False, True, Validity.UNKNOWN), (True, False, Validity.VALID)],
)
def test_the_order_of_effects_is_judged_if_it_is_promised_and_known(
    tmp_path: Path, listed: bool, asked: bool, validity: Validity
) -> None:
    h = HistoryBuilder(tmp_path, 5, promises=[{"type": "effects", "in_order": asked}])
    members(h)
    h.write(5, 1, key=6)
    h.workload = {"type": "own_program", "effects_in_order": listed}
    for seq, offset in enumerate((0, 1, 2, 4, 3)):
        h.members[0].effect(offset, 2, seq=seq, tp=1, key=6)
    check = next(check for check in judge(h.seal(), oracle.detect).checks if check.check == "effects")
    assert check.validity is validity, check.reason
    assert validity is not Validity.UNKNOWN or "set effects_in_order of the workload" in check.reason


def test_every_kind_has_a_history_and_a_near_miss() -> None:
    shown = {ways[0][0] for c in CASES for ways in c.ways.values() if ways}
    assert shown == OWN
    assert {c.ways["wrong"][0][0] for c in CASES if [] in c.ways.values()} == OWN


WRONG = [pytest.param(c, form, id=f"{c.tell.__name__}-{form}") for c in CASES for form in c.forms]


@pytest.mark.parametrize(("story", "form"), WRONG)
def test_every_finder_performs_these_rules(tmp_path: Path, story: Case, form: str) -> None:
    run = story.build(tmp_path, "wrong", form)
    tables, anomalies = found(run)
    assert [a for a in oracle.detect(run, tables, Bounds())[0] if a.kind in OWN] == anomalies
    sentence = str(example(tables, anomalies[0])["sentence"])
    assert all(name in sentence for name in anomalies[0].members)
    assert not re.search(r"an unknown|unknown members|--1|  |\(\)|-\d+\.\d+ s|\.\.", sentence), sentence
    print(sentence)
