"""The JVM of a Spark context on this machine: its settings, its output, its working directory, and its end.

It ends when this process ends, however that happens (its standard input closes), and removes its files itself. What is
left when this process is killed while the JVM starts, is removed by the next one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencepost.checkers.spark import jvm_class_data
from fencepost.checkers.spark.jvm_class_data import Archive
from fencepost.errors import ProvisionError
from fencepost_member import lock

if TYPE_CHECKING:
    from pyspark import SparkContext

END_S = 20.0
WORK = "spark-of-fencepost-"
OLD_S = 60.0  # a working directory without a lock that is so old belongs to nobody

LOG4J = """
status=error
appender.console.type=Console
appender.console.name=console
appender.console.target=SYSTEM_ERR
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{HH:mm:ss.SSS} %p %c{1}: %m%n
rootLogger.level=error
rootLogger.appenderRef.console.ref=console
"""

SETTINGS = {
    "spark.app.name": "fencepost",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",  # no threads before a fork, and none are needed
    # numpy's arrays come and go: kept by the allocator, they need no new pages from the kernel (a third of all time)
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(8 << 30),
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",  # what numpy frees serves Arrow, and back
}
LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.python.daemon.module": "fencepost.checkers.spark.daemon",
}


class SparkJvm:
    """One JVM with one Spark context."""

    def __init__(self, master: str) -> None:
        """Nothing is started yet."""
        self._master = master
        self._work, self._lock = make_work()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - has no name, so nothing is left of it, whatever happens
        self._gateway: Any = None
        self._context: SparkContext | None = None
        self._archive = Archive()

    def start(self) -> SparkContext:
        """Start everything.

        Raises:
            ProvisionError: there is no Java, or the JVM ended; then with its last words.
        """
        from pyspark import SparkConf, SparkContext
        from pyspark.java_gateway import launch_gateway

        (self._work / "log4j2.properties").write_text(LOG4J, encoding="utf-8")
        conf = SparkConf(loadDefaults=False).setMaster(self._master)
        for name, value in self._settings().items():
            conf.set(name, value)
        streams = {"stdout": self._log, "stderr": self._log, "cwd": str(self._work)}
        with _environment(self._variables()):
            try:
                self._gateway = launch_gateway(conf, popen_kwargs=streams)  # type: ignore[no-untyped-call]
                context = self._context = SparkContext(conf=conf, gateway=self._gateway)
            except Exception as error:
                self._log.seek(0)
                lines = self._log.read().decode(errors="replace").splitlines()
                said = [line.strip() for line in lines if line.strip() and not line.startswith("\tat ")][-5:]
                raise ProvisionError(f"{error}. The JVM said: {' / '.join(said) or 'nothing'}") from error
        for path in (self._work, self._work / "log4j2.properties"):
            context._jvm.java.io.File(str(path)).deleteOnExit()  # type: ignore[union-attr]
        return context

    def end(self, warm: bool) -> None:
        """End the JVM and remove its files. One that writes the class archive ends by itself, some seconds later.

        Args:
            warm: it has done what sessions do, so that its classes are worth an archive.
        """
        from pyspark import SparkContext

        if self._context is not None:
            with suppress(Exception):
                self._context.stop()
        if self._gateway is not None:
            process: subprocess.Popen[bytes] = self._gateway.proc
            with suppress(Exception):
                self._gateway.shutdown()
            if SparkContext._gateway is self._gateway:  # PySpark keeps it for ever, and would use the dead one again
                SparkContext._gateway = SparkContext._jvm = None
            if process.stdin is not None:
                process.stdin.close()
            if self._archive.claim is not None and warm:
                _let_go(process)
            else:
                _wait_or_kill(process, at_once=self._archive.claim is not None)
                self._archive.give_up()
        shutil.rmtree(self._work, ignore_errors=True)
        os.close(self._lock)
        self._log.close()

    @property
    def _local(self) -> bool:
        return self._master.startswith("local")

    def _variables(self) -> Mapping[str, str | None]:
        """PySpark takes these from the environment only. A cluster's are its user's business."""
        if not self._local:
            return {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}
        return {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_SUBMIT_ARGS": None}

    def _settings(self) -> dict[str, str]:
        local = LOCAL_SETTINGS if self._local else {}
        return {
            **SETTINGS,
            **local,
            "spark.local.dir": str(self._work),
            "spark.driver.extraJavaOptions": " ".join(f'"{option}"' for option in self._java_options()),
        }

    def _java_options(self) -> list[str]:
        import pyspark

        from fencepost.clusters import cache
        from fencepost.clusters.kafka import provision

        jars = Path(pyspark.__file__).parent / "jars"
        home = cache.directory() / "spark-classes"
        self._archive = jvm_class_data.of(home, provision.java().description, pyspark.__version__, jars)
        return [
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:-UsePerfData",
            f"-Djava.io.tmpdir={self._work}",
            f"-Dlog4j2.configurationFile=file:{self._work}/log4j2.properties",
            *self._archive.options,
        ]


def make_work() -> tuple[Path, int]:
    """A new working directory and the lock on it, which ends with this process; those of killed ones are removed."""
    for old in Path(tempfile.gettempdir()).glob(f"{WORK}*"):
        with suppress(OSError):  # somebody else's, or gone in the meantime
            if time.time() - old.stat().st_mtime > OLD_S:
                os.close(_lock(old))
                shutil.rmtree(old, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=WORK))
    return work, _lock(work)


def _lock(directory: Path) -> int:
    """Raises OSError when somebody holds it."""
    held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    if not lock.try_take(held):
        os.close(held)
        raise BlockingIOError(f"{directory} is locked by another process")
    return held


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """It ends by itself; somebody only has to reap it."""
    threading.Thread(target=os.waitpid, args=(process.pid, 0), name="spark-end", daemon=True).start()
    process.returncode = 0


def _wait_or_kill(process: subprocess.Popen[bytes], *, at_once: bool) -> None:
    try:
        process.wait(0 if at_once else END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(END_S)


@contextmanager
def _environment(values: Mapping[str, str | None]) -> Iterator[None]:
    """Variables for a while; whatever was there is put back. None removes."""
    before = {name: os.environ.get(name) for name in values}
    _set(values)
    try:
        yield
    finally:
        _set(before)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
