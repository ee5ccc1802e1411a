"""What a reader sees first: one clear sentence for each kind (who, which partition, which offsets, when, how often)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fencepost.checkers import Commits, oracle
from fencepost.checkers.facts import Bounds
from fencepost.checkers.sentences import SENTENCES, example
from fencepost.checkers.tables import load
from fencepost.model import Anomaly
from history.builder import HistoryBuilder, ns
from history.test_commit_kinds import CASES as COMMIT_CASES
from history.test_kinds import CASES

A, B = "member-0.1", "member-1.1"


def told(folder: Path, anomaly: Anomaly) -> str:
    return str(example(load(HistoryBuilder(folder).seal()), anomaly)["sentence"])


def of(kind: str, *members: str, count: int = 1, to: float = 3.5, **fields: str) -> Anomaly:
    """An anomaly of orders-0: offset 4, or so many from offset 4 to 9, from 3 s on."""
    last = 4 if count == 1 else 9
    return Anomaly(
        kind, "orders", 0, members, fields.get("cause", ""), fields.get("excuse", ""), 4, last, ns(3), ns(to), count
    )


@pytest.mark.parametrize(
    ("anomaly", "sentence"),
    [
        (
            of("rewind", A, to=3, cause="seek"),
            "member-0.1 was given offset 4 of orders-0 again inside one assignment, at 3.000 s; the program itself had "
            "moved its position back.",
        ),
        (
            of("rewind", A, to=3.0001),
            "member-0.1 was given offset 4 of orders-0 again inside one assignment, at 3.000 s.",
        ),
        (
            of("rewind", A, count=5),
            "member-0.1 was given 5 records of orders-0 (offsets 4 to 9) again inside one assignment, from 3.000 s to "
            "3.500 s.",
        ),
        (
            of("rewind", A, to=3, cause="inside one poll"),
            "member-0.1 was given offset 4 of orders-0 again inside one poll, at 3.000 s.",
        ),
        (
            of("poll-skip", A, cause="inside one poll"),
            "member-0.1 was not given offset 4 of orders-0 and went past it inside one poll, from 3.000 s to 3.500 s.",
        ),
        (
            of("poll-skip", A, cause="seek"),
            "member-0.1 was not given offset 4 of orders-0 and went past it inside one assignment, from 3.000 s to "
            "3.500 s; the program itself had moved its position.",
        ),
        (
            of("lost-write", "producer-0", count=2),
            "2 records of orders-0 (offsets 4 to 9) were acknowledged to producer-0 (from 3.000 s to 3.500 s), but the "
            "log did not hold them at the audit.",
        ),
        (
            of("duplicate-write", "producer-0", count=2),
            "2 records of orders-0 (offsets 4 to 9), by producer-0 (sent from 3.000 s to 3.500 s), were in the log "
            "already, below.",
        ),
        (
            of("nonmonotonic-send", "producer-0", to=3, excuse="producer not idempotent"),
            "Offset 4 of orders-0, by producer-0 (sent at 3.000 s), landed behind what it sent later; its client was "
            "not told to be idempotent.",
        ),
        (
            of("stale-effect", A, B, excuse="not told yet"),
            "member-0.1 finished offset 4 of orders-0 after member-1.1, a later owner, had finished it (from 3.000 s "
            "to 3.500 s); when member-0.1 began it, it had not been told yet that orders-0 was given away.",
        ),
        (
            of("phantom", A, count=2, to=3),
            "2 records of orders-0 (offsets 4 to 9) were delivered to member-0.1 (at 3.000 s), but nobody produced "
            "them and the log did not hold them at the audit.",
        ),
        (
            of("key-order", A, B),
            "member-0.1 began offset 4 of orders-0 at 3.000 s, before an earlier record of the same key was first "
            "finished (by member-1.1, 3.500 s).",
        ),
        (
            of("key-order", A, count=3),
            "member-0.1 began 3 records of orders-0 (offsets 4 to 9), each before an earlier record of its key was "
            "first finished (by member-0.1), from 3.000 s to 3.500 s.",
        ),
        (
            of("redelivery-loop", A, cause="count"),
            "Offset 4 of orders-0 was delivered again and again, more often than any fault explains (from 3.000 s to "
            "3.500 s), the last time to member-0.1.",
        ),
        (
            of("redelivery-below-commit", B, A, to=3),
            "member-1.1 processed offset 4 of orders-0 again (at 3.000 s), although the group had already committed "
            "past it when member-1.1 was told where to start.",
        ),
        (
            of("assignment-overlap", A, B, count=3),
            "member-0.1 and member-1.1 both owned orders-0 3 times, from 3.000 s to 3.500 s.",
        ),
        (
            of("stuck-partition", A, excuse="no leader"),
            "For 0.500 s (from 3.000 s to 3.500 s) records of orders-0 waited, from offset 4 on, and none was "
            "delivered while member-0.1 owned it; it had no leader for a part of that time.",
        ),
        (
            of("unconsumed", count=6),
            "Nobody had processed 6 records of orders-0 (offsets 4 to 9) when the drain ended, at 3.500 s; nobody was "
            "ever assigned orders-0.",
        ),
        (
            of("commit-regression", A, to=3),
            "The committed offset of orders-0 went back to 4 (at 3.000 s), by member-0.1.",
        ),
        (
            of("commit-regression", A, B, count=2),
            "The committed offset of orders-0 went back 2 times, to offsets 4 to 9 (from 3.000 s to 3.500 s), by "
            "member-0.1, below what member-1.1 had committed.",
        ),
        (
            of("commit-regression", to=3),
            "The committed offset of orders-0 went back to 4 (at 3.000 s), by nobody that the request log names for "
            "certain.",
        ),
        (
            of("commit-ahead", A, count=3),
            "member-0.1 committed past 3 records of orders-0 (offsets 4 to 9) (from 3.000 s to 3.500 s) before anybody "
            "had finished them.",
        ),
        (
            of("zombie-commit", A, B, to=3),
            "member-0.1 committed orders-0, which it had owned before, after the coordinator had given it to "
            "member-1.1 (offset 4, at 3.000 s).",
        ),
        (
            of("silent-commit-failure", A, cause="UNKNOWN_MEMBER_ID"),
            "member-0.1 was told that its commit of orders-0 (4) had worked (from 3.000 s to 3.500 s), but the "
            "coordinator had refused it (UNKNOWN_MEMBER_ID).",
        ),
        (
            of("wrong-start", A, cause="seek"),
            "member-0.1 began an assignment of orders-0 at offset 4 (from 3.000 s to 3.500 s), where no committed "
            "offset sent it; the program itself had moved its position.",
        ),
        (
            of("history-incomplete", A, cause="early"),
            "The history of member-0.1 has 1 delivery of orders-0 from before the assignment that it names (from 3.000 "
            "s to 3.500 s).",
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, Anomaly) else "",
)
def test_a_sentence_says_it_all(tmp_path: Path, anomaly: Anomaly, sentence: str) -> None:
    assert told(tmp_path, anomaly) == sentence


def test_every_kind_has_a_sentence_with_its_place_and_no_loose_end(tmp_path: Path) -> None:
    kinds = {kind for of_rule in oracle.rules().values() for kind in of_rule}
    assert set(SENTENCES) >= kinds | set(Commits.kinds)
    for story in [*CASES, *COMMIT_CASES]:
        h = HistoryBuilder(tmp_path / story.__name__, 2)
        story(h, True)
        tables = load(h.seal())
        for anomaly in oracle.judge(tables.run, tables, Bounds())[0]:
            if anomaly.kind in SENTENCES:
                sentence = example(tables, anomaly)["sentence"]
                assert "orders-" in sentence, sentence
                assert not re.search(r"nobody known|  |\(\)|-\d+\.\d+ s|\.\.", sentence), sentence


def test_a_seek_of_the_program_is_a_witness_of_the_rewind(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    h.write(10)
    a = h.member(0)
    a.assigned(1)
    a.process(range(8), 2)
    a.seek(5, 4)
    a.process(range(5, 10), 5)
    tables = load(h.seal())
    anomaly = oracle.judge(tables.run, tables, Bounds())[0][0]
    assert "4.000 s: the program of member-0.1 moved its position to 5" in example(tables, anomaly)["witnesses"]


def test_a_partition_without_a_name_is_told_as_such(tmp_path: Path) -> None:
    sentence = told(tmp_path, Anomaly("rewind", "", -1, (A,), "", "", 4, 4, ns(3), ns(3)))
    assert sentence.startswith("member-0.1 was given offset 4 of a partition whose name is lost again inside")
