"""Spark's engine, started in the background during other work, and kept until ``stop``."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from fencepost.checkers.spark import executors
from fencepost.checkers.spark.engine import Engine, OnContext
from fencepost.checkers.spark.jvm import SparkJvm
from fencepost.errors import ProvisionError, WaitTimeout

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)
START_S = 90.0  # ``stop`` waits for a start in progress: PySpark allows no second one at the same time


class Spark:
    """A Spark session that is starting or running. Create it with ``start``; end it with ``stop`` or ``with``."""

    def __init__(self) -> None:
        self._settled = threading.Event()
        self._unwanted = threading.Event()
        self._awaited = threading.Event()
        self._engine: Engine | None = None
        self._warm = False
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._close: Callable[[bool], object] = _nothing

    @classmethod
    def start(
        cls,
        master: str = "local[*]",
        remote: str | None = None,
        warm_up: Callable[[Engine], object] | None = None,
    ) -> Spark:
        """Begin to start Spark and return at once.

        Args:
            master: where it runs: ``local[*]``, ``spark://host:port``, ``yarn`` or ``k8s://...``. Spark reads the other
                settings of a cluster from its usual sources: ``PYSPARK_PYTHON``, ``PYSPARK_SUBMIT_ARGS``,
                ``SPARK_CONF_DIR``. See ``executors`` for the requirements of executors.
            remote: the address of a Spark Connect server, ``sc://host:port``; ``master`` is then ignored.
            warm_up: called in the background with the started engine, unless a caller waits in ``get`` already. By
                default it judges an empty history, so that classes are loaded and workers run before the first verdict.
        """
        self = cls()
        self._thread = threading.Thread(
            target=self._run, args=(master, remote, warm_up or _judge_something), name="spark-start", daemon=True
        )
        self._thread.start()
        return self

    def get(self, within_s: float = 120.0) -> Engine:
        """Wait for the engine and return it.

        Raises:
            WaitTimeout: Spark did not start within ``within_s``.
            ProvisionError: Spark cannot be started, or was stopped; the message says why.
        """
        self._awaited.set()
        if not self._settled.wait(within_s):
            raise WaitTimeout(
                f"waited {within_s:g} s for Spark, which did not start. "
                "The machine is very busy or short of memory: look at its load, then judge the run folder again."
            )
        if self._engine is None:
            raise ProvisionError(f"Spark did not start: {self._error or 'it was stopped before'}") from self._error
        return self._engine

    def stop(self) -> None:
        """End the session. May be called twice, and also during the start."""
        self._unwanted.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(START_S)
            if self._thread.is_alive():
                return  # the start thread will see ``_unwanted`` and end the session
        self._end()

    def __enter__(self) -> Spark:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, master: str, remote: str | None, warm_up: Callable[[Engine], object]) -> None:
        try:
            executors.reach(remote or master)
            engine = self._connect(remote) if remote else self._launch(master)
            executors.ship(engine)
            self._engine = engine
        except Exception as error:
            self._error = error
        finally:
            self._settled.set()
        if self._engine is not None and not self._unwanted.is_set() and not self._awaited.is_set():
            try:
                warm_up(self._engine)
                self._warm = True
            except Exception:  # the real call will report the error
                _LOG.debug("the warm-up of Spark failed", exc_info=True)
        if self._engine is None or self._unwanted.is_set():
            self._end()

    def _launch(self, master: str) -> Engine:
        if (context := _context_of_this_program()) is not None:
            return OnContext(context)
        jvm = SparkJvm(master)
        self._close = jvm.end
        return OnContext(jvm.start())

    def _connect(self, address: str) -> Engine:
        try:
            from fencepost.checkers.spark.connect import ThroughConnect

            engine = ThroughConnect(address)
        except ImportError as error:
            raise ProvisionError(f"{error}; a Spark Connect client needs: pip install 'fencepost[connect]'") from error
        self._close = engine.close
        return engine

    def _end(self) -> None:
        self._engine = None
        close, self._close = self._close, _nothing
        close(self._warm or self._awaited.is_set())


def _context_of_this_program() -> SparkContext | None:
    """The Spark context that this process already has, of which there can be only one; None: it has none."""
    pyspark = sys.modules.get("pyspark")
    context: SparkContext | None = pyspark.SparkContext._active_spark_context if pyspark else None
    return context if getattr(context, "_jsc", None) is not None else None


def _nothing(warm: bool) -> None:
    """Nothing was started."""


def _judge_something(engine: Engine) -> None:
    from fencepost.checkers.spark import detector

    detector.warm_up(engine)
