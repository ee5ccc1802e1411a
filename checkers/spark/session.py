"""Spark's engine, started in the background while other things go on and kept for as long as it is of use."""

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
START_S = 90.0  # a start that nobody wants any more is waited for: PySpark bears no second one beside it


class Spark:
    """Spark that is being started, or is there. Make one with ``start``; ``stop``, or the end of ``with``, ends it."""

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
            master: where it runs: ``local[*]``, ``spark://host:port``, ``yarn`` or ``k8s://...``. What a cluster needs
                to be told besides comes from where Spark always looks: ``PYSPARK_PYTHON``, ``PYSPARK_SUBMIT_ARGS``,
                ``SPARK_CONF_DIR``. What its executors must have, see ``executors``.
            remote: the address of a Spark Connect server, ``sc://host:port``; then ``master`` does not count.
            warm_up: called with what is started in the background, unless somebody waits for it already; by default
                a tiny history is judged, so that the first real verdict finds classes loaded and workers running.
        """
        self = cls()
        self._thread = threading.Thread(
            target=self._run, args=(master, remote, warm_up or _judge_something), name="spark-start", daemon=True
        )
        self._thread.start()
        return self

    def get(self, within_s: float = 120.0) -> Engine:
        """What performs our functions, once it is there.

        Raises:
            WaitTimeout: it did not start within ``within_s``.
            ProvisionError: it cannot be started; says why.
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
        """End it. May be called twice, also before it is there."""
        self._unwanted.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(START_S)
            if self._thread.is_alive():
                return  # it sees that nobody wants it, and ends it
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
            except Exception:  # the real call will say what is wrong
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
    """A process can have only one, and it would have imported PySpark by now."""
    pyspark = sys.modules.get("pyspark")
    context: SparkContext | None = pyspark.SparkContext._active_spark_context if pyspark else None
    return context if getattr(context, "_jsc", None) is not None else None


def _nothing(warm: bool) -> None:
    """Nothing was started."""


def _judge_something(engine: Engine) -> None:
    from fencepost.checkers.spark import detector

    detector.warm_up(engine)
