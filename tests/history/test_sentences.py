"""What a reader sees first: one clear sentence for each kind (who, which partition, which offsets, when, how often)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fencepost.checkers import oracle
from fencepost.checkers.counts import Bounds
from fencepost.checkers.explanations import SENTENCES, example
from fencepost.checkers.tables import Tables, load
from fencepost.model import Anomaly
from history.builder import HistoryBuilder, ns
from history.test_commit_kinds import STORIES

A, B, C = "member-0.1", "member-1.1", "member-2.1"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Of a run in which nothing was."""
    return load(HistoryBuilder(tmp_path_factory.mktemp("runs")).seal())


def told(tables: Tables, anomaly: Anomaly) -> str:
    return str(example(tables, anomaly)["sentence"])


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
            "member-0.1 received offset 4 of orders-0 again inside one assignment, at 3.000 s; the program itself had"
            " moved its position back.",
        ),
        (
            of("rewind", A, to=3.0001),
            "member-0.1 received offset 4 of orders-0 again inside one assignment, at 3.000 s.",
        ),
        (
            of("rewind", A, count=5),
            "member-0.1 received 5 records of orders-0 (offsets 4 to 9) again inside one assignment, from 3.000 s to "
            "3.500 s.",
        ),
        (
            of("rewind", A, to=3, cause="inside one poll"),
            "member-0.1 received offset 4 of orders-0 again inside one poll, at 3.000 s.",
        ),
        (
            of("poll-skip", A, cause="inside one poll"),
            "member-0.1 did not receive offset 4 of orders-0 and went past it inside one poll, from 3.000 s to 3.500 "
            "s.",
        ),
        (
            of("poll-skip", A, cause="seek"),
            "member-0.1 did not receive offset 4 of orders-0 and went past it inside one assignment, from 3.000 s to "
            "3.500 s; the program itself had moved its position.",
        ),
        (
            of("lost-write", "producer-0", count=2),
            "2 records of orders-0 (offsets 4 to 9) were acknowledged to producer-0 (from 3.000 s to 3.500 s), but the "
            "log did not hold them at the audit.",
        ),
        (
            of("duplicate-write", "producer-0", count=2),
            "2 records of orders-0 (offsets 4 to 9), by producer-0 (sent from 3.000 s to 3.500 s), were already in "
            "the log at lower offsets.",
        ),
        (
            of("nonmonotonic-send", "producer-0", to=3, excuse="producer not idempotent"),
            "Offset 4 of orders-0, by producer-0 (sent at 3.000 s), was appended after records that were sent later; "
            "its client is not configured as idempotent.",
        ),
        (
            of("stale-effect", A, B, excuse="not told yet"),
            "member-0.1 finished offset 4 of orders-0 after member-1.1, a later owner, had finished it (from 3.000 s "
            "to 3.500 s); when member-0.1 began it, its client had not reported yet that it had lost orders-0.",
        ),
        (
            of("phantom", A, count=2, to=3),
            "2 records of orders-0 (offsets 4 to 9) were delivered to member-0.1 (at 3.000 s), but no producer sent "
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
            "past it when member-1.1 fetched its committed offset.",
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
            "No member had processed 6 records of orders-0 (offsets 4 to 9) when the drain ended, at 3.500 s; "
            "orders-0 was never assigned to a member.",
        ),
        (
            of("commit-regression", A, to=3),
            "The committed offset of orders-0 went back to 4 (at 3.000 s), by member-0.1.",
        ),
        (
            of("commit-regression", A, B, count=2),
            "The committed offset of orders-0 went back 2 times, to offsets 4 to 9 (from 3.000 s to 3.500 s), by "
            "member-0.1, below the offset that member-1.1 had committed.",
        ),
        (
            of("commit-regression", to=3),
            "The committed offset of orders-0 went back to 4 (at 3.000 s), by a member that the request log does not "
            "identify for certain.",
        ),
        (
            of("commit-ahead", A, count=3),
            "member-0.1 committed past 3 records of orders-0 (offsets 4 to 9) (from 3.000 s to 3.500 s) before any "
            "member had finished them.",
        ),
        (
            of("zombie-commit", A, B, to=3),
            "member-0.1 committed orders-0, which it had owned before, after the coordinator had assigned it to "
            "member-1.1 (offset 4, at 3.000 s).",
        ),
        (
            of("silent-commit-failure", A, cause="UNKNOWN_MEMBER_ID"),
            "The client of member-0.1 reported that its commit of orders-0 (4) had succeeded (from 3.000 s to 3.500 "
            "s), but the coordinator had refused it (UNKNOWN_MEMBER_ID).",
        ),
        (
            of("wrong-start", A, cause="seek"),
            "member-0.1 began an assignment of orders-0 at offset 4 (from 3.000 s to 3.500 s), which no committed "
            "offset explains; the program itself had moved its position.",
        ),
        (
            of("history-incomplete", A, cause="early"),
            "The history of member-0.1 has 1 delivery of orders-0 from before the assignment that it names (from 3.000 "
            "s to 3.500 s).",
        ),
        (
            of("history-incomplete", A, cause="early", count=2),
            "The history of member-0.1 has 2 deliveries of orders-0 from before the assignment that they name (from "
            "3.000 s to 3.500 s).",
        ),
        (
            of("unrecorded-delivery", A, cause="unread"),
            "The history of member-0.1 has no delivery of offset 4 of orders-0, and no other delivery of the "
            "assignment in which it committed past it (from 3.000 s to 3.500 s).",
        ),
        (
            of("unrecorded-delivery", A, cause="effect", count=2),
            "The history of member-0.1 has no delivery of 2 records of orders-0 (offsets 4 to 9), which had an effect.",
        ),
        (
            of("unseen", A, cause="unrecorded"),
            "The group committed past offset 4 of orders-0, in an assignment without any recorded delivery; no member"
            " processed it.",
        ),
        (
            of("stuck-partition", A, cause="forked"),
            "For 0.500 s (from 3.000 s to 3.500 s) records of orders-0 waited, from offset 4 on, and none was "
            "delivered while member-0.1 owned it: its program polled the consumer in a forked process, which receives"
            " no records.",
        ),
        (
            of("history-incomplete", A, cause="hole", count=1234, to=3),
            "The history of member-0.1 lacks 1,234 deliveries of orders-0 (at 3.000 s).",
        ),
        (
            of("history-incomplete", A, cause="twice", to=3),
            "The history of member-0.1 has 1 delivery of orders-0 with the number of an earlier one (at 3.000 s).",
        ),
        (
            of("unseen", A, B, cause="skipped"),
            "The group committed past offset 4 of orders-0, which no member had ever received; no member processed it.",
        ),
        (
            of("unseen", A, B, cause="in-doubt"),
            "The group committed past offset 4 of orders-0, which member-1.1 had begun but not finished; no member "
            "processed it.",
        ),
        (
            of("unseen", A, B, cause="committed-unprocessed", count=2),
            "The group committed past 2 records of orders-0 (offsets 4 to 9), which member-1.1 had received but not "
            "finished; no member processed them.",
        ),
        (
            of("unseen", A, B, cause="in-doubt", excuse="declared act: set-offset"),
            "The group committed past offset 4 of orders-0, which member-1.1 had begun but not finished; no member "
            "processed it (declared act: set-offset).",
        ),
        (
            of("redelivery", A, count=2, to=3),
            "2 records of orders-0 (offsets 4 to 9) were finished by member-0.1 in one assignment and again in a "
            "later one (at 3.000 s): nothing shows that member-0.1 had released the partition.",
        ),
        (
            of("redelivery", A, B, to=3, excuse="former owner died"),
            "Offset 4 of orders-0 was finished by member-0.1 and again by member-1.1, the later owner (at 3.000 s): "
            "member-0.1 died.",
        ),
        (
            of("redelivery", A, B, to=3, excuse="former owner lost it"),
            "Offset 4 of orders-0 was finished by member-0.1 and again by member-1.1, the later owner (at 3.000 s): "
            "member-0.1 had lost the partition before it could commit.",
        ),
        (
            of("redelivery", A, B, to=3, excuse="former owner was removed"),
            "Offset 4 of orders-0 was finished by member-0.1 and again by member-1.1, the later owner (at 3.000 s): "
            "member-0.1 had been removed from the group before it could commit.",
        ),
        (
            of("redelivery", A, B, to=3, excuse="commit failed"),
            "Offset 4 of orders-0 was finished by member-0.1 and again by member-1.1, the later owner (at 3.000 s): "
            "the commit failed when member-0.1 released the partition.",
        ),
        (
            of("avoidable-redelivery", A, B, to=3),
            "Offset 4 of orders-0 was finished by member-0.1 and again by member-1.1, the later owner (at 3.000 s), "
            "although member-0.1 released the partition cleanly.",
        ),
        (
            of("redelivery-loop", A, count=2, to=3),
            "2 records of orders-0 (offsets 4 to 9) were delivered again and again while the committed offset did not"
            " advance (at 3.000 s), the last time to member-0.1.",
        ),
        (
            of("poll-skip", A, count=2, to=3),
            "member-0.1 did not receive 2 records of orders-0 (offsets 4 to 9) and went past them inside one "
            "assignment, at 3.000 s.",
        ),
        (
            of("assignment-overlap", A, B, excuse="zombie"),
            "member-0.1 and member-1.1 both owned orders-0 for 0.500 s, from 3.000 s to 3.500 s; member-0.1 had been "
            "removed from the group and could not know that yet.",
        ),
        (
            of("assignment-overlap", A, B, count=1234, to=3),
            "member-0.1 and member-1.1 both owned orders-0 1,234 times, at 3.000 s.",
        ),
        (
            of("processing-overlap", A, B),
            "member-0.1 was processing offset 4 of orders-0 while member-1.1 was processing records of orders-0, from "
            "3.000 s to 3.500 s.",
        ),
        (
            of("processing-overlap", A, B, count=2, excuse="in flight when frozen"),
            "member-0.1 was processing 2 records of orders-0 (offsets 4 to 9) while member-1.1 was processing records "
            "of orders-0, from 3.000 s to 3.500 s; member-0.1 had begun them before it was frozen.",
        ),
        (
            of("stale-effect", A, B, to=3),
            "member-0.1 finished offset 4 of orders-0 after member-1.1, a later owner, had finished it (at 3.000 s); "
            "member-0.1 had begun it after its own callback for orders-0 had returned.",
        ),
        (
            of("stale-effect", A, B, to=3, excuse="in flight when frozen"),
            "member-0.1 finished offset 4 of orders-0 after member-1.1, a later owner, had finished it (at 3.000 s); "
            "member-0.1 had begun it before it was frozen.",
        ),
        (
            of("stale-effect", A, B, to=3, count=2, excuse="begun as its owner"),
            "member-0.1 finished 2 records of orders-0 (offsets 4 to 9) after member-1.1, a later owner, had finished "
            "them (at 3.000 s); member-0.1 had begun them as the owner of orders-0.",
        ),
        (
            of("processing-after-revocation", A, to=3, cause="lost"),
            "member-0.1 began to process offset 4 of orders-0 (at 3.000 s) after its own lost callback for orders-0 "
            "had returned.",
        ),
        (
            of("stuck-partition", A, cause="paused"),
            "For 0.500 s (from 3.000 s to 3.500 s) records of orders-0 waited, from offset 4 on, and none was "
            "delivered while member-0.1 owned it and had itself paused it.",
        ),
        (
            of("collateral-stall", A, cause="step 3 (pause)", excuse="paused by its owner"),
            "While step 3 (pause) hit other members, for 0.500 s (from 3.000 s to 3.500 s) records of orders-0 "
            "waited, from offset 4 on, and none was delivered while member-0.1 owned it; paused by its owner.",
        ),
        (
            of("stuck-partition", count=1234),
            "1,234 times (from 3.000 s to 3.500 s) records of orders-0 waited, from offset 4 on, and none was "
            "delivered while no member owned it.",
        ),
        (
            of("slow-recovery", A, cause="step 3 (pause)"),
            "After step 3 (pause) was over, for 0.500 s (from 3.000 s to 3.500 s) records of orders-0 waited, from "
            "offset 4 on, and none was delivered while member-0.1 owned it.",
        ),
        (
            of("collateral-stall", A, cause="step 3 (pause)", excuse="no leader"),
            "While step 3 (pause) hit other members, for 0.500 s (from 3.000 s to 3.500 s) records of orders-0 "
            "waited, from offset 4 on, and none was delivered while member-0.1 owned it; it had no leader for a part "
            "of that time.",
        ),
        (
            of("collateral-stall", A, cause="step 3 (pause)", excuse="rebalance: other members came or went"),
            "While step 3 (pause) hit other members, for 0.500 s (from 3.000 s to 3.500 s) records of orders-0 "
            "waited, from offset 4 on, and none was delivered while member-0.1 owned it; rebalance: other members "
            "came or went.",
        ),
        (
            of("unconsumed", A),
            "No member had processed offset 4 of orders-0 when the drain ended, at 3.500 s; the last owner of "
            "orders-0 was member-0.1.",
        ),
        (
            of("commit-regression", A, count=1234, cause="own retry"),
            "The committed offset of orders-0 went back 1,234 times, to offsets 4 to 9 (from 3.000 s to 3.500 s), by "
            "member-0.1; the same member corrected that before any member fetched it.",
        ),
        (
            of("commit-beyond-end", A, to=3),
            "member-0.1 committed offset 4 of orders-0 (at 3.000 s), above every record that the log can have held "
            "then.",
        ),
        (
            of("off-by-one", count=2, to=3),
            "The final commit of orders-0 (4 to 9, at 3.000 s), by a member that the request log does not identify "
            "for certain, is the offset of the last finished record instead of the next one to read, as in every "
            "partition.",
        ),
        (
            of("foreign-commit", A, B, count=1234),
            "member-0.1 committed orders-0 after the coordinator had assigned it to member-1.1 (1,234 times, offsets "
            "4 to 9, from 3.000 s to 3.500 s).",
        ),
        (
            of("work-after-fencing", A, to=3, cause="ILLEGAL_GENERATION"),
            "member-0.1 continued to process offset 4 of orders-0 (at 3.000 s) although its commit had been refused "
            "(ILLEGAL_GENERATION) and it had not rejoined.",
        ),
        (
            of("work-after-fencing", A, cause="ILLEGAL_GENERATION", excuse="pause was in effect"),
            "member-0.1 continued to process offset 4 of orders-0 (from 3.000 s to 3.500 s) although its commit had "
            "been refused (ILLEGAL_GENERATION) and it had not rejoined; pause was in effect.",
        ),
        (
            of("acknowledged-commit-missing", A, count=1234),
            "The client of member-0.1 reported that 1,234 commits of orders-0 (4 to 9) had succeeded (from 3.000 s to"
            " 3.500 s), but the coordinator has no record of it.",
        ),
        (
            of("wrong-start", A, count=1234),
            "member-0.1 began an assignment of orders-0 1,234 times at offsets 4 to 9 (from 3.000 s to 3.500 s), "
            "which no committed offset explains.",
        ),
        (
            of("coordinator-overlap", A, B, C, to=3),
            "The coordinator's records assigned orders-0 to member-0.1, member-1.1 and member-2.1 at once, at 3.000 s.",
        ),
        (
            of("coordinator-overlap", A, B, count=1234),
            "The coordinator's records assigned orders-0 to member-0.1 and member-1.1 at once 1,234 times, from 3.000"
            " s to 3.500 s.",
        ),
        (
            of("generation-regression", A, B),
            "The group's generation went back (from 3.000 s to 3.500 s); its members were member-0.1 and member-1.1.",
        ),
        (
            of("generation-regression", count=1234, to=3),
            "The group's generation went back, 1,234 times (at 3.000 s); its members were unknown members.",
        ),
        (
            of("assignment-mismatch", A),
            "The coordinator had assigned orders-0 to member-0.1 at 3.000 s and accepted its heartbeats since, but at"
            " 3.500 s, in a stable group, member-0.1 did not own it according to its callbacks.",
        ),
        (
            of("assignment-mismatch", A, B),
            "The coordinator had assigned orders-0 to member-0.1 at 3.000 s and accepted its heartbeats since, but at"
            " 3.500 s, in a stable group, member-0.1 did not own it according to its callbacks; according to the "
            "callbacks, member-1.1 owned it.",
        ),
        (
            of("callback-imbalance", A, cause="assigned twice"),
            "member-0.1 was assigned orders-0 again while it owned it, from 3.000 s to 3.500 s.",
        ),
        (
            of("callback-imbalance", A, cause="given up twice", count=1234, to=3),
            "member-0.1 received a revoked or lost callback for orders-0 1,234 times although it did not own it, at "
            "3.000 s.",
        ),
        (
            of("early-assignment", A, B),
            "member-0.1 was still releasing orders-0 when member-1.1 was assigned it, from 3.000 s to 3.500 s.",
        ),
        (
            of("early-assignment", A, B, excuse="zombie", count=2),
            "member-0.1 was still releasing orders-0 when member-1.1 was assigned it 2 times, from 3.000 s to 3.500 "
            "s; member-0.1 had been removed from the group.",
        ),
        (
            of("early-assignment", A, B, cause="generation", count=2),
            "member-0.1 was still releasing its partitions of the previous generation when member-1.1 was assigned "
            "orders-0 2 times, from 3.000 s to 3.500 s.",
        ),
        (
            of("needless-revocation", A, count=2),
            "Orders-0 was revoked from member-0.1 and assigned to it again 2 times, from 3.000 s to 3.500 s, although"
            " nothing in the group had changed.",
        ),
        (
            of("unbalanced", A, B, cause="4 and 0"),
            "While the group was stable, from 3.000 s to 3.500 s, member-0.1 had 4 partitions and member-1.1 had 0.",
        ),
        (
            of("missing-effect", A, count=3),
            "3 records of orders-0 (offsets 4 to 9) had no effect, although member-0.1 committed past them at 3.000 s.",
        ),
        (
            of("missing-effect"),
            "Offset 4 of orders-0 had no effect, although the group committed past it.",
        ),
        (
            of("duplicate-effect", B, A),
            "Offset 4 of orders-0 had two effects: the first by member-0.1 at 3.000 s, the second by member-1.1 at "
            "3.500 s.",
        ),
        (of("duplicate-effect"), "Offset 4 of orders-0 had more than one effect."),
        (
            of("dead-letter-missing", A, count=3),
            "3 records of orders-0 (offsets 4 to 9) could not be processed and had no dead letter, although "
            "member-0.1 committed past them at 3.000 s.",
        ),
        (
            of("dead-letter-missing"),
            "Offset 4 of orders-0 could not be processed and had no dead letter, although the group committed past it.",
        ),
        (
            of("dead-letter-twice", B, A),
            "Offset 4 of orders-0 had two dead letters: the first by member-0.1 at 3.000 s, the second by member-1.1 "
            "at 3.500 s.",
        ),
        (
            of("dead-letter-twice", A, A, cause="one owner"),
            "Offset 4 of orders-0 had two dead letters: the first by member-0.1 at 3.000 s, the second by member-0.1 "
            "at 3.500 s; member-0.1 had owned the partition all the time.",
        ),
        (
            of("per-entity-order", A, B, count=3),
            "member-0.1 processed 3 records of orders-0 (offsets 4 to 9) at 3.500 s, although an earlier record of "
            "the same key, parked as a dead letter by member-1.1 at 3.000 s, had not been retried.",
        ),
        (
            of("rebalance-on-static-bounce", A, B, topic="", partition=-1),
            "member-0.1 returned under its static id as member-1.1, from 3.000 s to 3.500 s, and the group rebalanced"
            " anyway.",
        ),
        (
            of("long-pause", A, B),
            "No member owned orders-0 for 0.500 s (from 3.000 s to 3.500 s), between member-0.1 and member-1.1.",
        ),
        (
            of("long-pause", A, count=2, excuse="nobody could"),
            "No member owned orders-0 2 times for too long (from 3.000 s to 3.500 s), between two assignments to "
            "member-0.1; no member could have owned it all the time.",
        ),
        (
            of("per-entity-order", A),
            "member-0.1 processed offset 4 of orders-0 at 3.500 s, although an earlier record of the same key, parked"
            " as a dead letter at 3.000 s, had not been retried.",
        ),
        (
            of("per-entity-order", A, B, cause="re-queued"),
            "member-0.1 processed offset 4 of orders-0 at 3.500 s, although an earlier record of the same key had "
            "been re-queued behind it by member-1.1 at 3.000 s.",
        ),
        (
            of("requeue-missing", A, count=3),
            "3 records of orders-0 (offsets 4 to 9) were recorded as re-queued, but the log has no copies of them, "
            "although member-0.1 committed past them at 3.000 s.",
        ),
        (
            of("requeue-missing"),
            "Offset 4 of orders-0 was recorded as re-queued, but the log has no copy of it, although the group "
            "committed past it.",
        ),
        (
            of("requeue-twice", B, A),
            "Offset 4 of orders-0 was re-queued twice: by member-0.1 at 3.000 s and by member-1.1 at 3.500 s.",
        ),
        (
            of("requeued-and-done", A, cause="one owner"),
            "Offset 4 of orders-0 was re-queued by member-0.1 at 3.000 s, and also processed by member-0.1 at 3.500 "
            "s; member-0.1 had owned the partition all the time.",
        ),
        (
            of("requeued-and-done", A, B, count=3),
            "3 records of orders-0 (offsets 4 to 9) were re-queued by member-0.1 at 3.000 s, and also processed by "
            "member-1.1 at 3.500 s.",
        ),
        (
            of("stale-write", A, B),
            "member-0.1 wrote the effect of offset 4 of orders-0 at 3.500 s, although member-1.1, the next holder of "
            "the lease of orders-0, had written at 3.000 s.",
        ),
        (
            of("not-sticky", A, B, cause="5 instead of 2", excuse="subscriptions"),
            "5 instead of 2 partitions were moved away from members that stayed: member-0.1 and member-1.1, from "
            "3.000 s to 3.500 s; a member had changed its subscription.",
        ),
        (
            of("lost-reported-as-revoked", A, cause="UNKNOWN_MEMBER_ID"),
            "member-0.1 knew at 3.000 s that it was fenced (UNKNOWN_MEMBER_ID), and its callback said at 3.500 s that"
            " orders-0 was revoked, not lost.",
        ),
        (
            of("duplicate-instance", A, B),
            "member-0.1 and member-1.1 have one static id, and the coordinator accepted requests of both, from 3.000 "
            "s to 3.500 s: the older one was not fenced.",
        ),
        (
            of("orphaned-partition"),
            "No member owned orders-0 for 0.500 s (from 3.000 s to 3.500 s), according to the coordinator's log and "
            "all callbacks.",
        ),
        (
            of("orphaned-partition", count=1234, excuse="no leader"),
            "No member owned orders-0 1,234 times (from 3.000 s to 3.500 s), according to the coordinator's log and "
            "all callbacks; it had no leader for a part of that time.",
        ),
        (
            of("never-stable", A, count=1234),
            "The group was never stable for 0.500 s (from 3.000 s to 3.500 s): 1,234 rebalances, the last of "
            "member-0.1.",
        ),
        (
            of("dead-member", A),
            "member-0.1 ended by itself at 3.500 s; its last sign of life was at 3.000 s.",
        ),
        (
            of("dead-member", A, cause="FENCED_INSTANCE_ID"),
            "member-0.1 ended by itself at 3.500 s; its last sign of life was at 3.000 s; its client had reported a "
            "fatal error (FENCED_INSTANCE_ID).",
        ),
        (
            of("something-new", A, B, count=2),
            "Something-new: 2 records of orders-0 (offsets 4 to 9) (member-0.1, member-1.1), from 3.000 s to 3.500 s.",
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, Anomaly) else "",
)
def test_a_sentence_says_it_all(tables: Tables, anomaly: Anomaly, sentence: str) -> None:
    assert told(tables, anomaly) == sentence


