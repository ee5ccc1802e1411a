"""The JVM of a Spark context on this machine: its settings, its output, its working directory, and its end.

The JVM ends when this process ends for any reason, because its standard input closes, and it removes its files itself.
If this process is killed while the JVM starts, the next session removes the files.
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
OLD_S = 60.0  # an unlocked working directory of this age belongs to no process

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
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",  # threads before a fork do harm, and none are needed
    # The allocator keeps the memory of freed arrays: new pages from the kernel would cost a third of the time.
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(8 << 30),
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",  # numpy and Arrow reuse each other's freed memory
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
        """Create the working directory; ``start`` starts the JVM."""
        self._master = master
        self._work, self._lock = make_work()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it has no name, so it never remains on disk
        self._gateway: Any = None
        self._context: SparkContext | None = None
        self._archive = Archive()

    def start(self) -> SparkContext:
        """Start the JVM and its context.

        Raises:
            ProvisionError: there is no Java, or the JVM ended; the message has the last lines of its output.
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
                output = [line.strip() for line in lines if line.strip() and not line.startswith("\tat ")][-5:]
                raise ProvisionError(f"{error}. The JVM said: {' / '.join(output) or 'nothing'}") from error
        for path in (self._work, self._work / "log4j2.properties"):
            context._jvm.java.io.File(str(path)).deleteOnExit()  # type: ignore[union-attr]
        return context

    def end(self, warm: bool) -> None:
        """End the JVM and remove its files. A JVM that writes the class archive ends by itself some seconds later.

        Args:
            warm: the session has done its usual work, so an archive of its loaded classes is useful.
        """
        from pyspark import SparkContext

        if self._context is not None:
            with suppress(Exception):
                self._context.stop()
        if self._gateway is not None:
            process: subprocess.Popen[bytes] = self._gateway.proc
            with suppress(Exception):
                self._gateway.shutdown()
            if SparkContext._gateway is self._gateway:  # PySpark keeps a dead gateway and would use it again
                SparkContext._gateway = SparkContext._jvm = None
            if process.stdin is not None:
                process.stdin.close()
            if self._archive.claim is not None and warm:
                _reap_later(process)
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
        """The settings that PySpark reads only from the environment. Those of a cluster are up to its user."""
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
    """A new working directory and its lock, which ends with this process. Removes directories of killed processes."""
    for old in Path(tempfile.gettempdir()).glob(f"{WORK}*"):
        with suppress(OSError):  # locked by another process, or deleted in the meantime
            if time.time() - old.stat().st_mtime > OLD_S:
                os.close(_lock(old))
                shutil.rmtree(old, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=WORK))
    return work, _lock(work)


def _lock(directory: Path) -> int:
    """Lock a directory. Raises OSError if another process holds the lock."""
    held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    if not lock.try_take(held):
        os.close(held)
        raise BlockingIOError(f"{directory} is locked by another process")
    return held


def _reap_later(process: subprocess.Popen[bytes]) -> None:
    """Reap a process that ends by itself, in a background thread."""
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
    """Set environment variables inside the context, then restore the previous values. None removes a variable."""
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
