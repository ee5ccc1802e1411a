"""What a client does itself to a correct group, and what shows that it did: so no checker is to blame.

Each was found in runs of correct groups, most of them on a machine so busy that brokers answered late, and looked up in
the history of such a run; docs/read-a-report.md describes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cluster.contract import BLUR_NS, MS, NEVER, History, Row

LIBRARY = "librdkafka 2.16.0"  # of no other release of a library anything is said here, but for
KAFKA_PYTHON = "kafka-python 2.3.3"
POLL_NS = 100 * MS  # a poll of our loop waits no longer
AT_ONCE_NS = 1000 * MS  # what follows from something in the same client
SOON_NS = 15_000 * MS  # what somebody did shows in the group within: its session, and a rebalance
LOSES_CONNECTIONS = ("refuse", "cut_connections", "hold", "black_hole", "move_coordinator")
GONE = " (deleted)"  # what a verdict calls the topic whose name another one has
Example = dict[str, Any]  # of a finding, as the verdict tells it


@dataclass(frozen=True)
class Defect:
    """One of them.

    Attributes:
        kinds: of the findings that may be its doing.
        shown: whether the history shows that an example is.
        library: whose it is.
    """

    about: str
    kinds: frozenset[str]
    shown: Callable[[History, Example], bool]
    library: str = LIBRARY


def writes_twice(history: History, example: Example) -> bool:
    """Leaders had moved by then; that a batch is there twice is what it, who is known, is accused of."""
    return bool(example["members"]) and happened(history, "move_leaders", example)


def hangs_in_sending_offsets(history: History, example: Example) -> bool:
    """Connections had been lost, or the coordinator had moved; its stack shows the call, and brokers got such requests
    before alone."""
    sent = [r for r in history.requests if r["api"] == "TXN_OFFSET_COMMIT" and r["client_id"] in example["members"]]
    lost = any(happened(history, fault, example) for fault in LOSES_CONNECTIONS)
    in_it = lost and "in send_offsets_to_transaction" in example["sentence"]
    return in_it and bool(sent) and all(request["start_ns"] < example["from_ns"] for request in sent)


def joins_with_what_it_has(history: History, example: Example) -> bool:
    """Its request was sent before it had given up what it has, or while it was still being told of that."""
    if history.protocol != "eager" or not happened(history, "add_partitions", example):
        return False
    callbacks = told(history, example, "assigned", "revoked", "lost")
    for join in (r for r in history.requests if r["api"] == "JOIN_GROUP" and soon(r["start_ns"], example)):
        before = [
            e for e in callbacks if e["actor"] == join["client_id"] and e["begin_ns"] < join["start_ns"] + BLUR_NS
        ]
        if before and (before[-1]["kind"] == "assigned" or before[-1]["end_ns"] > join["start_ns"] + BLUR_NS):
            return True
    return False


def keeps_what_it_had(history: History, example: Example) -> bool:
    """As the one before; what it had then was not revoked before it was assigned other partitions."""
    callbacks = told(history, example, "assigned", "revoked", "lost")
    by_member = {actor: [e for e in callbacks if e["actor"] == actor] for actor in example["members"]}
    twice = any(
        a["kind"] == b["kind"] == "assigned" and a["begin_ns"] < b["begin_ns"]
        for mine in by_member.values()
        for a, b in pairwise(mine)
    )
    return twice and joins_with_what_it_has(history, example)


def did_not_know_yet_where_it_begins(history: History, example: Example) -> bool:
    """Between a callback that gave it the partition and the first record of it there was another callback, or a pause;
    or one before a record that came after a gap, or the end of an assignment, as the log had begun to begin above what
    it was given. With both the client counts on, and takes the answer to what it had asked before for outdated. It is
    given the log's first record after that, which had been given before."""
    tp = (example["topic"], example["partition"])
    begins = min((row["offset"] for row in history.log if row["tp"] == tp), default=-1)
    firsts = [row for row in history.delivered if row["tp"] == tp and row["offset"] == begins]
    _, *more = sorted(firsts, key=lambda row: int(row["delivered_ns"])) or [None]
    again = [row["delivered_ns"] for row in more if row["actor"] in example["members"]]
    again_ns = max((at for at in again if at < example["to_ns"] + BLUR_NS), default=0)
    for held in (h for h in history.held if h.actor in example["members"] and h.tp == tp):
        rows = history.by_interval.get(held[:3], [])
        asks = [(held.end_ns, rows[0]["delivered_ns"] if rows else example["to_ns"])]
        asks += [(a["delivered_ns"], b["delivered_ns"]) for a, b in pairwise(rows) if b["offset"] > a["offset"] + 1]
        asks += [(row["delivered_ns"], again_ns) for row in rows[-1:] if row["offset"] + 1 < begins]
        mine = [e for e in history.kinds("assigned", "revoked", "paused") if e["actor"] == held.actor]
        moved = [e["begin_ns"] for e in mine if e["kind"] != "paused" or (e["topic"], e["partition"]) == tp]
        if any(since < at < until and at < again_ns < at + SOON_NS for since, until in asks for at in moved):
            return True
    return False


