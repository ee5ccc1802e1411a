"""Commits of transactions in the coordinator's log: which came into force, and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers.tables import load
from fencepost.checkers.tables.transactions import settled
from history.builder import HistoryBuilder, ns


def commit(order: int, offset: int, producer: int = -1, partition: int = 0) -> dict[str, Any]:
    return {
        "type": "commit",
        "topic": "orders",
        "partition": partition,
        "order": order,
        "committed": offset,
        "producer": producer,
    }


def end(order: int, producer: int, *, committed: bool = True) -> dict[str, Any]:
    return {
        "type": "transaction-end",
        "order": order,
        "producer": producer,
        "committed": committed,
        "at_ns": 10 * order,
    }


@pytest.mark.parametrize(
    ("lines", "in_force", "overtaken"),
    [
        ([commit(1, 5)], [(5, 0)], []),
        ([commit(1, 5, 7), end(2, 7)], [(5, 20)], []),
        ([commit(1, 5, 7)], [], []),
        ([commit(1, 5, 7), end(2, 7, committed=False)], [], []),
        ([commit(1, 5, 7), end(2, 7, committed=False), end(3, 7)], [], []),
        ([commit(1, 5, 7), end(2, 8)], [], []),
        ([commit(1, 5, 7), commit(2, 6, 8), end(3, 8), end(4, 7)], [(6, 30)], [(5, 40)]),
        ([commit(1, 5, 7), commit(2, 6), end(3, 7)], [(6, 0)], [(5, 30)]),
        ([commit(1, 5, 7), commit(2, 6, partition=1), end(3, 7)], [(6, 0), (5, 30)], []),
        ([commit(1, 5, 7), commit(2, 6, 7), end(3, 7), commit(4, 7, 7), end(5, 7)], [(5, 30), (6, 30), (7, 50)], []),
        ([{"type": "member", "order": 1}, commit(2, 5)], [(5, 0)], []),
    ],
    ids=[
        "of no transaction",
        "committed",
        "never ended",
        "aborted",
        "aborted, and another one committed",
        "another producer's end",
        "outrun by another transaction",
        "outrun by a plain commit",
        "a plain commit of another partition",
        "two in one, then another",
        "another record",
    ],
)
def test_a_commit_of_a_transaction_counts_when_that_is_committed(lines: Any, in_force: Any, overtaken: Any) -> None:
    reported = [(one.line["committed"], one.ended_ns, one.in_force) for one in settled(lines)]
    assert [(offset, ended_ns) for offset, ended_ns, there in reported if there] == in_force
    assert [(offset, ended_ns) for offset, ended_ns, there in reported if not there] == overtaken


def test_between_its_record_and_the_end_of_its_transaction_nobody_knows_whether_it_is_in_force(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    h.write(9)
    a = h.member(0)
    a.assigned(1)
    a.commit(3, 2)
    a.commit(5, 4, mode="transaction", accepted=False)
    h.accepts(5, 4, producer=3)
    h.ends_transaction(3, 6)
    tables = load(h.seal())
    blur_ns = tables.accepted[0].uncertainty_ns
    plain, (begin_ns, end_ns) = [one.written for one in tables.accepted]
    assert plain == (ns(2.001) - blur_ns, ns(2.001) + blur_ns)
    assert abs(begin_ns - (ns(4) - blur_ns)) <= 1
    assert abs(end_ns - (ns(6) + blur_ns)) <= 1
    assert tables.committed_between(0, ns(3), ns(3.5)) == (3,)
    assert tables.committed_between(0, ns(5), ns(5.5)) == (3, 5)
    assert tables.committed_between(0, ns(7), ns(8)) == (5,), "a member was told so, and the transaction is over"
