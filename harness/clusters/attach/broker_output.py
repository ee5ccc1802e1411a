"""The output of brokers in containers of another owner, followed by the engine into files of the run."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fencepost.clock import eventually
from fencepost.clusters.docker import engine
from fencepost.clusters.kafka.node_files import REQUEST_LOG

MARK_S, END_S, LOOK_S = 15.0, 5.0, 0.3
QUARTER_S = 15 * 60
_MARK = re.compile(r"fencepost-mark-\d+")
# The images of Kafka and of Confluent begin a line with ``[2026-11-30 09:05:14,123]``.
_HEAD = re.compile(r"\[(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)[,.](\d{3})\]")
_COMPLETED = re.compile(r" \w+ (Completed request:\{.*\})")


class BrokerOutput:
    """Follows the output of each broker from now on. The requests of one group are stored apart from the text."""

    def __init__(self, home: Path, containers: Mapping[int, str], group: str) -> None:
        """
        Args:
            home: a folder for the files; ``broker-1.log`` has the text of broker 1.
            containers: the container of each broker.
            group: the group whose requests are stored.

        Raises:
            ProvisionError: no engine answers.
        """
        self._marks, self._followers = 0, dict[int, Follower]()
        with ExitStack() as closing:
            for broker, container in containers.items():
                files = home / f"broker-{broker}.log", home / f"broker-{broker}-{REQUEST_LOG}"
                self._followers[broker] = Follower(container, *files, group)
                closing.callback(self._followers[broker].stop)
                self._followers[broker].start()
            self._closing = closing.pop_all()

    def text(self, broker: int) -> Path:
        """The file with the broker's text log, whose times are UTC."""
        return self._followers[broker].text

    def requests(self, broker: int) -> Path:
        """The file with the broker's request log, in the form of ``BrokerEvidence.request_log``."""
        return self._followers[broker].requests

    def gap(self, broker: int) -> str:
        """Why a request of the group may be missing in the broker's file; empty: none is, up to the last mark."""
        return self._followers[broker].gap

    def await_now(self, broker: int, ask: Callable[[str], object]) -> None:
        """Wait until all requests that the broker has answered by now are in its file.

        Args:
            ask: sends the broker a request that contains a text.

        Raises:
            WaitTimeout: the request did not appear in the output in a form that is known.
        """
        self._marks += 1
        mark, follower = f"fencepost-mark-{self._marks}", self._followers[broker]
        ask(mark)
        eventually(
            lambda: mark in follower.marks,
            MARK_S,
            f"a request in the output of broker {broker}",
            state=lambda: follower.gap,
            hint="Does it write kafka.request.logger to its standard output, with lines like Kafka's own images?",
        )

    def copy(self, into: Path) -> None:
        """Copy all files into a folder."""
        into.mkdir(parents=True, exist_ok=True)
        for follower in self._followers.values():
            for path in (follower.text, follower.requests):
                shutil.copy(path, into / path.name)

    def close(self) -> None:
        """Stop following. May be called twice."""
        self._closing.close()


class Follower(threading.Thread):
    """Follows one container over its restarts; see ``BrokerOutput``."""

    def __init__(self, container: str, text: Path, requests: Path, group: str) -> None:
        super().__init__(name=f"output of {text.stem}", daemon=True)
        self.text, self.requests, self._group = text, requests, group
        self.marks: set[str] = set()
        self.gap = ""
        self._container, self._since = container, time.time()
        self._over, self._rest = threading.Event(), b""
        self._stream: Any = None
        for path in (text, requests):
            path.touch()
        self._closing = ExitStack()
        self._api = self._closing.enter_context(engine.client(None)).api  # without a limit: a broker may be silent

    def run(self) -> None:
        """Follow until ``stop``."""
        while not self._over.is_set():
            try:
                # Written line by line: what precedes a mark is in the file when the mark is noticed.
                with self.text.open("a", buffering=1) as text, self.requests.open("a", buffering=1) as requests:
                    self._follow(text, requests)
                why = "it ended"
            except Exception as error:  # whatever the library raises: what follows may be missing
                why = str(error)[:300] or type(error).__name__
            if not self._over.is_set():
                self.gap = self.gap or f"its output could not be followed all the time: {why}"
                self._over.wait(LOOK_S)  # the container ended, and may be started again

    def stop(self) -> None:
        """Stop following, and close the connection to the engine."""
        self._over.set()
        with suppress(Exception):  # whatever the library meets while it closes a socket
            self._close_stream()
        self.join(END_S)
        self._closing.close()

    def _follow(self, text: Any, requests: Any) -> None:
        self._rest = b""
        self._stream = self._api.logs(self._container, stream=True, follow=True, since=self._since)
        self._since = time.time()
        if self._over.is_set():
            self._close_stream()
            return
        for part in self._stream:
            *lines, self._rest = (self._rest + part).split(b"\n")
            for line in lines:
                self.take(line.decode(errors="replace").rstrip("\r"), text, requests)
            self._since = time.time()

    def take(self, line: str, text: Any, requests: Any) -> None:
        """Write a line into the file that it belongs to, with its time in UTC."""
        request, of_group, marks = "Completed request:" in line, self._group in line, _MARK.findall(line)
        if request and not (of_group or marks):
            return  # most lines of a busy broker
        head = _HEAD.match(line)
        at_ms = wall_ms(head[1], head[2], head[3], time.time()) if head else 0
        if not request:
            moment = datetime.fromtimestamp(at_ms / 1000, UTC)
            text.write(f"[{moment:%F %T},{at_ms % 1000:03}]{line[head.end() :]}\n" if head else f"{line}\n")
        elif head and (found := _COMPLETED.match(line, head.end())):
            if of_group:
                requests.write(f"{at_ms} {found[1]}\n")
            self.marks.update(marks)
        elif of_group:
            self.gap = f"it writes requests in another form than Kafka's own images: {line[:80]!r}"

    def _close_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()


def wall_ms(date: str, clock: str, ms: str, read_s: float) -> int:
    """The wall-clock time (ms) of a line, whose date may be of any time zone, that was read at ``read_s`` (s)."""
    written = datetime.fromisoformat(f"{date}T{clock}").replace(tzinfo=UTC).timestamp() + int(ms) / 1000
    zone_s = round((written - read_s) / QUARTER_S) * QUARTER_S
    return round((written - zone_s) * 1000)
