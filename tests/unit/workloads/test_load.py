"""How producers spread records over keys and time."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from fencepost.errors import ScenarioError
from fencepost.workloads import OwnProgram, PollLoop, WorkerPool
from fencepost_member.config import PartitionNumbers
from fencepost_member.producing.producer import drawing, due_in, places_of

TPS = PartitionNumbers({"orders": {str(partition): partition for partition in range(4)}})
DRAWS = 20_000


def drawn(keys: int = 1000, skew: float = 0) -> Counter[int]:
    draw = drawing([*places_of({"orders": 4}, TPS, keys, idle=())], skew, random.Random(1))
    return Counter(draw()[0] for _ in range(DRAWS))


def test_keys_are_alike_unless_some_are_hot() -> None:
    counts = drawn(keys=40)
    assert set(counts) == set(range(40))
    assert max(counts.values()) < 1.5 * min(counts.values())


def test_the_weight_of_a_key_falls_with_its_number() -> None:
    counts = drawn(keys=40, skew=1)
    whole = sum(1 / (key + 1) for key in range(40))
    for key in (0, 1, 3, 9):
        assert counts[key] == pytest.approx(DRAWS / (key + 1) / whole, rel=0.15)


def test_draws_follow_from_their_seed() -> None:
    def first(seed: str) -> list[int]:
        draw = drawing([*places_of({"orders": 4}, TPS, 1000, idle=())], 1, random.Random(seed))
        return [draw()[0] for _ in range(50)]

    assert first("1/0") == first("1/0")
    assert len({tuple(first(f"{seed}/{writer}")) for writer in (0, 1) for seed in (1, 2)}) == 4


@pytest.mark.parametrize(
    ("count", "idle", "used"),
    [(4, [], [0, 1, 2, 3]), (4, [3], [0, 1, 2]), (5, [], [0, 1, 2, 3, 4]), (5, [3], [0, 1, 2, 4])],
)
def test_producers_use_all_partitions_but_an_idle_one(count: int, idle: list[int], used: list[int]) -> None:
    """An added partition has the number that members give it."""
    places = [*places_of({"orders": count}, TPS, 1000, {("orders", partition) for partition in idle})]
    assert sorted({partition for _, _, _, partition, _ in places}) == used
    assert all(tp == partition for _, _, _, partition, tp in places)
    assert all(partition == key % count for key, _, _, partition, _ in places)


@pytest.mark.parametrize(
    ("seconds", "burst_every_s", "due"),
    [(0, 0, 0), (0.25, 0, 25), (1.99, 2, 0), (2, 2, 200), (3.9, 2, 200), (4.1, 2, 400), (0.5, 0.25, 50)],
)
def test_what_is_due_in_the_time_of_a_burst_comes_at_its_end(seconds: float, burst_every_s: float, due: int) -> None:
    assert due_in(seconds, 100, burst_every_s) == due


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        (PollLoop, {"rate_hz": 0, "burst_every_s": 1}, "burst_every_s needs a rate_hz above 0"),
        (WorkerPool, {"burst_every_s": -1}, "burst_every_s is -1, it cannot be negative"),
        (PollLoop, {"abort_every": 3}, "abort_every needs transaction_records above 0"),
        (PollLoop, {"transaction_records": -1}, "transaction_records is -1, it cannot be negative"),
        (PollLoop, {"transaction_records": 500, "producers": 4, "rate_hz": 100}, "a transaction takes 20 s to fill"),
        (PollLoop, {"transaction_records": 10, "burst_every_s": 12}, "a transaction takes 12.005 s to fill"),
        (OwnProgram, {"skew": -0.5}, "skew is -0.5, it cannot be negative"),
        (PollLoop, {"commit": "auto", "commit_every_ms": 0}, "'auto' needs commit_every_ms above 0"),
    ],
)
def test_what_cannot_be_is_refused(kind: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        kind(**options)


def test_producers_are_told() -> None:
    for workload in (PollLoop(skew=1.5, burst_every_s=2), WorkerPool(skew=1.5, burst_every_s=2)):
        reported = workload.producer_config()
        assert (reported["skew"], reported["burst_every_s"]) == (1.5, 2)
    reported = PollLoop(transaction_records=200, abort_every=3).producer_config()
    assert (reported["transaction_records"], reported["abort_every"]) == (200, 3)
