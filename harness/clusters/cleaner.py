"""The cleaner: a small process that removes what a run made in a cluster of others, however its harness ended.

Like the reaper it holds one end of a pipe as its standard input, of which only the harness holds the other one: end of
file means that the harness is done, or gone. There is one way to clean up, and this is it. The reaper leaves it alone,
and neither Ctrl-C nor the end of the harness reaches it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fencepost.clusters.admin import OFFSETS_TOPIC, ObserverAdmin
from fencepost.clusters.admin_cleaning import Cleaning
from fencepost.clusters.nodes import Endpoint
from fencepost.clusters.reaper import TOKEN_VARIABLE
from fencepost.errors import ClusterError, FencepostError
from fencepost.model import TopicPartition

CLEAN_S = 90.0  # the default session time-out is half of it
READY = b"ready\n"


@dataclass(frozen=True)
class Task:
    """What is to be done in the end.

    Attributes:
        brokers: host and port of each.
        access: settings of SASL and TLS.
        prefix: of the names of what is removed.
        replicas: of partitions of the offsets topic, in the order to which they are brought back.
    """

    brokers: Mapping[int, Endpoint]
    access: Mapping[str, str]
    prefix: str
    replicas: Mapping[int, Sequence[int]]

    def to_json(self) -> str:
        """As the process reads it."""
        brokers = {broker: [endpoint.host, endpoint.port] for broker, endpoint in self.brokers.items()}
        return json.dumps({**vars(self), "brokers": brokers})

    @classmethod
    def from_json(cls, text: str) -> Task:
        """The inverse of ``to_json``."""
        told: dict[str, Any] = json.loads(text)
        brokers = {int(broker): Endpoint(*place) for broker, place in told["brokers"].items()}
        replicas = {int(partition): order for partition, order in told["replicas"].items()}
        return cls(brokers, told["access"], told["prefix"], replicas)

    def perform(self, within_s: float) -> list[str]:
        """Do it; what could not be done."""
        left = []
        admin = ObserverAdmin(self.brokers, self.access)
        for partition, order in self.replicas.items():
            try:
                now = admin.replicas(OFFSETS_TOPIC).get(partition, ())
                if sorted(now) == sorted(order) and list(now) != list(order):  # else somebody reassigned it
                    admin.arrange(TopicPartition(OFFSETS_TOPIC, partition), order)
            except FencepostError as error:
                left.append(f"the order {list(order)} of the replicas of {OFFSETS_TOPIC}-{partition} ({error})")
        admin.close()
        cleaning = Cleaning(self.brokers, self.access, self.prefix)
        left += cleaning.remove_all(within_s)
        cleaning.close()
        return left


class Cleaner:
    """The running process."""

    def __init__(self, task: Task) -> None:
        """Start it.

        Raises:
            ClusterError: it does not start.
        """
        environment = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # Told through the pipe, and so in no file: there may be secrets in it.
        with suppress(BrokenPipeError):
            self._process.stdin.write(task.to_json().encode() + b"\n")
            self._process.stdin.flush()
        if self._process.stdout.readline() != READY:
            self.finish(0)
            raise ClusterError("the process that removes what a run makes in a cluster did not start")

    def finish(self, within_s: float) -> list[str]:
        """Let it clean up and end; what it could not do. May be called twice."""
        if self._process.stdout is None or self._process.stdout.closed:
            return []
        try:
            said, _ = self._process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            return [f"what process {self._process.pid} still tries to remove"]
        return said.decode(errors="replace").splitlines()


def main() -> None:
    """Read the task, wait for the end of the harness, clean up, and say what could not be done."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # whoever ends the harness with a signal must not end us before it
    task = Task.from_json(sys.stdin.buffer.readline().decode())
    _say(READY.decode().strip())
    while os.read(0, 1):
        pass
    for sentence in task.perform(CLEAN_S):
        _say(sentence)


def _say(sentence: str) -> None:
    with suppress(BrokenPipeError):
        print(sentence, flush=True)


if __name__ == "__main__":
    main()
