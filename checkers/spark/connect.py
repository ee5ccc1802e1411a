"""The engine behind a Connect server, which has tables only: numbers are rows, answers a column of pickles."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # missing in its stubs

from fencepost.checkers.spark.engine import Answer

CORES = 16


class ThroughConnect:
    """Through a session of a Connect server, which knows its executors and tells nothing of them."""

    cores = CORES
    elsewhere = True

    def __init__(self, address: str) -> None:
        """A session of our own, whatever others this process has. Raises ImportError where the client is missing."""
        self._session = SparkSession.builder.remote(address).create()

    def close(self, warm: bool) -> None:
        """Give the session back."""
        self._session.stop()
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # PySpark leaves it, and would start no JVM any more

    def map(self, perform: Callable[[int], Answer], count: int) -> list[Answer]:
        """One query."""

        def answers(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
            for batch in batches:
                yield pa.array([pickle.dumps(perform(number)) for number in batch.to_pylist()], pa.binary())

        numbers = self._session.range(0, count, 1, count)
        table = numbers.select(arrow_udf(answers, "binary")("id").alias("answer")).toArrow()
        return [pickle.loads(answer) for answer in table["answer"].to_pylist()]

    def ship(self, archive: Path) -> None:
        """The session is ours alone."""
        self._session.addArtifacts(str(archive), pyfile=True)

    def cancel_without_executors(self) -> bool:
        """The server has its own bounds."""
        return False
