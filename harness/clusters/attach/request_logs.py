"""The request logs of brokers of another owner, which are switched on for one run and put back (KIP-412)."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from fencepost.clock import clock_pair
from fencepost.clusters.admin import ObserverAdmin
from fencepost.clusters.attach.broker_output import BrokerOutput
from fencepost.clusters.cache import ProgressCallback
from fencepost.clusters.kafka.node_files import lines
from fencepost.errors import FencepostError, NotShown
from fencepost.evidence.brokers.clock_conversion import WallClockConverter
from fencepost.evidence.brokers.request_log import parse

LOGGER, LEVEL = "kafka.request.logger", "DEBUG"
LOCK = "\0fencepost-request-log-{}"  # an abstract address of this machine, by the container's id


class RequestLogs:
    """The request logs of some brokers, as they write them into their output.

    They are shown if every broker wrote all requests of the group there, from ``begin`` on, in a form that is known.
    One run at a time switches the log of a broker: the first one to end would switch it off for the others.
    """

    def __init__(
        self, admin: ObserverAdmin, output: BrokerOutput, containers: Mapping[int, str], group: str, hidden: str
    ) -> None:
        """``hidden``: why the logs cannot be used anyway; empty: they can."""
        self._admin, self._output, self._brokers, self._group = admin, output, tuple(containers), group
        self._hidden = hidden
        self._closing = ExitStack()
        self.locks: list[socket.socket] = []  # to be kept open until the levels are put back
        for container in () if hidden else dict.fromkeys(containers.values()):
            lock = self._closing.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            self.locks.append(lock)
            try:
                lock.bind(LOCK.format(container))
            except OSError:
                self._hidden = "another run on this machine has switched it on at the same time"

    def levels(self) -> dict[int, str]:
        """The levels that are to be put back, by broker."""
        found: dict[int, str] = {}
        if self._hidden:
            return found
        try:
            for broker in self._brokers:
                found[broker] = self._admin.log_level(broker, LOGGER)
                if not found[broker]:
                    raise NotShown(f"broker {broker} has no logger {LOGGER}")
        except FencepostError as error:
            self._hidden = str(error)
            return {}
        return {broker: level for broker, level in found.items() if level != LEVEL}

    def begin(self, progress: ProgressCallback) -> None:
        """Switch them on, and ensure that they appear. If they do not, they will not be shown."""
        if self._hidden:
            return
        progress("switching the request log of the brokers on")
        try:
            for broker in self._brokers:
                self._admin.set_log_level(broker, LOGGER, LEVEL)
                self._await_now(broker)
        except FencepostError as error:
            self._hidden = str(error)
            progress(f"the request log will not be shown: {error}")

    def read(self, broker: int) -> Iterator[str]:
        """The lines of a broker's request log up to now.

        Raises:
            NotShown: it could not be switched on, or may have a gap.
        """
        why = self._hidden or self._gap(broker)
        if not why:
            try:
                self._parse(self._output.requests(broker))
            except (ValueError, KeyError, TypeError) as error:
                why = f"broker {broker} writes requests in another form than Kafka's own images ({error})"
        if why:
            raise NotShown(f"the request log of these brokers cannot be used: {why}")
        return lines(self._output.requests(broker))

    def close(self) -> None:
        """Let other runs switch the logs, once no process that puts the levels back has the locks."""
        self._closing.close()

    def _await_now(self, broker: int) -> None:
        # The answer to a question about a logger that does not exist is empty; the broker logs the question.
        self._output.await_now(broker, lambda mark: self._admin.log_level(broker, mark))

    def _gap(self, broker: int) -> str:
        """Why the broker's request log may not be whole; empty: it is, up to now."""
        if gap := self._output.gap(broker):
            return f"broker {broker}: {gap}"
        try:
            if (level := self._admin.log_level(broker, LOGGER)) != LEVEL:
                return f"the level of {LOGGER} of broker {broker} was set to {level} during the run"
            self._await_now(broker)
        except FencepostError as error:
            return str(error)
        gap = self._output.gap(broker)
        return f"broker {broker}: {gap}" if gap else ""

    def _parse(self, path: Path) -> None:
        timeline = WallClockConverter.of([clock_pair()])
        for line in lines(path):
            parse(line, timeline, self._group, {})
