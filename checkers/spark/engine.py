"""A thin layer over Spark: run one Python function once per task number.

The input is sent with the function, and the answers are aggregates; no record passes through a JVM. So no tables of
Spark are needed: a context without Spark SQL needs a quarter less CPU until its first answer. Spark Connect has only
tables, see ``connect``.
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
    """Performs functions on executors."""

    @property
    def cores(self) -> int:
        """Roughly how many calls can run at once."""

    @property
    def elsewhere(self) -> bool:
        """Whether the executors run on machines without an installed Fencepost."""

    def map(self, perform: Callable[[int], Answer], count: int) -> list[Answer]:
        """The answers for the numbers below ``count``; each number is one task. Raises the errors of Spark."""

    def ship(self, archive: Path) -> None:
        """Put an archive of modules on the path of the executors; called once."""

    def cancel_without_executors(self) -> bool:
        """Cancel the running jobs if there is no executor. Returns whether there is none; False if that is unknown."""


class HasEngine(Protocol):
    """A session that has an engine, or will have one."""

    def get(self) -> Engine:
        """Wait for the engine. Raises WaitTimeout or ProvisionError if there is none."""


class OnContext:
    """An engine with a Spark context of this process: local, or the driver of a cluster."""

    def __init__(self, context: SparkContext) -> None:
        self.context = context
        self._tag = f"fencepost-{uuid.uuid4().hex}"  # marks our jobs; a user may run others in the same context

    @property
    def cores(self) -> int:
        """The number that Spark reports."""
        return self.context.defaultParallelism

    @property
    def elsewhere(self) -> bool:
        """Whether the context is not local: the workers of a local one are children of its JVM."""
        return not str(self.context.master).startswith("local")

    def map(self, perform: Callable[[int], Answer], count: int) -> list[Answer]:
        """Perform the calls as one job. Spark broadcasts a function that carries much data."""
        self.context.addJobTag(self._tag)
        try:
            return self.context.parallelize(range(count), count).map(perform).collect()
        finally:
            self.context.removeJobTag(self._tag)

    def ship(self, archive: Path) -> None:
        """Add the archive, unless the context has it: it accepts no second file of the same name."""
        if not any(file.endswith(f"/{archive.name}") for file in self.context.listFiles):
            self.context.addPyFile(str(archive))

    def cancel_without_executors(self) -> bool:
        """Spark counts the driver as an executor, so there is none if it counts less than two."""
        none = bool(self.context._jsc.sc().getExecutorMemoryStatus().size() < 2)
        if none:
            self.context.cancelJobsWithTag(self._tag)
        return none


def in_own_thread(call: Callable[[], Answer]) -> Answer:
    """Make a call in a separate thread. Returns its result, or raises its error.

    A connection to Spark's JVM belongs to one thread (PySpark's pinned mode). The caller may be interrupted by Ctrl-C
    or a test's time-out. If it waited for the JVM itself, an interrupt would leave an answer unread, and each later
    call of its thread would receive the answer to the previous call.
    """
    answer = Future[Answer]()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=run, name="spark-call", daemon=True).start()
    return answer.result()
