"""The workloads of loops of ours: their options, and what a member and a producer are told of them."""

from __future__ import annotations

from dataclasses import fields

import pytest

from fencepost.checkers import Parked, Requeued
from fencepost.errors import ScenarioError
from fencepost.model.topic import Topic
from fencepost.scenario.scenario import Group, Scenario
from fencepost.workloads import DeadLetters, ExclusiveWrites, PollLoop, Requeue, Transform, WorkerPool
from fencepost_member import config

KEPT = {"cleanup.policy": "delete"}  # whatever the cluster's own policy is


def test_members_and_producers_are_told_what_they_know():
    known = {f.name for f in fields(config.LoopConfig)} - {"processed"}
    of_pool = {"workers", "lanes", "in_hand", "wait_ms", "delay_revoke"}
    of_loop = {"commit", "backpressure", "pause_ms"}
    of_both, of_store = {"slow_partition", "slow_ms", "handler", "planted_bug"}, {"fence", "lease_ms"}
    of_output = {"into", "transaction_timeout_ms"}
    of_letters = {"poison_every", "on_failure", "attempts", "retry_ms", "keep_order", "redirect"}
    of_polls, of_both_loops = {"backpressure", "pause_ms", "slow_partition", "slow_ms"}, {"deadline_ms"}
    for kind, others in (
        (PollLoop, of_pool | of_store | of_output | of_letters),
        (WorkerPool, of_loop | of_both_loops | of_store | of_output | of_letters),
        (ExclusiveWrites, of_both_loops | of_pool | of_loop | of_both | of_output | of_letters),
        (Transform, of_both_loops | of_pool | of_store | of_polls | of_letters),
        (DeadLetters, of_pool | of_store | of_polls),
        (Requeue, of_pool | of_store | of_polls | of_letters - {"on_failure"}),
    ):
        workload = kind(rate_hz=90, producers=3)
        assert set(workload.member_config(0)) == known - others
        reported = workload.producer_config()
        assert reported["rate_hz"] * reported.pop("producers") == 90
        assert set(reported) < {f.name for f in fields(config.ProducerConfig)}


def test_a_bug_is_planted_in_the_members_that_were_named_or_in_all():
    some, everywhere = PollLoop(planted_bug="seek-back", planted_in=(1,)), PollLoop(planted_bug="seek-back")
    assert [some.member_config(m)["planted_bug"] for m in range(3)] == ["", "seek-back", ""]
    assert [everywhere.member_config(m)["planted_bug"] for m in range(2)] == ["seek-back"] * 2


@pytest.mark.parametrize(
    ("commit", "level"),
    [("auto", "at-least-once"), ("asynchronous", "at-least-once"), ("before-processing", "at-most-once")],
)
def test_the_commit_policy_decides_what_delivery_may_be_expected(commit, level):
    promises = {type(p).__name__: p for p in PollLoop(commit=commit).promises()}
    assert set(promises) - {"Order"} == {"Commits", "Delivery", "Ownership", "Progress"}
    assert ("Order" in promises) == (level == "at-least-once")
    assert promises["Delivery"].level == level
    assert promises["Commits"].order == ("before-processing" if level == "at-most-once" else "after-processing")


