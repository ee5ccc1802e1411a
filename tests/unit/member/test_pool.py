"""Worker threads of a member: order, how much is in hand, and what becomes of it when partitions go."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fencepost.clock import eventually
from fencepost_member.config import LoopConfig
from fencepost_member.member_events import MemberReporter
from fencepost_member.planted_bugs import POOLS
from fencepost_member.process import StallSwitch
from fencepost_member.processing.backpressure import PausedPartitions
from fencepost_member.processing.handler import RecordHandler
from fencepost_member.processing.pool import Pool

A, B = ("orders", 0), ("orders", 1)
SOON_S = 10


UNTOLD = SimpleNamespace(paused=lambda tps: None, resumed=lambda tps: None)


class Bench:
    """What a pool works with. Records wait in the handler, by partition, until they are let through."""

    def __init__(self) -> None:
        self.told: dict[Any, int] = {}
        self.paused: set[Any] = set()
        self.begun: list[int] = []
        self.ended: list[int] = []
        self.begin, self.done = self.begun.append, self.ended.append  # the recorder's
        self.open = {A: threading.Event(), B: threading.Event()}
        self.wrong: Exception | None = None
        self.pools: list[Pool] = []

    def pool(self, kind: type[Pool] = Pool, **options: Any) -> Pool:
        loop = LoopConfig(**{"workers": 3, **options})
        paused = PausedPartitions(self, cast(MemberReporter, UNTOLD))
        pool: Pool = kind(loop, self, self.handle, self, paused, None)  # type: ignore[arg-type]
        self.pools.append(pool)
        return pool

    def handle(self, index: int, tp: Any, next_offset: int, content: Any, handler: None) -> None:
        self.begin(index)
        assert self.open[tp].wait(SOON_S)
        if self.wrong:
            raise self.wrong

    def finished(self, tp: Any, next_offset: int) -> None:
        self.told[tp] = next_offset

    def pause(self, tp: Any) -> None:
        self.paused.add(tp)

    def resume(self, tp: Any) -> None:
        self.paused.discard(tp)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    for gate in made.open.values():
        gate.set()
    for pool in made.pools:
        pool.close()
        assert not any(thread.is_alive() for thread in pool._threads)


def hand(pool: Pool, tp: Any, *numbers: int, keys: str = "kkkkkkkk") -> None:
    work = [(number, tp, number + 1) for number in numbers]
    pool.process(work, [(*tp, n, keys[i].encode(), b"", None) for i, n in enumerate(numbers)])


def settled(pool: Pool, what: Any, sentence: str) -> None:
    eventually(lambda: (pool.process([], []), what())[1], SOON_S, sentence)


def test_a_slow_partition_keeps_one_worker_and_is_done_in_order(bench: Bench) -> None:
    pool = bench.pool(workers=2)
    hand(pool, A, 0, 1, 2)
    hand(pool, B, 10, 11, 12)
    bench.open[B].set()
    settled(pool, lambda: bench.told == {B: 13}, "the other partition to be done")
    assert [n for n in bench.begun if n < 10] == [0]
    bench.open[A].set()
    settled(pool, lambda: bench.told == {A: 3, B: 13}, "the slow one to be done")
    assert [n for n in bench.ended if n < 10] == [0, 1, 2]
    assert [n for n in bench.ended if n >= 10] == [10, 11, 12]


def test_keys_of_a_partition_are_done_side_by_side_and_each_in_order(bench: Bench) -> None:
    pool = bench.pool(lanes="key")
    hand(pool, A, 0, 1, 2, 3, keys="xyxy")
    eventually(lambda: len(bench.begun) == 2, SOON_S, "two keys to be begun")
    assert set(bench.begun) == {0, 1}
    bench.open[A].set()
    settled(pool, lambda: bench.told == {A: 4}, "all to be done")
    of = defaultdict(list)
    for number in bench.ended:
        of[number % 2].append(number)
    assert dict(of) == {0: [0, 2], 1: [1, 3]}


def test_a_partition_with_more_in_hand_than_the_bound_is_paused_until_half_of_it_is_done(bench: Bench) -> None:
    pool = bench.pool(in_hand=2)
    hand(pool, A, 0, 1)
    assert bench.paused == set()
    hand(pool, A, 2)
    assert bench.paused == {A}
    bench.open[A].set()
    settled(pool, lambda: not bench.paused, "the partition to be resumed")


def test_the_revoked_callback_waits_for_what_is_begun_and_drops_the_rest_and_others_go_on(bench: Bench) -> None:
    pool = bench.pool()
    hand(pool, A, 0, 1)
    hand(pool, B, 10)
    eventually(lambda: len(bench.begun) == 2, SOON_S, "both partitions to be begun")
    threading.Timer(0.05, bench.open[A].set).start()
    assert pool.revoking([A], lost=False) == 1
    assert (bench.told, bench.ended) == ({A: 1}, [0])
    bench.open[B].set()
    settled(pool, lambda: bench.told == {A: 1, B: 11}, "the one that stays to be done")
    assert 1 not in bench.begun


def test_the_revoked_callback_has_what_is_before_a_finished_record_done_so_that_nothing_is_done_twice(
    bench: Bench,
) -> None:
    pool = bench.pool(workers=1, lanes="key")
    hand(pool, A, 0, 1, 2, 3, keys="xxyy")  # in the turns of the keys: 0, 2, 1, 3
    eventually(lambda: bench.begun == [0], SOON_S, "the first one to be begun")
    pool._ledgers[A].begin(2)  # as a second worker would
    threading.Timer(0.05, bench.open[A].set).start()
    assert pool.revoking([A], lost=False) == 3
    assert (bench.told, bench.begun) == ({A: 3}, [0, 2, 1])


def test_the_callback_waits_no_longer_than_it_may_and_what_was_not_finished_is_not_committed(bench: Bench) -> None:
    pool = bench.pool(wait_ms=1)
    hand(pool, A, 0)
    eventually(lambda: bench.begun == [0], SOON_S, "it to be begun")
    assert pool.revoking([A], lost=False) == 0
    bench.open[A].set()
    eventually(lambda: bench.ended == [0], SOON_S, "it to be done nevertheless")
    pool.process([], [])
    assert bench.told == {}


def test_a_revocation_is_put_off_until_what_is_begun_is_done_and_nothing_more_is_begun(bench: Bench) -> None:
    pool = bench.pool(delay_revoke=True)
    assert pool.may_revoke([A]), "nothing is in hand"
    hand(pool, A, 0, 1)
    eventually(lambda: bench.begun == [0], SOON_S, "the first one to be begun")
    assert not pool.may_revoke([A])
    hand(pool, A, 2)
    hand(pool, B, 10)
    bench.open[B].set()
    settled(pool, lambda: bench.told == {B: 11}, "the partition that stays to be done meanwhile")
    assert not pool.may_revoke([A])
    bench.open[A].set()
    eventually(lambda: pool.may_revoke([A]), SOON_S, "the partition to be free")
    assert pool.revoking([A], lost=False) == 1
    assert (bench.told, bench.begun) == ({A: 1, B: 11}, [0, 10])


def test_a_revocation_is_put_off_no_longer_than_it_may_and_each_has_its_own_time(bench: Bench) -> None:
    pool = bench.pool(delay_revoke=True, wait_ms=300, workers=2)
    hand(pool, A, 0)
    hand(pool, B, 10)
    eventually(lambda: sorted(bench.begun) == [0, 10], SOON_S, "both to be begun")
    for tp in (A, B):
        assert not pool.may_revoke([tp])
        eventually(lambda tp=tp: pool.may_revoke([tp]), SOON_S, "its time to be over")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(pool._finished, "wait_for", lambda *_: pytest.fail("it waits once more"))
            assert pool.revoking([tp], lost=False) == 0
    assert bench.told == {}


def test_nothing_is_waited_for_when_partitions_are_lost(bench: Bench) -> None:
    pool = bench.pool(in_hand=1)
    hand(pool, A, 0, 1)
    eventually(lambda: bench.begun == [0], SOON_S, "one to be begun")
    assert bench.paused == {A}
    assert pool.revoking([A], lost=True) == 0
    assert (bench.told, bench.paused) == ({}, set())
    hand(pool, A, 0, 1)  # it is ours again: what is begun ends first
    bench.open[A].set()
    settled(pool, lambda: bench.told == {A: 2}, "all to be done")
    assert bench.begun == [0, 0, 1]


def test_of_what_is_lost_nothing_is_begun_any_more_not_even_before_what_is_finished(bench: Bench) -> None:
    pool = bench.pool(workers=1, lanes="key")
    hand(pool, A, 0, 1, 2, keys="xxy")
    eventually(lambda: bench.begun == [0], SOON_S, "the first one to be begun")
    pool._ledgers[A].begin(2)  # as a second worker would
    pool.revoking([A], lost=True)
    bench.open[A].set()
    eventually(lambda: not pool._tasks, SOON_S, "nothing to be left")
    assert bench.begun == [0]


def test_a_clean_end_finishes_what_is_begun_and_nothing_else(bench: Bench) -> None:
    pool = bench.pool()
    hand(pool, A, 0, 1)
    eventually(lambda: bench.begun == [0], SOON_S, "one to be begun")
    threading.Timer(0.05, bench.open[A].set).start()
    assert pool.finish() == 1
    assert (bench.told, bench.begun) == ({A: 1}, [0])


def test_what_the_handler_raises_comes_out_on_the_thread_that_polls(bench: Bench) -> None:
    pool, bench.wrong = bench.pool(), ValueError("poison")
    bench.open[A].set()
    hand(pool, A, 0)
    with pytest.raises(ValueError, match="poison"):
        settled(pool, lambda: False, "what it raised")
    assert (bench.told, bench.ended) == ({}, [])


def test_a_pool_that_is_wrong_goes_on_with_what_is_not_its_own_or_commits_past_what_is_not_done(
    bench: Bench,
) -> None:
    careless = bench.pool(POOLS["unawaited-workers"])
    hand(careless, A, 0, 1)
    careless.revoking([A], lost=False)
    bench.open[A].set()
    eventually(lambda: bench.ended == [0, 1], SOON_S, "all to be done by who has it no longer")
    bench.open[A].clear()
    hasty = bench.pool(POOLS["highest-finished"], lanes="key")
    bench.open[B].set()
    hasty._handling = lambda index, tp, *_: bench.handle(index, A if index == 20 else B, 0, None, None)
    hand(hasty, B, 20, 21, keys="xy")
    settled(hasty, lambda: bench.told.get(B) == 22, "the later one to be committed first")
    assert 20 not in bench.ended


def test_a_single_record_is_slow_where_its_partition_is() -> None:
    waited: list[float] = []
    handling = RecordHandler(LoopConfig(slow_partition=1, slow_ms=20), Bench(), None, StallSwitch())  # type: ignore[arg-type]
    handling._never.wait = waited.append  # type: ignore[assignment, method-assign]
    handling(0, A, 1, (None, None), None)
    handling(1, B, 1, (None, None), None)
    assert waited == [0.02]
