"""Translates the lines of a program into the history of a member: its events and its records."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from typing import Any, Callable, Dict, List, Tuple

from fencepost_member import kafka_errors
from fencepost_member.adapters import Record
from fencepost_member.adapters.settings import settings_of
from fencepost_member.committing.commits import begun
from fencepost_member.config import MemberConfig
from fencepost_member.instrument.in_flight import InFlight
from fencepost_member.json_lines.protocol_check import ProtocolCheck
from fencepost_member.json_lines.reading import Line, LineError, offsets_of, tps
from fencepost_member.member_events import FOR_EVER_NS, MemberReporter
from fencepost_member.ownership import Tp, rows
from fencepost_member.payload import unpack
from fencepost_member.recording.events import EventLog
from fencepost_member.recording.recorder import MemberLane

MS_NS = 1_000_000
GLANCE_NS = 50_000  # two readings of clocks within this time count as simultaneous
DRIFT_NS = 100_000  # clocks that differ by more than this are aligned again
AHEAD_MS = 1_000  # a timestamp may be this much later than the scribe's clock
KAFKAS_NAME = re.compile(r"[A-Z][A-Z0-9_]+")
VERIFIABLE = "verifiable-consumer"
UNNAMED = "LOCAL_UNNAMED"  # an error that was reported without Kafka's name of it: its outcome is unknown
CALLBACKS = {"partitions_assigned": "assigned", "partitions_revoked": "revoked", "partitions_lost": "lost"}
Answer = Callable[[Dict[Tp, int], Dict[Tp, str]], None]


class SettableClock:
    """The clock of a history that is written after the fact. Calling it returns the moment that was set last, in
    nanoseconds of the monotonic clock. One millisecond of wall time always maps to the same moment, except for clock
    drift."""

    def __init__(self) -> None:
        """The first moment is now."""
        self._ns, self._ahead_ns = time.monotonic_ns(), time.time_ns() - time.monotonic_ns()

    def __call__(self) -> int:
        """The moment in nanoseconds."""
        return self._ns

    def now(self) -> None:
        """Set the moment to now."""
        self._ns = time.monotonic_ns()

    def early(self, ms: int) -> None:
        """Set the moment to the beginning of a millisecond of wall time."""
        before_ns, wall_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        if after_ns - before_ns < GLANCE_NS and abs(wall_ns - after_ns - self._ahead_ns) > DRIFT_NS:
            self._ahead_ns = wall_ns - after_ns
        self._ns = ms * MS_NS - self._ahead_ns

    def late(self, ms: int) -> None:
        """Set the moment to the end of a millisecond of wall time."""
        self.early(ms)
        self._ns += MS_NS


class Translator:
    """Translates the lines of one incarnation. Call ``translate`` with its lines in their order."""

    def __init__(
        self, config: MemberConfig, pid: int, events: EventLog, lane: MemberLane, moment: SettableClock
    ) -> None:
        """``pid`` is the program's; ``moment`` the clock of ``events`` and ``lane``."""
        self._config, self._pid, self._events, self._lane, self._moment = config, pid, events, lane, moment
        self._member = ("", -1)
        self._account = MemberReporter(config, events, lambda: lane, lambda: self._member)
        self._in_hand, self._order = InFlight(config.loop.processed or "next-poll"), ProtocolCheck()
        self._ms = self._before_ms = 0  # of this line and of the one before
        self._poll: List[Record] = []
        self._poll_ms, self._waits = 0, False  # in a poll that was begun
        self._asked: List[Tuple[Dict[Tp, int], Answer]] = []
        self._callbacks: Dict[str, ExitStack] = {}
        self._fatal = False

    def translate(self, line: Line) -> None:
        """Record the next line. Raises LineError when it cannot be true; it is not recorded then."""
        if line["name"] == "shutdown_requested":  # printed by any thread, so its place says nothing
            return
        fault = next(self._order.faults(line), None)
        if fault is None and line["timestamp"] > time.time_ns() // MS_NS + AHEAD_MS:
            fault = "the timestamp of %s is in the future" % line["name"]
        if fault is not None:
            raise LineError(fault)
        self._before_ms, self._ms = self._ms, max(self._ms, line["timestamp"])
        if line["name"] == "record_data":
            self._record(line)
        else:
            self.end_poll()
            self._moment.early(self._ms)
            getattr(self, "_" + line["name"])(line)

    def end_poll(self) -> None:
        """Record what the last poll returned: it has no further records."""
        if self._poll:
            self._moment.early(self._poll_ms)
            self._returned()
            self._in_hand.polling()
            self._in_hand.delivered(self._lane, self._account.delivered(self._poll))
            self._poll = []

    def _returned(self) -> None:
        """End the poll that began, if any: it lasted until its records were reported or the next poll began."""
        if self._waits:
            self._waits = False
            self._account.polled()

    def _record(self, line: Line) -> None:
        tp = (line["topic"], line["partition"])
        if tp[0] not in self._config.topics:
            return
        key, value = line.get("key"), line.get("value")
        carried = (line.get("headers") or {}).get("fencepost", value)
        content = None if carried is None else carried.encode("utf-8", "replace")
        if unpack(None, content)[1] < 0:
            raise LineError(
                "record_data has neither the value nor the header fencepost of a record that Fencepost produced"
            )
        if not self._poll:
            self._poll_ms = self._ms
        self._poll.append((*tp, line["offset"], None if key is None else key.encode(), content, None))

    def _startup_complete(self, line: Line) -> None:
        own: Dict[str, Any] = {
            "told_by": "lines",
            "pid": self._pid,
            "commit": "by the program",
            "processed": self._config.loop.processed or "next-poll",
        }
        own.update({name: line[name] for name in ("client", "protocol") if name in line})
        # VerifiableConsumer does not report its settings: they are the settings that it was started with.
        settings = settings_of(self._config) if self._config.client == VERIFIABLE else line.get("config", {})
        self._account.started(line.get("client_version", ""), settings, **own)

    def _poll_started(self, line: Line) -> None:
        self._returned()
        self._in_hand.polling()
        self._account.polling(FOR_EVER_NS)
        self._waits = True

    def _records_consumed(self, line: Line) -> None:
        self._returned()  # a poll without records; otherwise ``translate`` has ended it

    def _record_processed(self, line: Line) -> None:
        self._in_hand.processed((line["topic"], line["partition"]), line["offset"] + 1)

    def _callback(self, line: Line) -> None:
        kind, phase = CALLBACKS[line["name"]], line.get("callback")
        partitions = [tp for tp in tps(line) if tp[0] in self._config.topics]
        if phase != "ended":
            self._member = line.get("member_id", self._member[0]), line.get("generation", self._member[1])
            callback = self._callbacks[kind] = ExitStack()
            if kind == "assigned":
                self._in_hand.released(partitions)
                callback.enter_context(self._account.assigned_callback(partitions))
            else:
                callback.enter_context(self._account.revoked_callback(kind, partitions))
        if phase != "begun":
            self._moment.late(self._ms)
            self._callbacks.pop(kind).close()

    _partitions_assigned = _partitions_revoked = _partitions_lost = _callback

    def _commit_started(self, line: Line) -> None:
        self._begin_commit(offsets_of(line), "async")

    def _begin_commit(self, offsets: Dict[Tp, int], mode: str) -> None:
        offsets = {tp: offset for tp, offset in offsets.items() if tp[0] in self._config.topics}
        self._in_hand.committing(offsets)
        self._asked.append((offsets, begun(self._events, lambda: self._member, offsets, mode)))

    def _offsets_committed(self, line: Line) -> None:
        offsets = {tp: offset for tp, offset in offsets_of(line).items() if tp[0] in self._config.topics}
        errors = dict.fromkeys(offsets, "" if line["success"] else error_name(line.get("error")))
        if line.get("automatic"):
            self._moment.late(self._ms)
            self._account.answered(offsets, errors)
            return
        if all(asked != offsets for asked, _ in self._asked):
            self._moment.early(self._before_ms)
            self._begin_commit(offsets, "sync")
            self._moment.early(self._ms)
        place = next(place for place, (asked, _) in enumerate(self._asked) if asked == offsets)
        self._moment.late(self._ms)
        self._asked.pop(place)[1](offsets, errors)

    def _seek(self, line: Line) -> None:
        offsets = offsets_of(line)
        for tp, offset in offsets.items():
            self._in_hand.released([tp], offset)
        event = self._events.begin("seek", partitions=rows(offsets))
        self._moment.late(self._ms)
        self._events.end(event)

    def _partitions_paused(self, line: Line) -> None:
        self._account.paused(tps(line))

    def _partitions_resumed(self, line: Line) -> None:
        self._account.resumed(tps(line))

    def _client_error(self, line: Line) -> None:
        self._fatal = self._fatal or bool(line.get("fatal"))
        self._account.error(line["error"], line.get("text", ""), bool(line.get("fatal")))

    def _shutdown_complete(self, line: Line) -> None:
        self._in_hand.polling()
        self._moment.late(self._ms)
        if not self._fatal:
            self._events.note("closed", detail={"polls": self._account.polls, "records": self._in_hand.done})


def error_name(error: Any) -> str:
    """Kafka's name of a reported error; ``UNNAMED`` when the program reported something else."""
    return (
        error if isinstance(error, str) and (error in kafka_errors.TABLE or KAFKAS_NAME.fullmatch(error)) else UNNAMED
    )
