"""The promises: what each makes of an anomaly, and which arguments it refuses."""

from __future__ import annotations

import subprocess
import sys

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
)
from fencepost.errors import ScenarioError
from fencepost.interfaces import Promise
from fencepost.model import Severity, serialization

DIED = "former owner died"
IN_HAND = "in hand when its owner died"
RETRIES = "producer not idempotent"
ACT = "declared act: delete-records"
ALL: list[Promise] = [
    Delivery(),
    Delivery("at-most-once"),
    Order(),
    Ownership(),
    Ownership("processing"),
    Progress(),
    Rebalances(),
    Effects(),
    Parked(),
]


@pytest.mark.parametrize(
    ("promise", "kind", "cause", "excuse", "expected"),
    [
        (Delivery(), "lost-write", "", "", "violation"),
        (Delivery(), "lost-write", "", ACT, "permitted"),
        (Delivery(), "unseen", "skipped", "", "violation"),
        (Delivery(), "unseen", "in-doubt", IN_HAND, "violation"),
        (Delivery(), "phantom", "", "", "violation"),
        (Delivery(), "aborted-read", "", "", "violation"),
        (Delivery(), "aborted-read", "", "its consumer reads uncommitted records", "permitted"),
        (Delivery(), "redelivery", "", DIED, "permitted"),
        (Delivery(), "redelivery", "", "", "violation"),
        (Delivery(), "avoidable-redelivery", "", "", "permitted"),
        (Delivery(duplicates="only-after-failure"), "avoidable-redelivery", "", "", "violation"),
        (Delivery(duplicates="only-after-failure"), "redelivery", "", DIED, "permitted"),
        (Delivery(), "redelivery-below-commit", "", "", "violation"),
        (Delivery(), "redelivery-loop", "count", "", "violation"),
        (Delivery(), "rewind", "seek", "", "violation"),
        (Delivery(), "rewind", "seek", ACT, "permitted"),
        (Delivery("at-most-once"), "unseen", "skipped", "", "violation"),
        (Delivery("at-most-once"), "unseen", "in-doubt", IN_HAND, "permitted"),
        (Delivery("at-most-once"), "unseen", "committed-unprocessed", IN_HAND, "permitted"),
        (Delivery("at-most-once"), "unseen", "committed-unprocessed", "", "violation"),
        (Delivery("at-most-once"), "redelivery", "", DIED, "violation"),
        (Delivery("at-most-once"), "avoidable-redelivery", "", "", "violation"),
        (Delivery(), "duplicate-write", "", "", "violation"),
        (Delivery(), "duplicate-write", "", RETRIES, "permitted"),
        (Delivery("at-most-once"), "duplicate-write", "", RETRIES, "permitted"),
        (Order(), "nonmonotonic-send", "", "", "violation"),
        (Order(), "nonmonotonic-send", "", RETRIES, "permitted"),
        (Order(), "key-order", "", "", "violation"),
        (Order(), "poll-skip", "seek", "", "violation"),
        (Order(), "poll-skip", "seek", ACT, "permitted"),
        (Ownership(), "assignment-overlap", "", "", "violation"),
        (Ownership(), "assignment-overlap", "", "zombie", "permitted"),
        (Ownership(), "processing-overlap", "", "", "permitted"),
        (Ownership(), "work-after-reassignment", "", "", "permitted"),
        (Ownership(), "processing-after-revocation", "lost", "", "violation"),
        (Ownership("processing"), "assignment-overlap", "", "zombie", "permitted"),
        (Ownership("processing"), "processing-overlap", "", "", "violation"),
        (Ownership("processing"), "processing-overlap", "", "in flight when frozen", "permitted"),
        (Ownership("processing"), "work-after-reassignment", "", "", "violation"),
        (Ownership(), "stale-effect", "", "", "permitted"),
        (Ownership("processing"), "stale-effect", "", "", "violation"),
        (Ownership("processing"), "stale-effect", "", "begun as its owner", "permitted"),
        (Order(), "stale-effect", "", "", "violation"),
        (Order(), "stale-effect", "", "not told yet", "permitted"),
        (Ownership(), "coordinator-overlap", "", "", "violation"),
        (Ownership(), "generation-regression", "", "", "violation"),
        (Ownership(), "assignment-mismatch", "", "", "violation"),
        (Ownership(), "callback-imbalance", "assigned twice", "", "violation"),
        (Ownership(), "early-assignment", "", "", "violation"),
        (Ownership(), "early-assignment", "", "zombie", "permitted"),
        (Ownership(), "needless-revocation", "", "", "violation"),
        (Ownership(), "needless-revocation", "", ACT, "permitted"),
        (Ownership(), "lost-reported-as-revoked", "UNKNOWN_MEMBER_ID", "", "note"),
        (Ownership(), "duplicate-instance", "", "", "violation"),
        (Progress(), "orphaned-partition", "", "", "violation"),
        (Progress(), "orphaned-partition", "", "no leader", "permitted"),
        (Progress(), "never-stable", "", "", "violation"),
        (Progress(), "dead-member", "FENCED_INSTANCE_ID", "", "violation"),
        (Progress(), "dead-member", "SIGKILL", "", "violation"),
        (Progress(), "hung-shutdown", "", "", "violation"),
        (Progress(), "hung-shutdown", "", "another fault", "permitted"),
        (Commits(), "commit-ahead", "", "", "violation"),
        (Commits("before-processing"), "commit-ahead", "", "", "permitted"),
        (Commits("before-processing"), "wrong-start", "seek", "", "violation"),
        (Commits(), "wrong-start", "seek", ACT, "permitted"),
        (Commits(), "commit-regression", "", "", "violation"),
        (Commits(), "commit-regression", "own retry", "", "note"),
        (Commits(), "zombie-commit", "", "", "violation"),
        (Outside(), "commit-regression", "", "", "violation"),
        (Outside(), "commit-regression", "own retry", "", "note"),
        (Commits(), "work-after-fencing", "UNKNOWN_MEMBER_ID", "pause was in effect", "permitted"),
        (Progress(), "unconsumed", "", "", "violation"),
        (Progress(), "stuck-partition", "unowned", "", "violation"),
        (Progress(), "stuck-member", "slow handler", "", "violation"),
        (Progress(recovers_within_s=5), "slow-recovery", "step 0 (pause)", "", "violation"),
        (Progress(recovers_within_s=5), "slow-recovery", "step 0 (pause)", "no leader", "permitted"),
        (Progress(), "slow-recovery", "step 0 (pause)", "", "permitted"),
        (Outside(), "slow-recovery", "step 0 (pause)", "", "permitted"),
        (Outside(recovers_within_s=5), "slow-recovery", "step 0 (pause)", "", "violation"),
        (Recovers(first_record_within_s=5), "slow-recovery", "step 0 (pause)", "", "violation"),
        (Recovers(first_record_within_s=5), "slow-recovery", "step 0 (pause)", "no leader", "permitted"),
        (Recovers(first_record_within_s=5), "slow-catch-up", "step 0 (pause)", "", "permitted"),
        (Recovers(first_record_within_s=5), "too-many-duplicates", "step 0 (pause)", "", "permitted"),
        (Recovers(lag_normal_within_s=5), "slow-recovery", "step 0 (pause)", "", "permitted"),
        (Recovers(lag_normal_within_s=5), "slow-catch-up", "step 0 (pause)", "", "violation"),
        (Recovers(lag_normal_within_s=5), "slow-catch-up", "step 0 (pause)", "no leader", "permitted"),
        (Recovers(duplicates_per_disruption=0), "too-many-duplicates", "step 0 (kill)", "", "violation"),
        (Progress(), "collateral-stall", "step 0 (pause)", "", "violation"),
        (Progress(), "collateral-stall", "step 0 (pause)", "rebalance: other members came or went", "permitted"),
        (Progress(), "stuck-partition", "", "no leader", "permitted"),
        (Effects(), "duplicate-effect", "", "", "violation"),
        (Effects(), "missing-effect", "", "", "violation"),
        (Effects("at-least-once"), "missing-effect", "", "", "violation"),
        (Effects("at-least-once"), "duplicate-effect", "", "", "permitted"),
        (Effects("at-least-once"), "stale-write", "", "", "violation"),
        (Effects(), "stale-write", "", "", "violation"),
        (Effects(), "effects-out-of-order", "", "", "permitted"),
        (Effects(in_order=True), "effects-out-of-order", "", "", "violation"),
        (Effects(in_order=True), "effects-out-of-order", "", ACT, "permitted"),
        (Parked(), "dead-letter-twice", "", "", "violation"),
        (Parked("at-least-once"), "dead-letter-twice", "", "", "permitted"),
        (Parked("at-least-once"), "dead-letter-twice", "one owner", "", "violation"),
        (Parked("at-least-once"), "dead-letter-missing", "", "", "violation"),
        (Parked(), "dead-letter-missing", "", ACT, "permitted"),
        (Parked(in_order=True), "per-entity-order", "", "", "violation"),
        (Requeued("at-least-once"), "requeue-missing", "", "", "violation"),
        (Requeued(), "requeue-missing", "", ACT, "permitted"),
        (Requeued(), "requeue-twice", "", "", "violation"),
        (Requeued("at-least-once"), "requeue-twice", "", "", "permitted"),
        (Requeued("at-least-once"), "requeue-twice", "one owner", "", "violation"),
        (Requeued(), "requeued-and-done", "", "", "permitted"),
        (Requeued("at-least-once"), "requeued-and-done", "one owner", "", "violation"),
        (Requeued(), "per-entity-order", "re-queued", "", "permitted"),
        (Requeued(in_order=True), "per-entity-order", "re-queued", "", "violation"),
        (Rebalances(), "unbalanced", "4 and 0", "", "violation"),
        (Rebalances(), "unbalanced", "4 and 0", "subscriptions", "permitted"),
        (Rebalances(balanced=False), "unbalanced", "4 and 0", "", "permitted"),
        (Rebalances(pause_within_s=5), "long-pause", "", "", "violation"),
        (Rebalances(static=True), "rebalance-on-static-bounce", "", "", "violation"),
        (Rebalances(), "rebalance-on-static-bounce", "", "", "permitted"),
        (Rebalances(pause_within_s=5), "long-pause", "", "nobody could", "permitted"),
        (Rebalances(), "not-sticky", "5 instead of 2", "", "permitted"),
        (Rebalances(sticky=True), "not-sticky", "5 instead of 2", "", "violation"),
        (Rebalances(sticky=True), "not-sticky", "5 instead of 2", "subscriptions", "permitted"),
    ],
)
def test_a_promise_judges_an_anomaly(promise: Promise, kind: str, cause: str, excuse: str, expected: str) -> None:
    assert kind in promise.kinds
    assert promise.severity(kind, cause, excuse) == expected


