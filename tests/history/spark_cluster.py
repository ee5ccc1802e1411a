"""A Spark cluster on loopback, from PySpark's own jars: a master, workers, and a Connect server.

Its executors run a Python that has numpy and pyarrow, and no Fencepost.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import psutil
import pyspark

from fencepost.clock import eventually
from fencepost.processes.owner import ProcessOwner, wait_ended

START_S = 60.0
LAST = 2000
SPARK_HOME = Path(pyspark.__file__).parent
VARIABLES = {
    "SPARK_HOME": str(SPARK_HOME),
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_DAEMON_MEMORY": "512m",  # the least that a Connect server takes
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dspark.master.rest.enabled=false",
    "PYTHONPATH": "",  # ours would lead the workers to this checkout
}
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
CONNECT_PORT = r"Spark Connect server started at: \S*?:(\d+)"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def make_python(home: Path, *folders: Path) -> Path:
    """A Python that has the given folders of packages and nothing else, of this environment or another."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    (site,) = home.glob("lib/python*/site-packages")
    for folder in folders:
        (site / folder.name).symlink_to(folder)
    return home / "bin" / "python"


def folders_of(package: ModuleType) -> list[Path]:
    """What a wheel has put beside other packages: the package, and the shared libraries that it brought."""
    home = Path(package.__path__[0])
    return [folder for folder in (home, home.with_name(f"{home.name}.libs")) if folder.is_dir()]


class SparkCluster:
    """A master and its workers, one core each.

    Attributes:
        master: its address.
        python: what the executors run.
        workers: the names of those that live.
    """

    def __init__(self, owner: ProcessOwner, python: Path, workers: int = 2) -> None:
        self._owner = owner
        self._processes: dict[str, psutil.Popen] = {}
        self.python = python
        self._spawn("master", "spark-class", MASTER, "--host", "127.0.0.1", "--port", 0, "--webui-port", 0)
        self.master = self._said("master", r"(spark://[\d.:]+)")
        options = ("--host", "127.0.0.1", "--webui-port", 0, "--cores", 1, "--memory", "2g", self.master)
        self.workers = [f"worker-{number}" for number in range(workers)]
        for name in self.workers:
            self._spawn(name, "spark-class", WORKER, "--work-dir", name, *options)
        for name in self.workers:
            self._said(name, "(Successfully registered)")

    def connect_server(self, *settings: str) -> str:
        """Start a Connect server that works on this cluster; its address."""
        settings = (*settings, "spark.connect.grpc.binding.port=0", "spark.ui.enabled=false")
        options = [part for setting in settings for part in ("--conf", setting)]
        where = ("--master", self.master, "--class", CONNECT)
        self._spawn("connect", "spark-submit", *where, *options, "spark-internal")
        return f"sc://127.0.0.1:{self._said('connect', CONNECT_PORT)}"

    def stop_connect_server(self) -> None:
        """End it, so that its cores are free again."""
        self._processes["connect"].terminate()
        wait_ended(self._processes["connect"], START_S)

    def executor_of(self, worker: str, application: str) -> psutil.Process:
        """The executor that a worker has started for an application. Those of earlier ones may need long to end."""

        def found() -> psutil.Process | None:
            living = [c for c in self._processes[worker].children() if c.status() != psutil.STATUS_ZOMBIE]
            return next((child for child in living if {EXECUTOR, application} <= {*child.cmdline()}), None)

        return eventually(found, START_S, f"the executor of {worker}", state=lambda: self._log(worker)[-LAST:])

    def kill(self, worker: str) -> None:
        """What the end of its machine does."""
        self.workers.remove(worker)
        process = self._processes[worker]
        for victim in (process, *process.children(recursive=True)):  # it first, or it would start another executor
            with suppress(psutil.NoSuchProcess):  # some end by themselves without it
                victim.send_signal(signal.SIGKILL)
        wait_ended(process, START_S)

    def _spawn(self, name: str, program: str, *arguments: object) -> psutil.Popen:
        own = {"PYSPARK_PYTHON": str(self.python), "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={self._owner.directory}"}
        environment = {**VARIABLES, **own}  # who is killed leaves its temporary files to the owner
        argv: list[str | Path] = [SPARK_HOME / "bin" / program, *map(str, arguments)]
        process = self._owner.spawn(argv, log=self._owner.directory / f"{name}.log", env=environment)
        self._processes[name] = process
        return process

    def _said(self, name: str, pattern: str) -> str:
        def found() -> re.Match[str] | None:
            ended = self._processes[name].poll() is not None
            said = re.search(pattern, self._log(name))
            assert said or not ended, f"{name} has ended: {self._log(name)[-LAST:]}"
            return said

        return eventually(found, START_S, f"{name} to start", state=lambda: self._log(name)[-LAST:])[1]

    def _log(self, name: str) -> str:
        return (self._owner.directory / f"{name}.log").read_text(errors="replace")
