"""Members that tell nothing: what is judged of them by what brokers record, and that nothing else is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers import (
    Commits,
    Delivery,
    Effects,
    Order,
    Outside,
    Ownership,
    Parked,
    Progress,
    Rebalances,
    Recovers,
    Requeued,
    oracle,
)
from fencepost.checkers.counts import Bounds
from fencepost.checkers.explanations import example
from fencepost.checkers.judge import judge
from fencepost.checkers.spark.detector import find_here
from fencepost.checkers.tables import load
from fencepost.checkers.tables.rows import NS
from fencepost.model import Severity, Validity, Verdict
from fencepost.model.findings import FINDINGS
from fencepost.reports import folder as folders
from fencepost.reports import run_timeline
from history import test_commit_kinds, test_coordination, test_kinds
from history.builder import HistoryBuilder, MemberTeller
from history.test_standing_still import RECOVERS, Told, shown

A, B = "member-0.1", "member-1.1"
OUTSIDE = {"type": "outside"}
JUDGED = {*Outside.kinds, "unbalanced", "not-sticky", "long-pause", "rebalance-on-static-bounce"}
BLUR_S = 0.0005
CASES: list[test_coordination.Case] = []


def told(h: HistoryBuilder) -> tuple[MemberTeller, MemberTeller]:
    """Ten records of the first partition and four of the other one; the quiet window is from 1 s to 40 s."""
    h.write(10)
    h.write(4, 1)
    a, b = h.member(0), h.member(1)
    for member, tp in ((a, 0), (b, 1)):
        member.assigned(0.9, tp)
        member.asks_to_commit(0, 0.91, tp)  # by which its id is known
    b.commit(4, 2, 1)
    return a, b


def leave(*members: MemberTeller, at: float = 39) -> None:
    for member in members:
        member.close(at)


# What stands still, by commits.

STANDS: Mapping[str, Sequence[Told]] = {
    "wrong": [("", "", (A,), 0, 6, 2.0015, 16.0005)],
    "in time": [],
    "within what nobody knows": [],
    "just longer": [("", "", (A,), 0, 6, 2.0015, 12.0025)],
    "the same again": [("", "", (A,), 0, 6, 2.0015, 16.0005)],
    "back and forth": [("", "", (A,), 0, 6, 2.0015, 16.0005)],
    "back and forth, declared": [],
    "nothing waits": [],
    "what waits came late": [],
    "never": [("", "", (A,), 0, 6, 2.0015, 40.0)],
    "nothing ever": [("", "", (A,), 0, 0, 1.0, 40.0)],
    "given away": [("", "", (B,), 0, 6, 2.0015, 16.0005)],
    "of nobody": [("unowned", "", (), 0, 6, 2.0015, 16.0005)],
    "no leader": [("", "no leader", (A,), 0, 6, 2.0015, 16.0005)],
    "no drain": [],
}


@pytest.mark.parametrize("classic", [False, True], ids=["consumer", "classic"])
@pytest.mark.parametrize("way", STANDS)
def test_a_partition_stands_still_whose_committed_offset_does(tmp_path: Path, way: str, classic: bool) -> None:
    h = HistoryBuilder(tmp_path, 2, classic=classic, black_box=True)
    h.phases["drain"] = (20.1, None if way == "no drain" else 40.0)
    a, b = told(h)
    if way != "nothing ever":
        a.commit(10 if way == "nothing waits" else 6, 2)
    if way == "the same again":
        a.commit(6, 9)
    if way == "back and forth, declared":
        h.act("reset-offsets", 7, 0)
    if way.startswith("back and forth"):
        a.commit(2, 8)
        a.commit(6, 9)
    if way == "what waits came late":
        h.produced[6:10] = [p._replace(acked_ns=p.acked_ns + 6 * NS) for p in h.produced[6:10]]
    if way == "given away":
        h.gives(b, 0, 5)
    if way == "of nobody":
        h.takes(a, 0, 5)
    if way == "no leader":
        h.leader(-1, 5)
    late = {"in time": 9, "within what nobody knows": 12.001, "just longer": 12.002}
    if way not in ("never", "nothing ever"):
        a.commit(10, late.get(way, 16))
    leave(a, b)
    assert shown(h, "stuck-partition") == [(*t[:5], *(round(s, 3) for s in t[5:])) for t in STANDS[way]]


@pytest.mark.parametrize(
    ("commits", "slow"),
    [
        ([(6, 3), (10, 16)], [("step 0 (pause)", "", (A,), 0, 6, 10.01, 16.0005)]),
        ([(6, 3), (10, 15)], []),
        ([(6, 3), (8, 11), (10, 18)], []),  # it stood still later
        ([(10, 3)], []),
        ([(6, 10.009), (10, 16)], []),  # nobody knows whether that was after it
    ],
)
def test_a_recovery_is_slow_by_commits(tmp_path: Path, commits: Sequence[tuple[int, float]], slow: list[Told]) -> None:
    h = HistoryBuilder(tmp_path, 2, black_box=True)
    h.phases = {"warm-up": (0.0, 1.0), "heal": (20.0, 20.1), "drain": (20.2, 40.0)}
    a, b = told(h)
    h.fault("pause", 4, 10, members=("member-9.1",))
    for offset, at in commits:
        a.commit(offset, at)
    leave(a, b)
    assert shown(h, "slow-recovery", RECOVERS) == [(*t[:5], *(round(s, 3) for s in t[5:])) for t in slow]


BESIDE: Told = ("step 0 (pause)", "", (A,), 0, 6, 4.0, 16.0)
BESIDES: Mapping[str, Sequence[Told]] = {
    "wrong": [BESIDE],
    "in time": [],
    "eager": [],
    "hit itself": [],
    "given away and back": [],
    "given to nobody": [],
    "asked to end": [],
    "ended": [],
    "given to it again": [BESIDE],
    "of somebody unknown": [],
}


@pytest.mark.parametrize("way", BESIDES)
def test_a_partition_stands_still_beside_a_fault_by_commits(tmp_path: Path, way: str) -> None:
    h = HistoryBuilder(tmp_path, 2, protocol="eager" if way == "eager" else "cooperative", classic=True, black_box=True)
    h.phases = {"warm-up": (0.0, 1.0), "heal": (20.0, 20.1), "drain": (20.2, 40.0)}
    a, b = told(h)
    a.commit(6, 2)
    h.fault("pause", 4, 19, members=(A if way == "hit itself" else b.name,))
    if way == "given away and back":  # each time for not longer than the bound
        h.gives(b, 0, 9)
        h.gives(a, 0, 9.5)
    if way == "given to it again":
        h.gives(a, 0, 9)
    if way == "given to nobody":
        h.takes(a, 0, 9)
    if way in ("asked to end", "ended"):
        h.ended(A, 15.9 if way == "asked to end" else 9, "closed", asked=9 if way == "asked to end" else None)
    a.commit(10, 13.9 if way == "in time" else 16)
    if way == "of somebody unknown":
        h.requests = [line for line in h.requests if line["member_id"] != a.member_id]
    leave(*((b,) if way in ("asked to end", "ended") else (a, b)))
    assert shown(h, "collateral-stall") == BESIDES[way]


@pytest.mark.parametrize(("last", "owner"), [("its first", (A,)), ("another one", (B,)), ("nobody known", ())])
def test_what_is_left_is_named_with_its_last_owner_by_the_log(
    tmp_path: Path, last: str, owner: tuple[str, ...]
) -> None:
    h = HistoryBuilder(tmp_path, 2, black_box=True)
    a, b = told(h)
    a.commit(6, 2)
    if last == "another one":
        h.gives(b, 0, 5)
    if last == "nobody known":
        h.requests = [line for line in h.requests if line["member_id"] != a.member_id]
    leave(a, b)
    (left,) = (a for a in found(h.seal()) if a.kind == "unconsumed")
    assert (left.members, left.first_offset, left.last_offset, left.count) == (owner, 6, 9, 4)


def found(run: Path, bounds: Bounds = Bounds()) -> list[Any]:  # noqa: B008 (frozen)
    """What the oracle finds, and the kernel too, with whole partitions and with ranges of three records."""
    tables = load(run)
    seen, facts = oracle.detect(run, tables, bounds)
    assert not facts.failed
    for longest in ((), (3,)):
        assert find_here(run, tables, bounds, *longest)[0] == seen
    return seen


# Who wrote a commit, and who had its partition.


@pytest.mark.parametrize(("before", "kind"), [(True, "zombie-commit"), (False, "foreign-commit")])
def test_a_former_owner_is_known_by_the_coordinators_log(tmp_path: Path, before: bool, kind: str) -> None:
    h = HistoryBuilder(tmp_path, 2, black_box=True)
    a, b = told(h)
    a.commit(6, 2)
    if before:
        h.gives(b, 0, 3)
        h.gives(a, 0, 4)
    b.commit(8, 5)
    a.commit(10, 6)
    leave(a, b)
    foreign = [one for one in found(h.seal()) if one.kind.endswith("-commit")]
    assert [(one.kind, one.members, one.first_offset) for one in foreign] == [(kind, (B, A), 8)]


@pytest.mark.parametrize("named", [True, False])
def test_a_static_id_is_known_by_what_brokers_were_told(tmp_path: Path, named: bool) -> None:
    h = HistoryBuilder(tmp_path, 2, black_box=True)
    a, b = told(h)
    for at in (3, 8, 9):
        (b if at == 3 else a).heartbeat(at)
    for request in h.requests:
        request["instance_id"] = "one" if named else None
    a.commit(10, 2)
    leave(a, b)
    run = h.seal()
    lives = load(run).lives
    assert {life.instance_id for life in lives.values()} == ({"one"} if named else {""})


# For how long a partition is nobody's.


@pytest.mark.parametrize(
    ("way", "pauses"),
    [
        ("wrong", [("", (A, B), 5.0005, 11.9995)]),
        ("soon", []),
        ("to the same", [("", (A,), 5.0005, 11.9995)]),
        ("never again", []),
        ("as it is over", []),
        ("nobody could", [("nobody could", (A, B), 5.0005, 11.9995)]),
    ],
)
def test_a_partition_is_nobodys_by_the_coordinators_log(tmp_path: Path, way: str, pauses: list[Any]) -> None:
    h = HistoryBuilder(tmp_path, 2, black_box=True, promises=[{"type": "rebalances", "pause_within_s": 5}])
    a, b = told(h)
    a.commit(10, 2)
    h.takes(a, 0, 5)
    if way != "never again":
        h.gives(a if way == "to the same" else b, 0, 10 if way == "soon" else 12)
    if way == "nobody could":
        h.stall(6, 11)
    if way == "as it is over":
        h.phases["drain"] = (11.0, 40.0)
    leave(a, b, at=11.5 if way == "as it is over" else 39)
    assert pauses_of(h) == [(0, *pause) for pause in pauses]


@pytest.mark.parametrize(
    ("way", "pauses"),
    [
        ("wrong", [(0, "", (A, B), 5.0, 11.9995)]),
        ("cooperative", []),
        ("soon", []),
        ("kept", [(0, "", (A,), 5.0, 11.9995)]),
        ("joins again", [(0, "", (A, B), 5.0, 11.9995)]),
        ("refused", []),
        ("both", [(0, "", (A, B), 5.0, 11.9995), (1, "", (B,), 5.5, 11.9995)]),
        ("generations between", []),
    ],
)
def test_an_eager_member_has_nothing_while_it_joins(tmp_path: Path, way: str, pauses: list[Any]) -> None:
    protocol = "cooperative" if way == "cooperative" else "eager"
    options = {"promises": [{"type": "rebalances", "pause_within_s": 5}], "protocol": protocol, "classic": True}
    h = HistoryBuilder(tmp_path, 2, black_box=True, **options)
    a, b = told(h)
    a.commit(10, 2)
    h.join(a, 5)
    if way == "refused":
        h.requests[-1]["error"] = "MEMBER_ID_REQUIRED"
    if way == "joins again":
        h.join(a, 9)
    if way == "both":
        h.join(b, 5.5)
    if way == "generations between":
        h.round(9, (a, [0]), (b, [1]), generation=9)
        h.join(a, 9.5)
    new = ((a, [0]), (b, [1])) if way == "kept" else ((a, []), (b, [0, 1]))
    h.round(9 if way == "soon" else 12, *new, generation=10)
    leave(a, b)
    assert pauses_of(h) == pauses


@pytest.mark.parametrize(
    ("part", "validity"), [("", Validity.INVALID), ("offsets", Validity.UNKNOWN), ("requests", Validity.UNKNOWN)]
)
def test_a_pause_by_the_log_rests_on_the_log(tmp_path: Path, part: str, validity: Validity) -> None:
    h = HistoryBuilder(tmp_path, 2, black_box=True, promises=[{"type": "rebalances", "pause_within_s": 5}])
    a, b = told(h)
    h.round(3, (a, [0]), (b, [1]), generation=2)
    a.commit(10, 2)
    h.takes(a, 0, 9)
    h.gives(b, 0, 17)
    leave(a, b)
    run = h.seal()
    if part:
        with (run / "history" / "coordinator" / f"{part}.jsonl").open("a") as lines:
            lines.write("torn")
    assert judge(run, oracle.detect).validity is validity


def pauses_of(h: HistoryBuilder) -> list[Any]:
    run = h.seal()
    origin_ns = load(run).origin_ns
    found_ = [one for one in found(run) if one.kind == "long-pause"]
    assert all("no member owned" in str(example(load(run), one)["sentence"]).lower() for one in found_)
    times = [(round((a.from_ns - origin_ns) / NS, 4), round((a.to_ns - origin_ns) / NS, 4)) for a in found_]
    return [(a.partition, a.excuse, a.members, *at) for a, at in zip(found_, times, strict=True)]


# Who is soon back under its name.


@pytest.mark.parametrize("classic", [False, True], ids=["consumer", "classic"])
@pytest.mark.parametrize(
    ("way", "times"),
    [
        ("wrong", (12.0, 12.5005)),
        ("killed", (12.1, 12.5005)),
        ("no rebalance", None),
        ("late", None),
        ("dynamic", None),
        ("before it was asked", None),
        ("never back", None),
    ],
)
def test_a_static_member_is_soon_back(
    tmp_path: Path, way: str, times: tuple[float, float] | None, classic: bool
) -> None:
    config = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
    promises = [{"type": "rebalances", "static": True}]
    h = HistoryBuilder(tmp_path, 2, black_box=True, classic=classic, promises=promises, config=config)
    a, b = h.member(0), h.member(1)
    h.round(1, (a, [0]), (b, [1]), generation=1)
    if way == "before it was asked":
        h.round(11.9, (a, [0]), (b, [1]), generation=2)
    h.ended(b.name, 12.1, "killed" if way == "killed" else "closed", asked=None if way == "killed" else 12)
    again, back = h.member(1, at=12.2), 17.6 if way == "late" else 12.5
    if way in ("no rebalance", "before it was asked"):  # all that is new of it is its id
        h.round(back, (a, [0]), (again, [1]), generation=2 if way == "before it was asked" else 1)
    elif way != "never back":
        h.round(back, (a, [0]), (again, [1]), generation=2)
    h.round(20, (a, [0, 1]), generation=5)
    for life, at in ((a, 2), (b, 3), (again, 18)):
        life.heartbeat(at)
        h.requests[-1] |= {"client_id": life.name, "slot": int(life.name[7])}
        h.requests[-1]["instance_id"] = None if way == "dynamic" or life is a else "one"
    h.phases["drain"] = (40.0, 41.0)
    leave(a, again, at=41)
    run = h.seal()
    tables = load(run)
    seen = [one for one in found(run) if one.kind == "rebalance-on-static-bounce"]
    assert [one.members for one in seen] == ([(B, "member-1.2")] if times else [])
    for one in seen:
        assert tuple(round((at_ns - tables.origin_ns) / NS, 4) for at_ns in (one.from_ns, one.to_ns)) == times


# When it is over.


@pytest.mark.parametrize("asked", [True, False])
def test_a_group_may_do_as_it_likes_once_it_was_asked_to_end(tmp_path: Path, asked: bool) -> None:
    h = HistoryBuilder(tmp_path, 2, classic=True, black_box=True, promises=[{"type": "outside", "within_s": 3}])
    a, b = told(h)
    a.commit(10, 2)
    h.phases = {"warm-up": (0.0, 1.0), "drain": (3.0, 40.0)}
    for n in range(10):
        h.round(3 + 4 * n, (a, [0]), (b, [1]), generation=3 + n)
    leave(a, b, at=3.5 if asked else 39)
    assert ("never-stable" in {one.kind for one in found(h.seal())}) is not asked


def test_what_stands_still_was_not_committed(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path, 2, black_box=True)
    a, b = told(h)
    h.phases["drain"] = (20.1, 40.0)
    a.commit(6, 2)
    a.commit(10, 16)
    leave(a, b)
    run = h.seal()
    (stuck,) = [one for one in found(run, Bounds(stuck_ns=10 * NS)) if one.kind == "stuck-partition"]
    assert "from offset 6 on, and none was committed while" in str(example(load(run), stuck)["sentence"])


# What a verdict makes of it.


def verdict_of(h: HistoryBuilder) -> Verdict:
    run = h.seal()
    verdicts = [judge(run, finder) for finder in (oracle.detect, find_here)]
    assert verdicts[0] == verdicts[1]
    return verdicts[0]


@pytest.mark.parametrize(
    ("promise", "unknown"),
    [
        ({"type": "outside"}, ()),
        ({"type": "rebalances", "sticky": True}, ()),
        ({"type": "rebalances", "pause_within_s": 9}, ()),
        ({"type": "rebalances", "static": True}, ()),
        ({"type": "delivery"}, ("unseen", "phantom", "redelivery-loop")),
        ({"type": "commits"}, ("commit-ahead", "silent-commit-failure")),
        ({"type": "ownership"}, ("assignment-overlap", "processing-after-revocation")),
        ({"type": "progress"}, ("stuck-member",)),
        ({"type": "order"}, ("key-order",)),
    ],
)
def test_a_promise_that_speaks_of_more_is_unknown_and_says_of_what(
    tmp_path: Path, promise: Mapping[str, Any], unknown: Sequence[str]
) -> None:
    h = HistoryBuilder(tmp_path, 2, black_box=True, promises=[promise])
    a, b = told(h)
    h.round(3, (a, [0]), (b, [1]), generation=2)
    a.commit(10, 2)
    leave(a, b)
    verdict = verdict_of(h)
    (check,) = (check for check in verdict.checks if check.check == promise["type"])
    assert check.validity is (Validity.UNKNOWN if unknown else Validity.VALID), check.reason
    assert not check.findings
    assert all(kind in check.reason for kind in unknown)
    assert ("a black box does not report" in check.reason) is bool(unknown)
    assert {c.validity for c in verdict.checks if c is not check} == {Validity.VALID}
    assert {*verdict.unjudged} == {kind.name for kind in FINDINGS.values() if kind.unreported}
    assert Verdict.from_json(verdict.to_json()) == verdict


@pytest.mark.parametrize("promise", ["outside", "commits"])
def test_what_is_certainly_broken_is_invalid_whatever_else_is_unknown(tmp_path: Path, promise: str) -> None:
    h = HistoryBuilder(tmp_path, 2, black_box=True, promises=[{"type": promise}])
    a, b = told(h)
    a.commit(6, 2)
    b.commit(4, 3)
    a.commit(10, 4)
    leave(a, b)
    verdict = verdict_of(h)
    assert verdict.validity is Validity.INVALID
    (check,) = (check for check in verdict.checks if check.check == promise)
    broken = {f.kind for f in check.findings if f.severity is Severity.VIOLATION}
    assert broken == {"commit-regression", "foreign-commit"}


@pytest.mark.parametrize("lacking", ["commits", "drain", "offsets", "requests", "produced"])
def test_too_little_is_never_valid(tmp_path: Path, lacking: str) -> None:
    h = HistoryBuilder(tmp_path, 2, black_box=True, promises=[OUTSIDE])
    a, b = told(h)
    if lacking == "commits":
        h.coordinator = [line for line in h.coordinator if line["type"] != "commit"]
    else:
        a.commit(10, 2)
    if lacking == "drain":
        h.phases["drain"] = (20.1, None)
    leave(a, b)
    if lacking in ("offsets", "requests", "produced"):
        run = h.seal(
            [f"history/{'' if lacking == 'produced' else 'coordinator/'}{lacking}" + ".jsonl" * (lacking != "produced")]
        )
    else:
        run = h.seal()
    verdict = judge(run, oracle.detect)
    assert verdict.validity is (Validity.INVALID if lacking == "commits" else Validity.UNKNOWN)
    if lacking == "commits":
        assert {f.kind for c in verdict.checks for f in c.findings} == {"unconsumed", "stuck-partition"}


def test_where_members_tell_nothing_is_left_out(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path, 2, promises=[{"type": "progress"}])
    a, b = told(h)
    a.process(range(10), 2)
    b.process(range(4), 2, 1)
    a.commit(10, 3)
    leave(a, b)
    assert judge(h.seal(), oracle.detect).unjudged == {}


# Every other story, told by members that tell nothing.

Build = Callable[[Path], Path]


def stories() -> dict[str, Build]:
    def of_kind(story: test_kinds.Story, partitions: int, classic: bool) -> Build:
        def build(folder: Path) -> Path:
            h = HistoryBuilder(folder, partitions, classic=classic, black_box=True)
            story(h, True)
            return h.seal()

        return build

    def of_group(case: test_coordination.Case) -> Build:
        silent = replace(case, options={**case.options, "black_box": True})
        return lambda folder: silent.build(folder, "wrong", case.forms[0])

    both = [(story, 1) for story in test_kinds.CASES], [(story, 2) for story in test_commit_kinds.CASES]
    found = {f"{s.__name__}-{c}": of_kind(s, n, c) for those in both for s, n in those for c in (False, True)}
    return {**found, **{case.tell.__name__: of_group(case) for case in test_coordination.CASES}}


@pytest.mark.slow
@pytest.mark.parametrize("story", stories())
def test_both_judges_agree_of_every_story_and_nobody_is_accused_of_what_nobody_saw(tmp_path: Path, story: str) -> None:
    run = stories()[story](tmp_path)
    seen = found(run, Bounds(recovers_ns=5 * NS))
    tables = load(run)
    assert all(example(tables, anomaly)["sentence"] for anomaly in seen if anomaly.kind in JUDGED)
    verdict = judge(run, oracle.detect)
    assert {f.kind for c in verdict.checks for f in c.findings} <= {*JUDGED, "damaged-file", "unproven-fault"}


def test_every_kind_is_either_seen_by_brokers_or_has_its_reason() -> None:
    promises = (Commits, Delivery, Effects, Order, Outside, Ownership, Parked, Progress, Rebalances, Recovers, Requeued)
    kinds = {kind for promise in promises for kind in promise.kinds}
    unseen = {kind.name for kind in FINDINGS.values() if kind.unreported}
    assert kinds == JUDGED | unseen
    assert not JUDGED & unseen


# Who had what, for the report.


@pytest.mark.parametrize("classic", [False, True], ids=["consumer", "classic"])
def test_the_report_draws_who_had_what_by_the_log(tmp_path: Path, classic: bool) -> None:
    h = HistoryBuilder(tmp_path, 2, classic=classic, black_box=True)
    a, b = told(h)
    h.gives(a, 0, 3)  # which it had: that is no change
    h.gives(b, 0, 5)
    leave(a)
    run = h.seal()
    verdict = judge(run, oracle.detect)
    assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))).owners == verdict.owners
    (run / "verdict.json").write_text(json.dumps(verdict.to_json()))
    folder = folders.read(run)
    drawn = [
        (i.partition, i.owner, *seconds(folder, i.begin_ns, i.assigned_ns, i.given_up_ns, i.end_ns), i.how)
        for i in run_timeline.build(folder).intervals
    ]
    assert drawn == [
        ("orders-0", A, 0.8895, 0.8905, 4.9985, 4.9985, "assigned to another member or to none"),
        ("orders-1", B, 0.8895, 0.8905, 40.0, 40.0, "open"),
        ("orders-0", B, 4.9995, 5.0005, 40.0, 40.0, "open"),
    ]


def seconds(folder: folders.Folder, *times: int) -> list[float]:
    return [round((at - folder.origin_ns) / NS, 4) for at in times]


def test_members_that_tell_what_they_own_are_drawn_by_that(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path, 1)
    h.member(0).assigned(1)
    assert "owners" not in judge(h.seal(), oracle.detect).to_json()
