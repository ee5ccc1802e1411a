"""Spark as this package uses it: a function of ours, performed for some numbers by the executors.

What it needs to know travels with it, its answers are tallies; no record passes through a JVM. So this needs no tables
of Spark's: a context without Spark SQL takes a quarter less CPU until it has answered. What has nothing but tables is
Connect, see ``connect``.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from pyspark import SparkContext

Answer = TypeVar("Answer")


class Engine(Protocol):
    """Where functions are performed."""

    @property
    def cores(self) -> int:
        """How many calls can be performed at a time, about."""

    @property
    def elsewhere(self) -> bool:
        """Whether the executors run where nobody has installed Fencepost."""

    def map(self, perform: Callable[[int], Answer], count: int) -> list[Answer]:
        """The answers for the numbers below ``count``, each of which is a task. Raises whatever Spark does."""

    def ship(self, archive: Path) -> None:
        """Put an archive of modules on the path of the executors; once only."""

    def cancel_without_executors(self) -> bool:
        """End what is under way when there is no executor at all; whether that is so. Where nobody can know: no."""


class HasEngine(Protocol):
    """A session: what has an engine, sooner or later."""

    def get(self) -> Engine:
        """The engine; waited for. Raises WaitTimeout or ProvisionError where there is none."""


class OnContext:
    """On a context of this process: local, or the driver of a cluster."""

    def __init__(self, context: SparkContext) -> None:
        self.context = context
        self._tag = f"fencepost-{uuid.uuid4().hex}"  # of our jobs, beside a user's own

    @property
    def cores(self) -> int:
        """As many as Spark says."""
        return self.context.defaultParallelism

    @property
    def elsewhere(self) -> bool:
        """Workers of a local context are children of its JVM."""
        return not str(self.context.master).startswith("local")

    def map(self, perform: Callable[[int], Answer], count: int) -> list[Answer]:
        """One job. A function that brings much along is broadcast by Spark."""
        self.context.addJobTag(self._tag)
        try:
            return self.context.parallelize(range(count), count).map(perform).collect()
        finally:
            self.context.removeJobTag(self._tag)

    def ship(self, archive: Path) -> None:
        """A context takes no second file of the name."""
        if not any(file.endswith(f"/{archive.name}") for file in self.context.listFiles):
            self.context.addPyFile(str(archive))

    def cancel_without_executors(self) -> bool:
        """The driver is one of those that Spark counts."""
        none = bool(self.context._jsc.sc().getExecutorMemoryStatus().size() < 2)
        if none:
            self.context.cancelJobsWithTag(self._tag)
        return none


def in_own_thread(call: Callable[[], Answer]) -> Answer:
    """What a call returns, or raises, made in a thread of its own.

    A connection to Spark's JVM belongs to a thread (PySpark's pinned mode). Who waits here may be interrupted, by
    Ctrl-C or a test's time-out. Interrupted while it waits for the JVM itself, it would leave an answer unread, and
    each later call of its thread would be given the answer to the one before.
    """
    answer = Future[Answer]()

    def made() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=made, name="spark-call", daemon=True).start()
    return answer.result()
