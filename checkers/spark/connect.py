"""The engine for a Spark Connect server, which has only tables: numbers are rows, answers are a column of pickles."""

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
    """An engine with a session on a Connect server, which does not report its executors or their cores."""

    cores = CORES
    elsewhere = True

    def __init__(self, address: str) -> None:
        """Create a separate session, even if this process has others. Raises ImportError if the client is missing."""
        self._session = SparkSession.builder.remote(address).create()

    def close(self, warm: bool) -> None:
        """Stop the session."""
        self._session.stop()
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # PySpark leaves it set, and would never start a JVM again

    def map(self, perform: Callable[[int], Answer], count: int) -> list[Answer]:
        """Perform the calls as one query."""

        def answers(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
            for batch in batches:
                yield pa.array([pickle.dumps(perform(number)) for number in batch.to_pylist()], pa.binary())

        numbers = self._session.range(0, count, 1, count)
        table = numbers.select(arrow_udf(answers, "binary")("id").alias("answer")).toArrow()
        return [pickle.loads(answer) for answer in table["answer"].to_pylist()]

    def ship(self, archive: Path) -> None:
        """Add the archive to the session, which no other program uses."""
        self._session.addArtifacts(str(archive), pyfile=True)

    def cancel_without_executors(self) -> bool:
        """Never: the server has its own time limits."""
        return False
