"""Topics are deleted and made again, and proven by their ids and by where their logs begin."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fencepost.errors import ClusterError, WaitTimeout
from fencepost.faults import RecreateTopic
from fencepost.interfaces import DeclaresAction, Target
from fencepost.model import Inventory, TopicPartition

NOBODY = Target()
P0, P1 = (TopicPartition("run-orders", p) for p in range(2))
BILL = TopicPartition("run-bills", 0)


class Admin:
    """Two partitions of orders with 5 and 3 records, of which 4 and none are committed; one of bills with 2."""

    def __init__(self, begin: int = 0, recreates: bool = True, error: Exception | None = None) -> None:
        self.begin, self.recreates, self.error = begin, recreates, error
        self.ids = {"run-orders": 0, "run-bills": 0}

    def leaders(self, topic: str) -> dict[int, int]:
        return {0: 1, 1: 2} if topic == "run-orders" else {0: 1}

    def names_by_id(self, topics: list[str]) -> dict[str, str]:
        return {f"{name}-{self.ids[name]}": name for name in topics if name in self.ids}

    def start_offsets(self, topic: str) -> dict[int, int]:
        return {0: self.begin, 1: 0} if topic == "run-orders" else {0: 0}

    def end_offsets(self, topic: str) -> dict[int, int]:
        return {0: 5, 1: 3} if topic == "run-orders" else {0: 2}

    def committed(self, group: str) -> dict[TopicPartition, int]:
        return {P0: 4}

    def recreate_topic(self, topic: str) -> None:
        if self.recreates:
            self.ids[topic] += 1
        if self.error:
            raise self.error


def of(admin: Admin) -> Any:
    topics = {"orders": "run-orders", "bills": "run-bills"}
    return SimpleNamespace(cluster=SimpleNamespace(admin=admin), group="g", topics=topics)


def test_all_topics_are_made_again_and_what_was_not_committed_is_told() -> None:
    injection = RecreateTopic().inject(of(Admin()), NOBODY)
    evidence = injection.proven()
    assert evidence.took_effect, evidence.what
    assert evidence.data["ids"] == {
        "run-orders": ["run-orders-0", "run-orders-1"],
        "run-bills": ["run-bills-0", "run-bills-1"],
    }
    assert "the 10 records of run-orders-0, run-orders-1, run-bills-0" in evidence.what
    assert "had not committed 6" in evidence.what
    assert isinstance(injection, DeclaresAction)
    assert (injection.acts, injection.recreates) == ((P0, P1, BILL), True)


def test_only_topics_that_are_named_are() -> None:
    injection = RecreateTopic(("bills",)).inject(of(Admin()), NOBODY)
    assert isinstance(injection, DeclaresAction)
    assert injection.acts == (BILL,)
    assert [*injection.proven().data["ids"]] == ["run-bills"]


def test_topics_that_there_are_not_are_refused_before_anything_starts() -> None:
    inventory = Inventory(topics={"orders": 2}, members=1, brokers=1)
    assert "there is no topic 'bills'" in RecreateTopic(("bills",)).inventory_problem(inventory)
    assert not RecreateTopic(("orders",)).inventory_problem(inventory)
    assert not RecreateTopic().inventory_problem(inventory)


@pytest.mark.parametrize(
    ("admin", "why"),
    [
        (Admin(recreates=False), "run-orders has the id run-orders-0 as before"),
        (Admin(begin=7), "run-orders-0 begins at 7, not at 0"),
    ],
)
def test_a_topic_that_is_the_same_as_before_or_does_not_begin_anew_is_no_proof(
    admin: Admin, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencepost.faults.recreate_topic.PROOF_S", 0.1)
    evidence = RecreateTopic(("orders",)).inject(of(admin), NOBODY).proven()
    assert not evidence.took_effect
    assert why in evidence.what


def test_what_may_have_happened_is_an_act_and_told_by_the_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.faults.recreate_topic.PROOF_S", 0.1)
    assert RecreateTopic(("orders",)).inject(of(Admin(error=WaitTimeout("late"))), NOBODY).proven().took_effect
    gone = Admin(recreates=False, error=WaitTimeout("nobody answered"))
    injection = RecreateTopic(("orders",)).inject(of(gone), NOBODY)
    del gone.ids["run-orders"]
    assert isinstance(injection, DeclaresAction)
    assert injection.acts == (P0, P1)
    assert "run-orders is not there (nobody answered)" in injection.proven().what


def test_what_was_refused_is_no_act() -> None:
    with pytest.raises(ClusterError, match="refused"):
        RecreateTopic().inject(of(Admin(recreates=False, error=ClusterError("refused"))), NOBODY)