def returns_to_the_former_topic(history: History, example: Example) -> bool:
    """Each time that it pauses the partition, and is then sent to the beginning, as there is nothing where it was."""
    tp = (example["topic"], example["partition"])
    anew = {row["delivered_ns"] for row in history.delivered if row["tp"] == tp and not row["offset"]}
    paused = [e["begin_ns"] for e in told_of_it(history, example, "paused")]
    between = [any(a < at <= b for at in paused) for a, b in pairwise(sorted(anew))]
    return happened(history, "recreate_topic", example) and sum(between) > 1


def goes_on_from_the_former_topic(history: History, example: Example) -> bool:
    """As the one before, where the new topic has got so far: what is skipped is all up to where it had been. It was
    given the last of that in the former one, as nobody was in the new one."""
    last, mine = example["last_offset"], given(history, example)
    paused = [e["begin_ns"] for e in told_of_it(history, example, "paused")]
    jumped = any(
        a["offset"] + 1 == example["offset"]
        and b["offset"] == last + 1
        and any(a["delivered_ns"] < at < b["delivered_ns"] for at in paused)
        for a, b in pairwise(mine)
    )
    return happened(history, "recreate_topic", example) and jumped and any(row["offset"] == last for row in mine)


def tried_an_older_commit_again(history: History, example: Example) -> bool:
    """One that was not waited for had no answer yet when the next one, which was, had; or an automatic one is of an
    offset that the member was past: from what comes before the highest commit on, it was given nothing below that."""
    tp, mine = (example["topic"], example["partition"]), told_of_it(history, example, "commit")
    late = [e for e in mine if e["offset"] == example["offset"]]
    if any(
        older["begin_ns"] < newer["begin_ns"] < newer["end_ns"] < older["end_ns"]
        for older in late
        if older["detail"].get("mode") == "async"
        for newer in mine
    ):
        return True
    highest = max((to for at, to in history.committed.get(tp, ()) if at < example["to_ns"]), default=-1)
    rows = given(history, example)
    past_ns = min((row["delivered_ns"] for row in rows if row["offset"] == highest - 1), default=example["to_ns"])
    since = [row["offset"] for row in rows if past_ns < row["delivered_ns"] < example["to_ns"]]
    automatic = any(e["detail"].get("mode") == "auto" for e in late)
    return automatic and past_ns < example["to_ns"] and all(highest <= offset for offset in since)


def joins_without_saying_how(history: History, example: Example) -> bool:
    """It asks to join as who has been a member before: without its times, which brokers refuse for good."""
    mine = [r for r in history.requests if r["client_id"] in example["members"]]
    return any(r["error"] == "INVALID_REQUEST" and joins_anew(r) and soon(r["start_ns"], example) for r in mine)


def joins_anew(request: Row) -> bool:
    """Without its times: an epoch of 0 wants all of them."""
    asked = request["request"]
    beats = request["api"] == "CONSUMER_GROUP_HEARTBEAT"
    return beats and asked["memberEpoch"] == 0 and asked["rebalanceTimeoutMs"] == -1


def asked_who_had_been_the_coordinator(history: History, example: Example) -> bool:
    """For its committed offsets, once it had been assigned the partition, of which it was given nothing from then on;
    the member hears of it as an error."""
    about = "Failed to fetch committed offsets for 0 partition(s)"
    return any(
        error["error"] == "NOT_COORDINATOR"
        and error["detail"]["text"].startswith(about)
        and was_given_nothing(history, example, error)
        for error in told(history, example, "error")
    )


def was_given_nothing(history: History, example: Example, error: Row) -> bool:
    """Whether who was told of it had been assigned the partition before, and was given nothing of it from then on."""
    assigned = [
        int(e["begin_ns"])
        for e in told_of_it(history, example, "assigned")
        if e["actor"] == error["actor"] and e["begin_ns"] < error["begin_ns"] < example["to_ns"]
    ]
    mine = [row["delivered_ns"] for row in given(history, example) if row["actor"] == error["actor"]]
    return bool(assigned) and not any(max(assigned) < at_ns < example["to_ns"] for at_ns in mine)


