"""What a run folder holds: its files, columns, event kinds and codes. This is a promise to readers of old folders.

::

    scenario.json  plan.json  verdict.json  report.html  junit.xml  logs/
    history/
      clock.json                 pairs of (monotonic_ns, wall_ns), taken at the start and when the audit begins
      partitions.json            one object per topic-partition: its number ``tp``, where the log begins and ends;
                                 of each that was deleted, and made again, during the run, too: ``renewed`` says what
                                 members did with it and its successor (see ``evidence.renewed``)
      settings.json              by which settings of theirs the brokers delete what was written, as they told at the
                                 audit: of each topic, and of a broker (runs of before have none)
      events.parquet             EVENT_COLUMNS: the rare facts, one row per event and partition
      events/<actor>.jsonl       the same as the actors wrote them, before the seal (kept: they are the raw evidence)
      segments/<actor>.<n>.seg   the recorders' memory maps, before the seal (removed once sealed)
      delivered/<incarnation>.parquet        DELIVERED_COLUMNS as they were recorded, see DELIVERED_VERSION; row groups
                                             never mix partitions
      produced/<writer>.parquet              PRODUCED_COLUMNS of acknowledged records, likewise
      produced/<writer>.unacked.parquet      the same for all others: no offset is told (-1)
      seal.json                  what the seal found: per raw file its records, torn records, sentences about damage;
                                 and the fingerprint of every file of JUDGED; the digest of all this
      log/audit.parquet                      LOG_COLUMNS, what each partition really holds, likewise
      coordinator/requests.jsonl             what the brokers logged of the group's requests
      coordinator/offsets.jsonl              the records of ``__consumer_offsets`` that speak of the group
      coordinator/metadata.jsonl             leader and ISR changes of the metadata log; of new leaders of the offsets
                                             topic also where their log ended, and its high watermark
      store.sqlite               what members of ``ExclusiveWrites`` wrote to: leases, and effects
      store.json                 instead of that: where it is in PostgreSQL (see ``fencepost_member.databases``)
      lacking.json               which of these a cluster did not show, and why; only where that is so
      host.jsonl                             stalls of the host itself

``tp`` numbers topic-partitions from 0 (``partitions.json`` resolves them). An actor is an incarnation
(``member-2.1``: the first life of member 2; see ``fencepost_member.names`` for more consumers in it), a writer
(``producer-0``) or ``harness``. Times are monotonic nanoseconds; 0 means "never".
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from itertools import takewhile

FORMAT_VERSION = 1
# The format version of delivered records. In version 2, begin, end and state are as they were recorded, and the judge
# infers what a rule of processing makes of them. In version 1 the seal had already overwritten them by that rule.
DELIVERED_VERSION = 2
LACKING = "history/lacking.json"
SETTINGS = "history/settings.json"
HARNESS = "harness"  # the actor
NAME_TAKEN = ("FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID")  # told to one of two under one group.instance.id

# The files that are judged, and of which part of the history each tells.
JUDGED: dict[str, str] = {
    "scenario.json": "scenario",
    "plan.json": "plan",
    "history/clock.json": "clock",
    "history/partitions.json": "partitions",
    SETTINGS: "partitions",
    "history/events.parquet": "events",
    "history/delivered/*.parquet": "delivered",
    "history/produced/*.parquet": "produced",
    "history/log/*.parquet": "log",
    "history/coordinator/offsets.jsonl": "offsets",
    "history/coordinator/requests.jsonl": "requests",
    "history/coordinator/metadata.jsonl": "metadata",
    "history/host.jsonl": "host",
}


class State(IntEnum):
    """How far a member got with a delivered record."""

    DELIVERED = 0
    BEGUN = 1
    DONE = 2
    PARKED = 3
    FAILED = 4


class Sent(IntEnum):
    """How a send completed: the column ``outcome`` of produced records."""

    OK = 0
    FAIL = 1
    INFO = 2
    ABORTED = 3  # so was its transaction, certainly: who reads with read_committed never sees it


class EventKind(StrEnum):
    """The kinds of ``events.parquet``. Every kind has a reader (a test lists them)."""

    # Written by members (actor = incarnation).
    STARTED = "started"  # detail: pid, slot, member, client, client_version, python, protocol, config
    ASSIGNED = "assigned"  # a callback: one row per partition, begin and end of the callback, interval number in detail
    REVOKED = "revoked"
    LOST = "lost"
    COMMIT = "commit"  # offset: next to read; outcome, error; detail: mode (sync, auto, on-revoke, transaction ...)
    POLL_GAP = "poll-gap"  # from one call of poll (the end of one that waits) to the next one, if it took more than 1 s
    STALL = "stall"  # the handler of a record (its offset) was slow, as a fault told the member to be
    SUBSCRIBED = "subscribed"  # it subscribed again; detail: topics, and relinquished: what it had left before
    SEEK = "seek"  # the program (a user's, a workload's, a planted bug) moved its position: offset, 0: to the beginning
    PAUSED = "paused"  # it had the client fetch nothing of the partition, from begin to end; the client is in the group
    ERROR = "error"  # the client reported an error: error = Kafka's name, detail: text, fatal
    FORKED = "forked"  # a process that was forked from its own polls it, where nothing can come; detail: pid
    CLOSED = "closed"  # clean end, after the client's close returned
    UNRECORDED = "unrecorded"  # of a user's program, or of effects: what is not in the history; detail: text, parts
    PRODUCING = "producing"  # of a user's program: it made the first producer of a sort; detail: client, idempotent

    # Written by the harness (actor = "harness", unless another is named).
    PHASE = "phase"  # detail: name
    LAUNCHED = "launched"  # actor = incarnation; the process was started; detail: pid, slot, member
    ENDED = "ended"  # actor = incarnation; the process was reaped, or it had gone before that (exit_code: null);
    # detail: exit_code, how: closed and killed as it was asked to or made to by the harness, or as a program that goes
    # on closed it, else crashed; of a member also polled_ns, when it last called poll, unless it was waiting in one
    FAULT = "fault"  # begun .. proven; detail: step, fault, impact, target, members, brokers, evidence
    HEALED = "healed"  # the same at the undo
    SKIPPED = "skipped"  # a step whose selector matched nothing: detail: step, reason
    EFFECT = "effect"  # actor = incarnation (harness: nobody knows whose); what a store outside of Kafka holds: offset;
    # detail: seq, token, key
    DEAD_LETTER = "dead-letter"  # the same of a topic for records that nobody can process, now; offset: that of the
    # record; detail also: retried_ns, if it was
    REQUEUED = "requeued"  # the same of the record's own partition, in which it lies again; detail also: again, where
    ACT = "act"  # a declared act of the harness (see interfaces.Acts) on these partitions, or on all; detail: what


OF_MEMBERS = frozenset(takewhile(lambda kind: kind is not EventKind.PHASE, EventKind))  # the first group of them

EVENT_COLUMNS: dict[str, str] = {
    "kind": "string",
    "actor": "string",
    "id": "int64",  # numbers the events of one actor; begin and end share it; negative: told by another about it
    "begin_ns": "int64",
    "end_ns": "int64",  # 0: it never ended
    "topic": "string",  # null where the event has no partition
    "partition": "int32",
    "offset": "int64",
    "generation": "int64",  # generation or member epoch; -1 unknown
    "member_id": "string",
    "outcome": "string",  # ok, fail, info; null where it has none
    "error": "string",  # Kafka's error name
    "detail": "string",  # a JSON object
}

DELIVERED_COLUMNS: dict[str, str] = {
    "tp": "int32",
    "offset": "int64",
    "key": "int64",  # our payload's key number, or a 64-bit hash of the key bytes
    "writer": "int32",
    "seq": "int64",
    "interval": "int32",  # numbers the assignment intervals of (incarnation, tp) from 0; -1: not assigned
    "poll": "int64",  # numbers the polls of one incarnation
    "position": "int32",  # position in that poll's result
    "ord": "int64",  # counts the deliveries of (incarnation, tp) from 0; a hole is a damaged history
    "delivered_ns": "int64",
    "begin_ns": "int64",
    "done_ns": "int64",
    "state": "int8",
    "thread": "int16",
}

PRODUCED_COLUMNS: dict[str, str] = {
    "tp": "int32",
    "offset": "int64",
    "key": "int64",
    "writer": "int32",
    "seq": "int64",
    "sent_ns": "int64",
    "acked_ns": "int64",
    "outcome": "int8",
}

LOG_COLUMNS: dict[str, str] = {
    "tp": "int32",
    "offset": "int64",
    "key": "int64",
    "writer": "int32",
    "seq": "int64",
    "appended_ms": "int64",  # wall clock, as Kafka keeps it
}
