"""What this library's client does itself to a correct group, and what shows that it did: so no checker is to blame.

Each was found in runs of correct groups, most of them on a machine so busy that brokers answered late, and looked up in
the history of such a run; the README tells of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cluster.contract import BLUR_NS, History, Row
from fencepost.faults import AddPartitions, MoveLeaders, RecreateTopic

GONE = " (deleted)"  # what a verdict calls the topic whose name another one has
Example = dict[str, Any]  # of a finding, as the verdict tells it


@dataclass(frozen=True)
class Defect:
    """One of them.

    Attributes:
        kinds: of the findings that may be its doing.
        shown: whether the history, and the faults that happened, show that an example is.
    """

    about: str
    kinds: frozenset[str]
    shown: Callable[[History, set[type], Example], bool]


def writes_twice(history: History, happened: set[type], example: Example) -> bool:
    return MoveLeaders in happened


def joins_inside_a_callback(history: History, happened: set[type], example: Example) -> bool:
    """Its request was sent before the callback had ended, with which it gives up, or takes, what it has."""
    if AddPartitions not in happened or history.protocol != "eager":
        return False
    callbacks = [e for e in history.kinds("assigned", "revoked") if e["actor"] in example["members"]]
    joins = [r for r in history.requests if r["api"] == "JOIN_GROUP"]
    return any(
        r["client_id"] == e["actor"] and e["begin_ns"] - BLUR_NS < r["start_ns"] < e["end_ns"] - BLUR_NS
        for e in callbacks
        for r in joins
        if e["end_ns"] - e["begin_ns"] > 2 * BLUR_NS
    )


def keeps_what_it_had(history: History, happened: set[type], example: Example) -> bool:
    """As the one before; what it had then was not revoked before it was assigned other partitions."""
    callbacks = [e for e in history.kinds("assigned", "revoked", "lost") if e["actor"] in example["members"]]
    by_member = {actor: [e for e in callbacks if e["actor"] == actor] for actor in example["members"]}
    twice = any(
        a["kind"] == b["kind"] == "assigned" and a["begin_ns"] < b["begin_ns"]
        for mine in by_member.values()
        for a, b in pairwise(mine)
    )
    return twice and joins_inside_a_callback(history, happened, example)


def did_not_know_yet_where_it_begins(history: History, happened: set[type], example: Example) -> bool:
    """Between a callback that gave it the partition and the first record of it there was another callback, or a pause;
    or one before a record that came after a gap, as the log had begun to begin there. With both the client counts on,
    and takes the answer to what it had asked before for outdated. The log's first record is given once more then."""
    tp = (example["topic"], example["partition"])
    begins = min((row["offset"] for row in history.log if row["tp"] == tp), default=-1)
    if sum(row["tp"] == tp and row["offset"] == begins for row in history.delivered) < 2:
        return False
    for held in (h for h in history.held if h.actor in example["members"] and h.tp == tp):
        rows = history.by_interval.get(held[:3], [])
        asks = [(held.end_ns, rows[0]["delivered_ns"] if rows else example["to_ns"])]
        asks += [(a["delivered_ns"], b["delivered_ns"]) for a, b in pairwise(rows) if b["offset"] > a["offset"] + 1]
        mine = [e for e in history.kinds("assigned", "revoked", "paused") if e["actor"] == held.actor]
        moved = [e["begin_ns"] for e in mine if e["kind"] != "paused" or (e["topic"], e["partition"]) == tp]
        if any(since < at < until for since, until in asks for at in moved):
            return True
    return False


def returns_to_the_former_topic(history: History, happened: set[type], example: Example) -> bool:
    """Each time that it pauses the partition, and is then sent to the beginning, as there is nothing where it was."""
    tp = (example["topic"], example["partition"])
    anew = {row["delivered_ns"] for row in history.delivered if row["tp"] == tp and not row["offset"]}
    pauses = [e for e in history.kinds("paused") if (e["topic"], e["partition"]) == tp]
    paused = [e["begin_ns"] for e in pauses if e["actor"] in example["members"]]
    between = [any(a < at <= b for at in paused) for a, b in pairwise(sorted(anew))]
    return RecreateTopic in happened and sum(between) > 1