def test_who_commits_what_was_delivered_promises_neither_to_lose_nothing_nor_to_repeat_nothing():
    promises = {type(p).__name__: p for p in PollLoop(commit="auto-delivered").promises()}
    assert set(promises) == {"Commits", "Ownership", "Progress"}
    assert promises["Commits"].order == "before-processing"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"commit": "never"}, "commit policy 'never' is unknown; known are after-processing"),
        ({"planted_bug": "sleepy"}, "planted bug 'sleepy' is unknown; known are seek-back"),
        ({"planted_bug": "out-of-order", "batch": 1}, "needs batch > 1"),
        ({"planted_bug": "late-retry"}, "'late-retry' needs commit 'asynchronous'"),
        ({"batch": 0}, "batch is 0, it must be at least 1"),
        ({"value_bytes": 8}, "value_bytes is 8, it must be at least 24"),
        ({"backpressure": "drop"}, "backpressure 'drop' is unknown; known are pause, resume"),
        ({"pause_ms": -1}, "pause_ms is -1, it cannot be negative"),
        ({"rate_hz": -1}, "rate_hz is -1, it cannot be negative"),
        ({"deadline_ms": -1}, "deadline_ms is -1, it cannot be negative"),
        (
            {"deadline_ms": 9, "commit": "auto"},
            "needs one of the commit policies after-processing, after-batch: others",
        ),
        ({"deadline_ms": 9, "handler": "a:b"}, "deadline_ms works with the built-in handler only: yours cannot be"),
        (
            {"deadline_ms": 9, "handler_ms": 4, "slow_ms": 5},
            "deadline_ms is 9, and records that take 9 ms would never be",
        ),
    ],
)
def test_a_wrong_option_is_refused_with_a_sentence(options, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        PollLoop(**options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"lanes": "topic"}, "lanes 'topic' is unknown; known are partition, key"),
        ({"planted_bug": "seek-back"}, "planted bug 'seek-back' is unknown; known are unawaited-workers"),
        ({"workers": 0}, "workers is 0, it must be at least 1"),
        ({"in_hand": 0}, "in_hand is 0, it must be at least 1"),
        ({"slow_ms": -1}, "slow_ms is -1, it cannot be negative"),
        ({"handler": "write"}, "it must be of the form module:function"),
    ],
)
def test_a_wrong_option_of_a_pool_is_refused_with_a_sentence(options, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        WorkerPool(**options)


def test_a_pool_has_as_many_hands_as_find_records():
    def asked(**options):
        return Scenario(
            "x", [Topic("orders", 4)], Group(2), WorkerPool(workers=3, rate_hz=450, handler_ms=10, **options)
        )

    assert asked(lanes="key")
    with pytest.raises(ScenarioError, match=r"are 4\.5 s of work a second, and 4 workers that find records have less"):
        asked()
    with pytest.raises(ScenarioError, match="and 2 workers that find records"):
        asked(lanes="key", keys=2)
    with pytest.raises(ScenarioError, match="no member 2"):
        asked(lanes="key", planted_bug="highest-finished", planted_in=(2,))


@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        (Group(2), ""),
        (Group(2, protocol="consumer"), ""),
        (
            Group(2, protocol="eager"),
            "delay_revoke has no effect with the protocol eager, which revokes every partition",
        ),
        (
            Group(2, client="kafka-python"),
            "needs a client that can keep polling while a revocation is delayed; kafka-python cannot",
        ),
    ],
)
def test_a_revocation_is_delayed_where_partitions_stay_and_the_client_can(group, sentence):
    def asked():
        return Scenario("x", [Topic("orders", 4)], group, WorkerPool(delay_revoke=True))

    if sentence:
        with pytest.raises(ScenarioError, match=sentence):
            asked()
    else:
        assert asked().workload.member_config(0)["delay_revoke"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"on_failure": "retry"}, "on_failure 'retry' is unknown; known are stop, park"),
        ({"commit": "auto"}, "commit policy 'auto' is unknown; known are after-processing"),
        ({"planted_bug": "offsets-first"}, "planted bug 'offsets-first' is unknown; known are swallowed-errors"),
        ({"on_failure": "stop", "planted_bug": "swallowed-errors"}, "'swallowed-errors' needs on_failure 'park'"),
        ({"on_failure": "stop", "deadline_ms": 5}, "deadline_ms needs on_failure 'park'"),
        ({"handler_ms": 5, "deadline_ms": 5}, "deadline_ms is 5, and records that take 5 ms would never be processed"),
        ({"on_failure": "stop", "commit": "transaction"}, "commit policy 'transaction' needs on_failure 'park'"),
        ({"keep_order": True, "commit": "transaction"}, "keep_order does not work with transactions"),
        ({"planted_bug": "first-retried", "keep_order": True}, "it needs keep_order and retried_after_ms"),
        ({"planted_bug": "first-retried", "retried_after_ms": 5}, "it needs keep_order and retried_after_ms"),
        ({"retried_after_ms": -1}, "retried_after_ms is -1, it cannot be negative"),
        ({"handler": "shop:write"}, "with your own handler or payload it must be 0"),
        ({"payload": "shop:order"}, "with your own handler or payload it must be 0"),
        ({"attempts": 0}, "attempts is 0, it must be at least 1"),
        ({"poison_every": -1}, "poison_every is -1, it cannot be negative"),
        ({"retry_ms": -1}, "retry_ms is -1, it cannot be negative"),
    ],
)
def test_a_wrong_option_of_dead_letters_is_refused_with_a_sentence(options, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        DeadLetters(**options)


def test_what_is_retried_is_told_in_a_topic_beside_the_other_one_which_the_group_does_not_read():
    def asked(read="orders", **options):
        return Scenario("x", [Topic(read, 4, 2)], Group(2), DeadLetters(keep_order=True, into="later", **options))

    assert asked().outputs() == (Topic("later", 4, 2, KEPT),)
    assert asked(retried_after_ms=9).outputs() == (Topic("later", 4, 2, KEPT), Topic("later-redirect", 4, 2, KEPT))
    assert [s.workload.member_config(0)["redirect"] for s in (asked(), asked(retried_after_ms=9))] == [
        "",
        "later-redirect",
    ]
    assert asked("later-redirect")
    with pytest.raises(
        ScenarioError, match="it cannot write to the topic 'later-redirect', because the group reads it"
    ):
        asked("later-redirect", retried_after_ms=9)
    with pytest.raises(ScenarioError, match="nearly all keys would be parked, as 1000 keys have 500 records/s"):
        asked(retried_after_ms=8000)
    with pytest.raises(ScenarioError, match="nearly all keys would be parked, as 1 keys have 500 records/s"):
        asked(retried_after_ms=8000, keys=1)
    assert asked(retried_after_ms=8000, keys=1100)
    assert asked(retried_after_ms=8000, handler="a:b", poison_every=0)


def test_what_is_retried_without_order_is_nothing_to_members():
    scenario = Scenario("x", [Topic("orders", 4, 2)], Group(2), DeadLetters(into="later", retried_after_ms=8000))
    assert scenario.outputs() == (Topic("later", 4, 2, KEPT), Topic("later-retried", 4, 2, KEPT))
    assert scenario.workload.member_config(0)["redirect"] == ""
    (parked,) = (p for p in scenario.workload.promises() if isinstance(p, Parked))
    assert not parked.in_order


def test_who_stops_on_failure_has_no_dead_letters_to_promise():
    parks, in_transactions = DeadLetters(), DeadLetters(commit="transaction")
    stops = DeadLetters(on_failure="stop", handler="shop:write", poison_every=0)
    assert [p.guarantee for w in (parks, in_transactions) for p in w.promises() if isinstance(p, Parked)] == [
        "at-least-once",
        "exactly-once",
    ]
    assert not any(isinstance(p, Parked) for p in stops.promises())
    assert [w.member_config(0)["into"] for w in (parks, stops)] == ["dead-letters", ""]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"commit": "auto"}, "commit policy 'auto' is unknown; known are after-processing"),
        ({"planted_bug": "swallowed-errors"}, "planted bug 'swallowed-errors' is unknown; known are unwritten-copies"),
        ({"handler": "shop:write"}, "deadline_ms works with the built-in handler only"),
        ({"handler_ms": 500}, "deadline_ms is 500, and records that take 500 ms would never be processed"),
    ],
)
def test_a_wrong_option_of_requeueing_is_refused_with_a_sentence(options, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        Requeue(**options)


@pytest.mark.parametrize(
    ("store", "sentence"),
    [
        ("mysql://db/shop", "store is 'mysql://db/shop'; it must be postgresql://user@host/database, or empty"),
        ("postgresql://me:secret@db/shop", "a password, which the run folder would show: set PGPASSWORD instead"),
        ("postgresql://db/shop?user=me&password=secret", "store contains a password"),
    ],
)
def test_a_store_that_is_no_postgresql_or_tells_a_password_is_refused(store, sentence):
    with pytest.raises(ScenarioError, match=sentence) as refused:
        ExclusiveWrites(store=store)
    assert "secret" not in str(refused.value)
    assert ExclusiveWrites(store="postgresql://me@db/shop").store


def test_a_supervisor_leaves_members_the_time_for_what_a_poll_returns():
    options = {"overdue_ms": 200, "batch": 10, "handler_ms": 20}
    with pytest.raises(ScenarioError, match="overdue_ms is 200, and a poll's records alone take 200 ms"):
        ExclusiveWrites(fence="supervisor", **options)
    assert ExclusiveWrites(fence="supervisor", **{**options, "batch": 9}).killed_after_ms == 200
    assert ExclusiveWrites(**options).killed_after_ms == 0


def test_who_requeues_writes_into_no_other_topic():
    asked = Scenario("x", [Topic("orders", 4)], Group(), Requeue(handler="shop:write", deadline_ms=0))
    assert asked.outputs() == ()
    reported = asked.workload.member_config(0)
    assert (reported["into"], reported["on_failure"]) == ("", "requeue")
    assert Scenario.from_json(asked.to_json()).workload == asked.workload
    workloads = Requeue(), Requeue(commit="transaction")
    assert [p.guarantee for w in workloads for p in w.promises() if isinstance(p, Requeued)] == [
        "at-least-once",
        "exactly-once",
    ]


def test_what_is_tried_again_takes_its_time():
    def asked(**options):
        return Scenario("x", [Topic("orders", 4)], Group(1), DeadLetters(rate_hz=500, poison_every=10, **options))

    assert asked(retry_ms=9)
    with pytest.raises(ScenarioError, match=r"500 records/s of 2\.2 ms each are 1\.1 s of work a second"):
        asked(retry_ms=11)
    with pytest.raises(ScenarioError, match="it cannot write to the topic 'orders', because the group reads it"):
        asked(into="orders")
