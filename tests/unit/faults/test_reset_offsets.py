"""Offsets are reset while nobody is in the group, and proven by what the coordinator then tells."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fencepost.errors import ClusterError, FaultError, WaitTimeout
from fencepost.faults import ResetOffsets
from fencepost.interfaces import DeclaresAction, Target
from fencepost.model import TopicPartition

NOBODY = Target()
P0, P1, P2 = (TopicPartition("orders", p) for p in range(3))


class Admin:
    """The group has committed 5 of the first partition, nothing of the second, and where the third begins."""

    def __init__(self, *members: str, performs: bool = True, error: Exception | None = None) -> None:
        self.members, self.performs, self.error = members, performs, error
        self.offsets = {P0: 5, P2: 2}

    def describe(self, group: str) -> Any:
        return SimpleNamespace(members=dict.fromkeys(self.members))

    def committed(self, group: str) -> dict[TopicPartition, int]:
        return dict(self.offsets)

    def start_offsets(self, topic: str) -> dict[int, int]:
        return {0: 0, 1: 0, 2: 2}

    def end_offsets(self, topic: str) -> dict[int, int]:
        return {0: 9, 1: 0, 2: 8}

    def alter_offsets(self, group: str, offsets: dict[TopicPartition, int]) -> None:
        if self.performs:
            self.offsets |= offsets
        if self.error:
            raise self.error


def of(admin: Admin) -> Any:
    return SimpleNamespace(cluster=SimpleNamespace(admin=admin), group="g", topics={"orders": "orders"})


@pytest.mark.parametrize(
    ("fault", "moves"),
    [
        (ResetOffsets(), {"orders-0": [5, 0], "orders-1": [-1, 0]}),
        (ResetOffsets("latest"), {"orders-0": [5, 9], "orders-1": [-1, 0], "orders-2": [2, 8]}),
        # nowhere but where something is committed, and not out of the log
        (ResetOffsets(shift_by=3), {"orders-0": [5, 8], "orders-2": [2, 5]}),
        (ResetOffsets(shift_by=99), {"orders-0": [5, 9], "orders-2": [2, 8]}),
        (ResetOffsets(shift_by=-1), {"orders-0": [5, 4]}),
        (ResetOffsets(shift_by=-99), {"orders-0": [5, 0]}),
    ],
)
def test_what_is_committed_elsewhere_is_moved_and_declared(fault: ResetOffsets, moves: dict[str, list[int]]) -> None:
    injection = fault.inject(of(Admin()), NOBODY)
    evidence = injection.proven()
    assert evidence.took_effect, evidence.what
    assert evidence.data == {"offsets": moves}
    assert isinstance(injection, DeclaresAction)
    assert [str(place) for place in injection.acts] == list(moves)


@pytest.mark.parametrize(("members", "reported"), [(("a",), "has 1 member$"), (("a", "b"), "has 2 members$")])
def test_it_waits_until_nobody_is_in_the_group(members: tuple[str, ...], reported: str) -> None:
    world = of(Admin(*members))
    with pytest.raises(FaultError, match=reported.replace("$", ": there is nothing to reset")):
        ResetOffsets().inject(world, NOBODY)
    assert not ResetOffsets().not_ready_reason(of(Admin()), NOBODY)


def test_what_is_there_already_is_no_fault() -> None:
    world = of(Admin())
    ResetOffsets().inject(world, NOBODY)
    with pytest.raises(FaultError, match="all committed offsets are where their partitions begin"):
        ResetOffsets().inject(world, NOBODY)
    assert not ResetOffsets("latest").not_ready_reason(world, NOBODY)


@pytest.mark.parametrize("performs", [True, False])
def test_one_that_nobody_answered_is_declared_and_looked_for(monkeypatch: pytest.MonkeyPatch, performs: bool) -> None:
    monkeypatch.setattr("fencepost.faults.reset_offsets.PROOF_S", 0.1)
    injection = ResetOffsets().inject(of(Admin(performs=performs, error=WaitTimeout("nobody answered"))), NOBODY)
    assert isinstance(injection, DeclaresAction)
    assert injection.acts == (P0, P1)
    evidence = injection.proven()
    assert evidence.took_effect is performs
    assert performs or "orders-0 is committed at 5, not at 0; orders-1 is committed at -1" in evidence.what


def test_one_that_was_refused_declares_nothing() -> None:
    with pytest.raises(ClusterError, match="refused"):
        ResetOffsets().inject(of(Admin(performs=False, error=ClusterError("refused"))), NOBODY)