def tried_an_older_commit_again(history: History, happened: set[type], example: Example) -> bool:
    """One that was not waited for had no answer yet when the next one, which was, had; or an automatic one is of an
    offset that the member was past: from what comes before the highest commit on, it was given nothing below that."""
    tp, members = (example["topic"], example["partition"]), example["members"]
    mine = [e for e in history.kinds("commit") if e["actor"] in members and (e["topic"], e["partition"]) == tp]
    late = [e for e in mine if e["offset"] == example["offset"]]
    if any(
        older["begin_ns"] < newer["begin_ns"] < newer["end_ns"] < older["end_ns"]
        for older in late
        if older["detail"].get("mode") == "async"
        for newer in mine
    ):
        return True
    highest = max((to for at, to in history.committed.get(tp, ()) if at < example["to_ns"]), default=-1)
    given = [row for row in history.delivered if row["tp"] == tp and row["actor"] in members]
    past_ns = min((row["delivered_ns"] for row in given if row["offset"] == highest - 1), default=example["to_ns"])
    since = [row["offset"] for row in given if past_ns < row["delivered_ns"] < example["to_ns"]]
    automatic = any(e["detail"].get("mode") == "auto" for e in late)
    return automatic and past_ns < example["to_ns"] and all(highest <= offset for offset in since)


def joins_without_saying_how(history: History, happened: set[type], example: Example) -> bool:
    """It asks to join as who has been a member before: without its times, which brokers refuse for good."""
    mine = [r for r in history.requests if r["client_id"] in example["members"]]
    return any(r["error"] == "INVALID_REQUEST" and joins_anew(r) for r in mine)


def joins_anew(request: Row) -> bool:
    """Without its times: an epoch of 0 wants all of them."""
    asked = request["request"]
    beats = request["api"] == "CONSUMER_GROUP_HEARTBEAT"
    return beats and asked["memberEpoch"] == 0 and asked["rebalanceTimeoutMs"] == -1


def asked_who_had_been_the_coordinator(history: History, happened: set[type], example: Example) -> bool:
    """For its committed offsets; the member hears of it as an error."""
    errors = [e for e in history.kinds("error") if e["actor"] in example["members"]]
    told = "Failed to fetch committed offsets for 0 partition(s)"
    return any(e["error"] == "NOT_COORDINATOR" and e["detail"]["text"].startswith(told) for e in errors)


DEFECTS = (
    Defect(
        "an idempotent producer writes a batch twice while leaders move (confluentinc/librdkafka#4953)",
        frozenset({"duplicate-write"}),
        writes_twice,
    ),
    Defect(
        "an eager member whose topic grows during a callback joins again before that has ended",
        frozenset({"callback-ledger", "early-assignment", "zombie-commit"}),
        joins_inside_a_callback,
    ),
    Defect(
        "an eager member that has joined again during a callback is not told to give up what it had",
        frozenset({"assignment-overlap"}),
        keeps_what_it_had,
    ),
    Defect(
        "where a partition without a committed offset begins is asked once more, half a second after an answer that "
        "came too late for the assignment, or pause, before; then the position goes back to that",
        frozenset({"rewind", "wrong-start", "poll-skip", "redelivery-below-commit"})
        | {"commit-regression", "duplicate-effect", "dead-letter-twice"},  # what follows from these
        did_not_know_yet_where_it_begins,
    ),
    Defect(
        "who pauses a partition of a topic that was made again goes back to its position in the former one",
        frozenset({"redelivery-loop"}),
        returns_to_the_former_topic,
    ),
    Defect(
        "an asynchronous, or automatic, commit whose connection was cut is tried again after one of a later offset",
        frozenset({"commit-regression"}),
        tried_an_older_commit_again,
    ),
    Defect(
        "who has not polled in time while its heartbeats were held asks to join without its times, and gives up "
        "(confluentinc/librdkafka#5541)",
        frozenset({"dead-member"}),
        joins_without_saying_how,
    ),
    Defect(
        "who asked a former coordinator for its committed offsets never fetches (confluentinc/librdkafka#5586)",
        frozenset({"stuck-partition", "unconsumed"}),
        asked_who_had_been_the_coordinator,
    ),
)


def behind(history: History, happened: set[type], kind: str, example: Example) -> str:
    """The defect whose doing an example of a finding is; empty: none of these."""
    example = example | {"topic": example.get("topic", "").removesuffix(GONE)}  # events know names alone
    return next((d.about for d in DEFECTS if kind in d.kinds and d.shown(history, happened, example)), "")