@pytest.mark.parametrize("promise", ALL, ids=str)
def test_every_kind_is_safety_or_liveness_and_unexcused_has_a_severity(promise: Promise) -> None:
    assert set(promise.kinds.values()) <= {"safety", "liveness"}
    assert all(Severity(promise.severity(kind, "", "")) for kind in promise.kinds)


@pytest.mark.parametrize("promise", ALL, ids=str)
def test_a_promise_survives_being_stored(promise: Promise) -> None:
    assert serialization.decode("promise", serialization.encode(promise)) == promise


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"type": "delivery", "level": "exactly-twice"}, "level 'exactly-twice' is unknown; known are at-least-once"),
        ({"type": "delivery", "duplicates": "few"}, "duplicates 'few' is unknown; known are any, only-after-failure"),
        ({"type": "order", "by": "time"}, "by 'time' is unknown; known is key"),
        ({"type": "commits", "order": "never"}, "order 'never' is unknown; known are after-processing, before-"),
        ({"type": "ownership", "of": "records"}, "of 'records' is unknown; known are assignment, processing"),
        ({"type": "parked", "guarantee": "some"}, "Parked guarantee 'some' is unknown; known are exactly-once, "),
        ({"type": "requeued", "guarantee": "some"}, "Requeued guarantee 'some' is unknown; known are exactly-once, "),
        ({"type": "progress", "within_s": 0}, "within_s must be a number of seconds above 0, found 0"),
        ({"type": "progress", "within_s": "soon"}, "within_s must be a number, but found 'soon'"),
        ({"type": "progress", "within_s": True}, "within_s must be a number, but found True"),
        (
            {"type": "progress", "recovers_within_s": -1},
            "recovers_within_s must be a number of seconds above 0, found -1",
        ),
        ({"type": "recovers"}, "needs at least one of first_record_within_s, lag_normal_within_s, duplicates_per_"),
        ({"type": "recovers", "lag_normal_within_s": 0}, "lag_normal_within_s must be a number of seconds above 0"),
        ({"type": "recovers", "first_record_within_s": -1}, "first_record_within_s must be a number of seconds above"),
        ({"type": "recovers", "duplicates_per_disruption": -1}, "must be a whole number of 0 or more, found -1"),
        ({"type": "recovers", "duplicates_per_disruption": 1.5}, "must be a whole number or nothing, but found 1.5"),
    ],
)
def test_a_bad_argument_is_refused_with_a_sentence(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence.replace("(", r"\(")):
        serialization.decode("promise", options)


def test_a_bound_may_be_a_part_of_a_second() -> None:
    assert Progress(within_s=0.5, recovers_within_s=0.25).within_s == 0.5


def test_importing_the_promises_loads_nothing_but_the_standard_library() -> None:
    heavy = "sorted({'pyspark', 'pyarrow', 'numpy'} & {m.partition('.')[0] for m in sys.modules})"
    code = f"import sys, fencepost.checkers; print({heavy})"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_a_pause_that_is_promised_is_no_negative_time() -> None:
    with pytest.raises(ScenarioError, match=r"pause_within_s must be 0 or more seconds, found -1"):
        Rebalances(pause_within_s=-1)
