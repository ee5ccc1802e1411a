"""The Spark session: started in the background while other things go on, kept for as long as it is of use.

A lean session on this machine needs 2.5 s with the class archive (``class_archive``), and 10 s the first time.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from fencepost.checkers.spark import executors
from fencepost.checkers.spark.jvm import QUERIES, Jvm
from fencepost.errors import ProvisionError, WaitTimeout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)
START_S = 90.0  # a start that nobody wants any more is waited for: PySpark bears no second one beside it


class Spark:
    """A Spark session that is being started, or is there. Make one with ``start``; ``stop``, or the end of ``with``,
    ends it."""

    def __init__(self) -> None:
        self._settled = threading.Event()
        self._unwanted = threading.Event()
        self._awaited = threading.Event()
        self._session: SparkSession | None = None
        self._warm = False
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._jvm: Jvm | None = None
        self._remote: SparkSession | None = None

    @classmethod
    def start(
        cls,
        master: str = "local[*]",
        remote: str | None = None,
        warm_up: Callable[[SparkSession], object] | None = None,
    ) -> Spark:
        """Begin to start a session and return at once.

        Args:
            master: where it runs: ``local[*]``, ``spark://host:port``, ``yarn`` or ``k8s://...``. What a cluster needs
                to be told besides comes from where Spark always looks: ``PYSPARK_PYTHON``, ``PYSPARK_SUBMIT_ARGS``,
                ``SPARK_CONF_DIR``. What its executors must have, see ``executors``.
            remote: the address of a Spark Connect server, ``sc://host:port``; then ``master`` does not count.
            warm_up: called with the new session in the background, unless somebody waits for it already; by default
                a tiny history is judged, so that the first real verdict finds classes loaded and workers running.
        """
        self = cls()
        self._thread = threading.Thread(
            target=self._run, args=(master, remote, warm_up or _judge_something), name="spark-start", daemon=True
        )
        self._thread.start()
        return self

    def get(self, within_s: float = 120.0) -> SparkSession:
        """The session, once it is there.

        Raises:
            WaitTimeout: it did not start within ``within_s``.
            ProvisionError: it cannot be started; says why.
        """
        self._awaited.set()
        if not self._settled.wait(within_s):
            raise WaitTimeout(
                f"waited {within_s:g} s for the Spark session, which did not start. "
                "The machine is very busy or short of memory: look at its load, then judge the run folder again."
            )
        if self._session is None:
            raise ProvisionError(f"Spark did not start: {self._error or 'it was stopped before'}") from self._error
        return self._session

    def stop(self) -> None:
        """End the session and its JVM. May be called twice, also before the session is there."""
        self._unwanted.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(START_S)
            if self._thread.is_alive():
                return  # it sees that nobody wants the session, and ends it
        self._end()

    def __enter__(self) -> Spark:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, master: str, remote: str | None, warm_up: Callable[[SparkSession], object]) -> None:
        try:
            executors.reach(remote or master)
            self._session = self._connect(remote) if remote else self._launch(master)
            if executors.elsewhere(self._session):
                executors.ship(self._session)
        except Exception as error:
            self._error = error
            self._end()
        finally:
            self._settled.set()
        if self._session is not None and not self._unwanted.is_set() and not self._awaited.is_set():
            try:
                warm_up(self._session)
                self._warm = True
            except Exception:  # the real call will say what is wrong
                _LOG.debug("the warm-up of Spark failed", exc_info=True)
        if self._session is None or self._unwanted.is_set():
            self._end()

    def _launch(self, master: str) -> SparkSession:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        if getattr(SparkContext._active_spark_context, "_jsc", None) is not None:
            return SparkSession.builder.getOrCreate()  # the program around us has one: a process can have only one
        self._jvm = Jvm(master)
        return self._jvm.session()

    def _connect(self, address: str) -> SparkSession:
        from pyspark.sql import SparkSession

        try:
            self._remote = SparkSession.builder.config(map={**QUERIES}).remote(address).create()
        except ImportError as error:
            raise ProvisionError(f"{error}; a Spark Connect client needs: pip install 'fencepost[connect]'") from error
        return self._remote

    def _end(self) -> None:
        session, self._session = self._session, None
        jvm, self._jvm = self._jvm, None
        remote, self._remote = self._remote, None
        if remote is not None:
            remote.stop()
            os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # PySpark leaves it, and would start no JVM any more
        if jvm is not None:
            jvm.end(session, warm=self._warm or self._awaited.is_set())


def _judge_something(session: SparkSession) -> None:
    from fencepost.checkers.spark import finder

    finder.warm_up(session)