def forgot_that_it_joined(history: History, example: Example) -> bool:
    """One of its members, or who was given its partition, told that it gave up what it had, to join by itself, and is
    given records all the same before it is told of partitions again. The example is of that time, or shows soon after.

    It joins so as its subscription changed, or a topic has other partitions. Either the group was not ready within the
    poll in which it joined, or it never joined, as the topic was as before when it had told.
    """
    topic, partition = example["topic"], example["partition"]
    for gave_up in history.kinds("revoked"):
        who, at = gave_up["actor"], int(gave_up["begin_ns"])
        mine = [e["begin_ns"] for e in history.kinds("assigned") if e["actor"] == who and e["begin_ns"] > at]
        until_ns = min(mine, default=NEVER)
        polled = (row["delivered_ns"] for row in history.delivered if row["actor"] == who)
        asked = [r for r in history.requests if r["client_id"] == who and at - BLUR_NS < r["start_ns"] < until_ns]
        join, sync = (next((r for r in asked if r["api"] == api), None) for api in ("JOIN_GROUP", "SYNC_GROUP"))
        if (
            example["from_ns"] < until_ns + SOON_NS
            and example["to_ns"] > at
            and (who in example["members"] or (sync and partition in (sync["assignment"] or {}).get(topic, ())))
            and any(at + AT_ONCE_NS < at_ns < until_ns for at_ns in polled)
            and (not join or join["end_ns"] - join["start_ns"] > POLL_NS)
            and wished_to_join(history, who, at)
        ):
            return True
    return False


def wished_to_join(history: History, who: str, at: int) -> bool:
    """Whether it had just changed its subscription then, or a topic has had other partitions since a short time."""
    subscribed = (e["begin_ns"] for e in history.kinds("subscribed") if e["actor"] == who)
    grown = (
        e["begin_ns"]
        for name in ("add_partitions", "recreate_topic")
        for e in history.faults(name)
        if e["outcome"] == "ok"
    )
    return any(at - AT_ONCE_NS < since <= at for since in subscribed) or any(at - SOON_NS < t < at for t in grown)


DEFECTS = (
    Defect(
        "an idempotent producer writes a batch twice while leaders move (confluentinc/librdkafka#4953)",
        frozenset({"duplicate-write"}),
        writes_twice,
    ),
    Defect(
        "an eager member whose topic grows joins again before it has given up what it has",
        frozenset({"callback-imbalance", "early-assignment", "zombie-commit"}),
        joins_with_what_it_has,
    ),
    Defect(
        "an eager member that has joined again with what it has is not told to give that up",
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
        "who pauses a partition of a topic that was made again goes on from its position in the former one",
        frozenset({"unseen"}),
        goes_on_from_the_former_topic,
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
    Defect(
        "a producer whose connections were lost never sends its offsets, and its call never returns "
        "(confluentinc/librdkafka#5456)",
        frozenset({"hung-shutdown"}),
        hangs_in_sending_offsets,
    ),
    Defect(
        "who joins by itself, and is let in after that poll, never looks for what it was given, and goes on with what "
        "it told that it gave up",
        frozenset({"delivery-outside-assignment", "redelivery", "redelivery-below-commit", "assignment-mismatch"})
        | {"stuck-partition", "unconsumed"},
        forgot_that_it_joined,
        KAFKA_PYTHON,
    ),
)


def told(history: History, example: Example, *kinds: str) -> list[Row]:
    """The events of its members of these kinds, in the order of their starts."""
    return [e for e in history.kinds(*kinds) if e["actor"] in example["members"]]


def told_of_it(history: History, example: Example, kind: str) -> list[Row]:
    """Those that are about its partition."""
    return [
        e
        for e in told(history, example, kind)
        if (e["topic"], e["partition"]) == (example["topic"], example["partition"])
    ]


def given(history: History, example: Example) -> list[Row]:
    """What its members were given of its partition, in the order of time."""
    tp, members = (example["topic"], example["partition"]), example["members"]
    rows = [row for row in history.delivered if row["tp"] == tp and row["actor"] in members]
    return sorted(rows, key=lambda row: int(row["delivered_ns"]))


def soon(at_ns: int, example: Example) -> bool:
    """Whether that may show in it: it came shortly before it, or while it lasted."""
    return bool(example["from_ns"] - SOON_NS < at_ns < example["to_ns"] + BLUR_NS)


def happened(history: History, fault: str, example: Example) -> bool:
    """Whether that was seen to take effect before it was over."""
    return any(e["outcome"] == "ok" and e["begin_ns"] < example["to_ns"] for e in history.faults(fault))


def behind(history: History, kind: str, example: Example) -> str:
    """The defect whose doing an example of a finding is; empty: none of these."""
    members = example["members"] or {e["actor"] for e in history.kinds("assigned")}  # nobody: it may be any of them
    started = [e["detail"] for e in history.kinds("started") if e["actor"] in members]
    clients = {f"{detail['client']} {detail['client_version']}" for detail in started}
    example = example | {"topic": example.get("topic", "").removesuffix(GONE)}  # events know names alone
    of_them = [d for d in DEFECTS if kind in d.kinds and all(client.endswith(d.library) for client in clients)]
    return next((d.about for d in of_them if clients and d.shown(history, example)), "")
