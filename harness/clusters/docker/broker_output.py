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

LOGGER, LEVEL = "kafka.request.logger", "DEBUG"
MARK_S, END_S, LOOK_S = 15.0, 5.0, 0.3
QUARTER_S = 15 * 60
_MARK = re.compile(r"fencepost-mark-\d+")
# Images of Kafka and of Confluent write ``[2026-11-30 09:05:14,123] DEBUG Completed request:{...} (logger)``.
_COMPLETED = re.compile(r"\[(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)[,.](\d{3}).* (Completed request:\{.*\})")


class ContainerLogs:
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
        self._marks = 0
        self._followers = {
            broker: _Follower(container, home / f"broker-{broker}.log", home / f"broker-{broker}-{REQUEST_LOG}", group)
            for broker, container in containers.items()
        }
        for follower in self._followers.values():
            follower.start()

    def text(self, broker: int) -> Path:
        """The file with the broker's text log."""
        return self._followers[broker].text

    def requests(self, broker: int) -> Path:
        """The file with the broker's request log, in the form of ``BrokerEvidence.request_log``."""
        return self._followers[broker].requests

    def await_now(self, broker: int, ask: Callable[[str], object]) -> None:
        """Wait until all requests that the broker has answered by now are in its file.

        Args:
            ask: sends the broker a request that contains a text.

        Raises:
            WaitTimeout: a request did not appear in the output, for example because the broker writes it elsewhere.
        """
        self._marks += 1
        mark, follower = f"fencepost-mark-{self._marks}", self._followers[broker]
        ask(mark)
        eventually(
            lambda: mark in follower.marks,
            MARK_S,
            f"a request in the output of broker {broker}",
            state=lambda: follower.failure,
        )

    def copy(self, into: Path) -> None:
        """Copy all files into a folder."""
        into.mkdir(parents=True, exist_ok=True)
        for follower in self._followers.values():
            for path in (follower.text, follower.requests):
                shutil.copy(path, into / path.name)

    def close(self) -> None:
        """Stop following. May be called twice."""
        for follower in self._followers.values():
            follower.stop()


class _Follower(threading.Thread):
    """Follows one container over its restarts."""

    def __init__(self, container: str, text: Path, requests: Path, group: str) -> None:
        super().__init__(name=f"logs of {text.stem}", daemon=True)
        self.text, self.requests, self._group = text, requests, f'"{group}"'
        self.marks: set[str] = set()
        self.failure = ""
        self._container, self._since = container, time.time()
        self._closing = ExitStack()
        self._api = self._closing.enter_context(engine.client(None)).api  # without a limit: a broker may be silent
        self._over, self._rest = threading.Event(), b""
        self._stream: Any = None
        for path in (text, requests):
            path.touch()

    def run(self) -> None:
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        with self.text.open("a") as text, self.requests.open("a") as requests:
            while not self._over.is_set():
                try:
                    self._follow(text, requests)
                except (DockerException, RequestException) as error:
                    self.failure = str(error)[:300]
                self._over.wait(LOOK_S)  # it ended, and may be started again

    def stop(self) -> None:
        self._over.set()
        self._close_stream()
        self.join(END_S)
        self._closing.close()

    def _follow(self, text: Any, requests: Any) -> None:
        since, self._since = self._since, time.time()
        self._stream = self._api.logs(self._container, stream=True, follow=True, since=since)
        if self._over.is_set():
            self._close_stream()
            return
        for part in self._stream:
            *lines, self._rest = (self._rest + part).split(b"\n")
            for line in lines:
                self._take(line.decode(errors="replace").rstrip("\r"), text, requests)
            text.flush()
            requests.flush()
            self._since = time.time()

    def _take(self, line: str, text: Any, requests: Any) -> None:
        if "Completed request:" not in line:
            text.write(f"{line}\n")
            return
        self.marks.update(_MARK.findall(line))
        if self._group in line and (found := _COMPLETED.match(line)):
            requests.write(f"{wall_ms(found[1], found[2], found[3], time.time())} {found[4]}\n")

    def _close_stream(self) -> None:
        with suppress(OSError, AttributeError):  # the library meets a socket that was never opened
            if self._stream is not None:
                self._stream.close()


def wall_ms(date: str, clock: str, ms: str, read_s: float) -> int:
    """The wall-clock time (ms) of a line, whose date may be of any time zone, that was read at ``read_s`` (s)."""
    written = datetime.fromisoformat(f"{date}T{clock}").replace(tzinfo=UTC).timestamp() + int(ms) / 1000
    zone_s = round((written - read_s) / QUARTER_S) * QUARTER_S
    return round((written - zone_s) * 1000)
