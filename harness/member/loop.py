"""The loop of a member: poll, record, process, commit. One thread runs it and the client's callbacks. Records are
processed by the same thread (``Sequential``) or by the threads of a ``pool``.

``Sequential`` polls only when all records of the last poll are processed, so no record is in flight when a callback
revokes partitions (callbacks run inside a poll). All that the member does with a record is recorded before or after the
fact,
never during: first all records of a poll as delivered, then each as begun and done.

A clean end (SIGTERM) finishes the current record. The rest of the poll is dropped if the dropped records will be
delivered again, and finished first if they would not be (a policy or bug that is ``batch_atomic``). Then the member
commits, the client leaves the group, and the event ``closed`` is written.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

from fencepost_member import adapters
from fencepost_member.behaviour import Behaviour
from fencepost_member.committing.commits import Committer
from fencepost_member.committing.policies import POLICIES
from fencepost_member.config import ConfigError, MemberConfig
from fencepost_member.member_events import MemberReporter, redacted
from fencepost_member.ownership import Tp
from fencepost_member.planted_bugs import BUGS, CLIENTS, LETTERS, OUTPUTS, PARKINGS, POOLS, REQUEUES, known
from fencepost_member.process import ReloadSwitch, StallSwitch
from fencepost_member.processing.backpressure import Backpressure, PausedPartitions
from fencepost_member.processing.dispositions import DeadLetter, OrderedDeadLetter, disposition_for
from fencepost_member.processing.exclusive_processing import ExclusiveProcessing
from fencepost_member.processing.handler import ProcessingStrategy, RecordHandler, Sequential
from fencepost_member.processing.pool import Pool
from fencepost_member.processing.store import Store
from fencepost_member.recording.events import EventLog
from fencepost_member.recording.recorder import MemberLane

POLL_S = 0.1
RELINQUISH_S = 30.0


class MemberLoop:
    """One incarnation of a member. Satisfies ``adapters.ClientListener``."""

    def __init__(
        self,
        config: MemberConfig,
        lane: MemberLane,
        events: EventLog,
        stop: threading.Event,
        stall: Optional[StallSwitch] = None,
        reload: Optional[ReloadSwitch] = None,
    ) -> None:
        """Connect the client. Raises ConfigError when the client refuses its settings, the planted bug is unknown, or
        the handler cannot be imported."""
        self._config, self._events, self._stop = config, events, stop
        self._lane, self._reload = lane, reload or ReloadSwitch(lambda: config)
        self._account = MemberReporter(config, events, lambda: lane, lambda: self._adapter.identity())
        bug = config.loop.planted_bug
        bugs = known(config.loop)
        if bug and bug not in bugs:
            raise ConfigError("planted_bug is %r, it must be one of %s" % (bug, ", ".join(bugs)))
        self._adapter: Any = CLIENTS.get(bug, adapters.connect)(config, self)
        self._output: Any = {**OUTPUTS, **LETTERS}.get(bug, adapters.written)(config, self._adapter, self)
        parking = {**PARKINGS, **REQUEUES}.get(bug, OrderedDeadLetter if config.loop.keep_order else DeadLetter)
        treat = disposition_for(config.loop, self._output, parking)
        self._handling = RecordHandler(config.loop, lane, events, stall or StallSwitch(), treat)
        self._bug = BUGS.get(bug, Behaviour)(self._adapter, events, self._account.ownership)
        commits = Committer(self._output or self._adapter, events, self._bug.offsets)
        self._policy = POLICIES[config.loop.commit](config.loop, self._adapter, commits, self._account.ownership)
        self._paused = PausedPartitions(self._adapter, self._account)
        pressed, pause_ms = config.loop.backpressure, config.loop.pause_ms
        self._pressure = Backpressure(pressed, pause_ms, self._paused, self._account.ownership) if pressed else None
        self._way, self._records = self._way_of(), 0
        self._fatal, self._topics, self._ends = "", config.subscription, False

    def run(self) -> str:
        """Consume until ``stop`` is set. An exception of the user's handler ends the process, as it would a service.

        Returns:
            The name of a fatal client error; empty after a clean end.
        """
        try:
            self._run()
        finally:
            self._way.close()
        return self._fatal

    def _way_of(self) -> ProcessingStrategy:
        loop, handling = self._config.loop, self._handling
        handler = partial(self._bug.handler, loop.handler_ms / 1000)
        if loop.workers:
            pool = POOLS.get(loop.planted_bug, Pool)
            return pool(loop, self._lane, handling, self._policy, self._paused, handler())
        if loop.fence:
            store = Store(Path(self._config.run), self._config.actor, loop.fence, loop.lease_ms / 1000, self._stop)
            return ExclusiveProcessing(store, handling, self._lane, self._policy, handler, self._stop)
        may_drop_rest = not (self._policy.batch_atomic or self._bug.batch_atomic)
        return Sequential(handling, self._lane, self._policy, handler, self._stop, may_drop_rest, self._relinquish)

    def _run(self) -> None:
        if self._output:
            self._output.start()
        self._adapter.subscribe(self._topics)
        output = {"output": redacted(self._output.settings)} if self._output else {}
        self._account.started(self._adapter.version, self._adapter.settings, **output)
        batch = self._config.loop.batch
        while not self._stop.is_set():
            self._subscribe_again()
            self._account.polling()
            records = self._adapter.poll(batch, POLL_S)
            work = self._account.delivered(records)
            if self._fatal:
                break
            if self._policy.admit(work):
                self._records += self._way.process(self._bug.arrange(work), records)
            self._policy.between()
            if self._pressure:
                self._pressure.after(work)
        if not self._fatal:
            self._records += self._way.finish()
            self._policy.leave()
        self._ends = True
        self._bug.ending()
        if self._output:
            self._output.close()
        self._account.closing()
        self._adapter.close()
        if not self._fatal:
            self._events.note("closed", detail={"polls": self._account.polls, "records": self._records})

    def _subscribe_again(self) -> None:
        """Subscribe to the topics in the configuration file, if it must be read again; callbacks run in later polls."""
        config = self._reload.read()
        if config is not None:
            self._topics = config.subscription
            event = self._events.begin("subscribed", detail={"topics": self._topics})
            self._adapter.subscribe(self._topics)
            self._events.end(event)

    def _relinquish(self) -> None:
        """Leave the group before it evicts the member, and rejoin.

        Records that polls return meanwhile are dropped. Raises TimeoutError when the client does not revoke all
        partitions within ``RELINQUISH_S``.
        """
        until_s, owned = time.monotonic() + RELINQUISH_S, self._account.ownership.intervals
        event = self._events.begin("subscribed", detail={"topics": self._topics, "relinquished": sorted(owned)})
        self._adapter.unsubscribe()
        while owned and not self._fatal:
            if time.monotonic() > until_s:
                raise TimeoutError(
                    "the client has not revoked %s within %g s after the unsubscribe" % (sorted(owned), RELINQUISH_S)
                )
            self._account.polling()
            self._account.delivered(self._adapter.poll(1, POLL_S))
        self._adapter.subscribe(self._topics)
        self._events.end(event)

    def assigned(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """See ``ClientListener``."""
        with self._account.assigned_callback(partitions):
            self._bug.assigned(partitions)
            if not self._ends:  # at the end the output may be closed, and no further record is processed
                self._handling.assigning(partitions)
            apply()

    def revoking(self, partitions: List[Tp]) -> bool:
        """See ``DelayRevocation``."""
        return self._way.may_revoke(partitions)

    def revoked(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """See ``ClientListener``."""
        with self._account.revoked_callback("revoked", partitions):
            self._revoke(partitions, lost=False)
            apply()

    def lost(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """See ``ClientListener``."""
        with self._account.revoked_callback("lost", partitions):
            self._revoke(partitions, lost=True)
            self._bug.lost()
            apply()

    def _revoke(self, partitions: List[Tp], lost: bool) -> None:
        self._records += self._way.revoking(partitions, lost)
        self._policy.revoking(partitions, lost)
        if self._pressure:
            self._pressure.revoking(partitions)

    def committed(self, offsets: Dict[Tp, int], errors: Dict[Tp, str]) -> None:
        """See ``ClientListener``."""
        self._account.answered(offsets, errors)

    def error(self, name: str, text: str, fatal: bool) -> None:
        """See ``ClientListener``."""
        self._fatal = self._fatal or (name if fatal else "")
        self._account.error(name, text, fatal)