def test_each_sentence_has_its_place_and_no_loose_end(tmp_path: Path) -> None:
    for story in STORIES:
        h = HistoryBuilder(tmp_path / story.__name__, 2)
        story(h, True)
        tables = load(h.seal())
        for anomaly in oracle.detect(tables.run, tables, Bounds())[0]:
            if anomaly.kind in SENTENCES:
                sentence = example(tables, anomaly)["sentence"]
                assert "orders-" in sentence, sentence
                assert not re.search(r"an unknown|unknown members|  |\(\)|-\d+\.\d+ s\b|\.\.", sentence), sentence


def test_a_seek_of_the_program_is_a_witness_of_the_rewind(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    h.write(10)
    a = h.member(0)
    a.assigned(1)
    a.process(range(8), 2)
    a.seek(5, 4)
    a.process(range(5, 10), 5)
    tables = load(h.seal())
    anomaly = oracle.detect(tables.run, tables, Bounds())[0][0]
    assert "4.000 s: the program of member-0.1 moved its position to 5" in example(tables, anomaly)["witnesses"]


def test_a_partition_without_a_name_is_told_as_such(tables: Tables) -> None:
    sentence = told(tables, Anomaly("rewind", "", -1, (A,), "", "", 4, 4, ns(3), ns(3)))
    assert sentence.startswith("member-0.1 received offset 4 of a partition whose name is lost again inside")
