"""The format of a run folder: its files, columns, event kinds and codes. Readers of old folders rely on it.

::

    scenario.json  plan.json  verdict.json  report.html  junit.xml  logs/
    history/
      clock.json                 pairs of (monotonic_ns, wall_ns), taken at the start and when the audit begins; if
                                 brokers have other clocks, also the readings of these (see ``ClockReadings``)
      partitions.json            one object per topic-partition: its number ``tp``, where its log starts and ends; also
                                 one for each partition that was deleted and recreated during the run: its ``renewed``
                                 has what members did with it and its successor (see ``evidence.recreated_topics``)
      settings.json              the settings by which brokers delete records, as the brokers reported them at the
                                 audit: of each topic, and of one broker (old runs do not have this file)
      events.parquet             EVENT_COLUMNS: the rare facts, one row per event and partition
      events/<actor>.jsonl       the same as the actors wrote them, before the seal (kept: they are the raw evidence)
      segments/<actor>.<n>.seg   the recorders' memory maps, before the seal (removed once sealed)
      delivered/<incarnation>.parquet        DELIVERED_COLUMNS as they were recorded, see DELIVERED_VERSION; row groups
                                             never mix partitions
      produced/<writer>.parquet              PRODUCED_COLUMNS of acknowledged records, likewise
      produced/<writer>.unacked.parquet      the same for all other records: their offset is -1
      seal.json                  the result of the seal: for each raw file its records, torn records, and sentences
                                 about damage; the fingerprint of every file of JUDGED; the digest of all this
      log/audit.parquet                      LOG_COLUMNS: the records that each partition holds, likewise
      coordinator/requests.jsonl             the group's requests, by the brokers' request logs
      coordinator/offsets.jsonl              the group's records in ``__consumer_offsets``
      coordinator/metadata.jsonl             leader and ISR changes in the metadata log; for new leaders of the offsets
                                             topic also the end of their log, and its high watermark
      store.sqlite               the store of members with the workload ``ExclusiveWrites``: leases and effects
      store.json                 instead of that: where the store is in PostgreSQL (``fencepost_member.databases``)
      lacking.json               the parts that a cluster did not show, with reasons; only if there are any
      host.jsonl                             stalls of the host itself

``tp`` numbers topic-partitions from 0 (``partitions.json`` resolves them). An actor is an incarnation
(``member-2.1``: the first incarnation of member 2; see ``fencepost_member.names`` for several consumers in one), a
writer (``producer-0``) or ``harness``. Times are monotonic nanoseconds; 0 means "never".
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from itertools import takewhile

FORMAT_VERSION = 1
# The format version of delivered records. In version 2, begin, end and state are stored as they were recorded, and the
# judge applies the rule of processing. In version 1 the seal had already overwritten them by that rule.
DELIVERED_VERSION = 2
LACKING = "history/lacking.json"
SETTINGS = "history/settings.json"
HARNESS = "harness"  # the actor
NAME_TAKEN = (
    "FENCED_INSTANCE_ID",
    "UNRELEASED_INSTANCE_ID",
)  # the answer to one of two members with one group.instance.id

# The files that are judged, and the part of the history that each contains.
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


class RecordState(IntEnum):
    """How far a member got with a delivered record."""

    DELIVERED = 0
    BEGUN = 1
    DONE = 2
    PARKED = 3
    FAILED = 4


class SendOutcome(IntEnum):
    """How a send completed: the column ``outcome`` of produced records."""

    OK = 0
    FAIL = 1
    INFO = 2
    ABORTED = 3  # its transaction was certainly aborted: consumers with read_committed never see it


class EventKind(StrEnum):
    """The kinds of ``events.parquet``. Every kind has a reader (a test lists them)."""

    # Written by members (actor = incarnation).
    STARTED = "started"  # detail: pid, slot, member, client, client_version, python, protocol, config
    ASSIGNED = "assigned"  # a callback: one row per partition, start and end of the callback, interval number in detail
    REVOKED = "revoked"
    LOST = "lost"
    COMMIT = "commit"  # offset: next to read; outcome, error; detail: mode (sync, auto, on-revoke, transaction ...)
    POLL_GAP = "poll-gap"  # between two calls of poll (from the end of one that waits), if that took more than 1 s
    STALL = "stall"  # the handler of a record (its offset) was slow because a fault made it so
    SUBSCRIBED = "subscribed"  # it subscribed again; detail: topics, and relinquished: the partitions it had released
    SEEK = "seek"  # the program (a user's, a workload's, a planted bug) moved its position: offset, 0: to the beginning
    PAUSED = "paused"  # the partition was paused in the client, from start to end; the client stays in the group
    ERROR = "error"  # the client reported an error: error = Kafka's name, detail: text, fatal
    FORKED = "forked"  # a forked process polls the consumer, where it receives nothing; detail: pid
    CLOSED = "closed"  # clean end, after the client's close returned
    UNRECORDED = "unrecorded"  # of a user's program, or of effects: what the history does not have; detail: text, parts
    PRODUCING = "producing"  # of a user's program: it created its first producer of a kind; detail: client, idempotent

    # Written by the harness (actor = "harness", unless another is named).
    PHASE = "phase"  # detail: name
    LAUNCHED = "launched"  # actor = incarnation; the process was started; detail: pid, slot, member
    ENDED = "ended"  # actor = incarnation; the process was reaped, or it had ended before that (exit_code: null);
    # detail: exit_code; how: closed (asked by the harness, or the program closed the consumer and continues), killed
    # (by the harness), or crashed; of a member also polled_ns, when it last called poll, unless it was waiting in one
    FAULT = "fault"  # begun .. proven; detail: step, fault, impact, target, members, brokers, evidence
    HEALED = "healed"  # the same at the undo
    SKIPPED = "skipped"  # a step whose selector matched nothing: detail: step, reason
    EFFECT = "effect"  # actor = incarnation (harness: unknown); an effect of the record at offset, in a store outside
    # Kafka or in an output topic; detail: seq, token, key
    DEAD_LETTER = "dead-letter"  # the same in a topic for records that cannot be processed now; offset: the record's;
    # detail also: retried_ns, if it was retried
    REQUEUED = "requeued"  # the same in the record's own partition; detail also: again, its new offset there
    ACT = "act"  # a declared act of the harness (see DeclaresAction) on these partitions, or on all; detail: what


OF_MEMBERS = frozenset(takewhile(lambda kind: kind is not EventKind.PHASE, EventKind))  # the kinds before PHASE

EVENT_COLUMNS: dict[str, str] = {
    "kind": "string",
    "actor": "string",
    "id": "int64",  # numbers the events of one actor; start and end share it; negative: written by another actor
    "begin_ns": "int64",
    "end_ns": "int64",  # 0: it never ended
    "topic": "string",  # null where the event has no partition
    "partition": "int32",
    "offset": "int64",
    "generation": "int64",  # generation or member epoch; -1 unknown
    "member_id": "string",
    "outcome": "string",  # ok, fail, info; null if it has none
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
    "ord": "int64",  # counts the deliveries of (incarnation, tp) from 0; a gap means that the history is damaged
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
