"""Spark elsewhere says what this process says: on a standalone cluster, through a Connect server, and with losses.

The executors' Python has no Fencepost: what they run came with the job.
"""

from __future__ import annotations

import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import numpy
import pyarrow
import pytest

from fencepost.checkers import judge
from fencepost.checkers.counts import Bounds
from fencepost.checkers.kernel.partitioning import WIDTH
from fencepost.checkers.spark import detector, executors
from fencepost.checkers.spark.session import Spark
from fencepost.checkers.tables import load
from fencepost.clock import eventually
from fencepost.errors import ProvisionError
from fencepost.model import Validity, Verdict
from fencepost.processes.owner import ProcessOwner
from history import random_histories
from history.spark_cluster import SparkCluster, folders_of, make_python
from history.test_kernel_equals_oracle import NARROW

SEED = 0  # its history has anomalies of many kinds, in three partitions
SECONDS = 60.0
FAST = "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On storage that all processes of this machine share."""
    run = random_histories.wild(tmp_path_factory.mktemp("shared"), SEED)
    assert verdict_here(run).validity is Validity.INVALID
    return run


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    python = make_python(tmp_path_factory.mktemp("executors"), *folders_of(numpy), *folders_of(pyarrow))
    said = subprocess.run(
        [python, "-E", "-c", "import pyarrow, fencepost"], capture_output=True, text=True, check=False
    )
    assert "No module named 'fencepost'" in said.stderr
    with ProcessOwner.open() as owner:
        yield SparkCluster(owner, python)


@pytest.fixture(scope="module")
def spark(cluster: SparkCluster) -> Iterator[Spark]:
    with session_on(cluster) as session:
        yield session


@contextmanager
def session_on(cluster: SparkCluster, *settings: str) -> Iterator[Spark]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", str(cluster.python))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        options = [part for setting in (FAST, *settings) for part in ("--conf", setting)]
        patch.setenv("PYSPARK_SUBMIT_ARGS", shlex.join([*options, "pyspark-shell"]))
        with Spark.start(cluster.master) as spark:
            yield spark


def places_of_code(spark: Spark) -> list[str]:
    def place(_: int) -> str:  # inside, as the executors do not have this module
        from fencepost.checkers import kernel

        return kernel.__file__

    return spark.get().map(place, 4)


def executors_at_work(spark: Spark) -> set[str]:
    """Their working directories. One whose process has begun may be far from taking tasks."""

    def place(_: int) -> str:
        return str(Path.cwd())

    return set(spark.get().map(place, 2))


def verdict(run: Path, spark: Spark, width: int = NARROW) -> Verdict:
    return judge.judge(run, lambda *what: detector.find(*what, spark, width))


def verdict_here(run: Path) -> Verdict:
    return judge.judge(run, detector.find_here)


@pytest.mark.slow
@pytest.mark.spark
def test_a_connect_server_gives_the_same_verdict(cluster: SparkCluster, run: Path) -> None:
    try:
        with Spark.start(remote=cluster.connect_server(FAST)) as spark:
            assert verdict(run, spark, WIDTH) == verdict_here(run)
            assert all("/fencepost.zip/" in place for place in places_of_code(spark))
    finally:
        cluster.stop_connect_server()


@pytest.mark.slow
@pytest.mark.spark
def test_a_cluster_that_cannot_give_what_is_asked_is_not_waited_for(
    run: Path, cluster: SparkCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "EXECUTOR_S", 0.5)
    reported = pytest.raises(ProvisionError, match=r"gave no executor within 0\.5 s.*spark\.executor\.memory")
    with session_on(cluster, "spark.executor.memory=1000g") as spark, reported:
        detector.find(run, load(run), Bounds(), spark)


@pytest.mark.slow
@pytest.mark.spark
def test_a_cluster_whose_executors_get_the_code_gives_the_same_verdict(run: Path, spark: Spark) -> None:
    assert verdict(run, spark) == verdict_here(run)
    assert all("/fencepost.zip/" in place for place in places_of_code(spark))


@pytest.mark.slow
@pytest.mark.spark
def test_the_end_of_a_worker_in_the_middle_of_the_job_changes_nothing(
    run: Path, spark: Spark, cluster: SparkCluster
) -> None:  # before tests whose jobs fail: what is left of these keeps executors busy for a while
    context = spark.get().context
    tracker = context.statusTracker()
    eventually(lambda: len(executors_at_work(spark)) == 2, SECONDS, "both executors to take tasks")
    first, second = (cluster.executor_of(worker, context.applicationId) for worker in cluster.workers)

    def active() -> list[int]:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return [stage.numActiveTasks for stage in stages if stage]

    with ThreadPoolExecutor() as pool:
        try:
            for executor in (first, second):
                executor.suspend()  # frozen they can take a task, and cannot finish it
            judging = pool.submit(verdict, run, spark)
            eventually(lambda: 2 in active(), SECONDS, "each executor to hold a task", state=lambda: str(active()))
            cluster.kill(cluster.workers[1])
        finally:
            first.resume()
        assert judging.result(2 * SECONDS) == verdict_here(run)


@pytest.mark.slow
@pytest.mark.spark
def test_what_executors_lack_is_told_with_the_remedy(
    run: Path, spark: Spark, cluster: SparkCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = spark.get().context
    without_arrow = make_python(tmp_path / "without", *folders_of(numpy))
    lacking = {without_arrow: "no pyarrow: install it there", tmp_path / "none": "they have no /"}
    for python, reported in lacking.items():
        monkeypatch.setattr(context, "pythonExec", str(python))
        with pytest.raises(ProvisionError, match=f"{reported}.*PYSPARK_PYTHON"):
            detector.find(run, load(run), Bounds(), spark)
    monkeypatch.setattr(context, "pythonExec", str(cluster.python))
    mine = tmp_path / "mine"
    shutil.copytree(run, mine)
    read = detector.read_groups
    monkeypatch.setattr(detector, "read_groups", lambda run: (read(run), shutil.rmtree(run))[0])  # nobody else sees it
    with pytest.raises(ProvisionError, match=r"do not see .*: put the run folder on storage that they share"):
        detector.find(mine, load(mine), Bounds(), spark)


@pytest.mark.parametrize("kind", ["master", "remote"])
def test_an_address_where_nobody_listens_is_told_at_once(kind: str) -> None:
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        address = f"{'spark' if kind == 'master' else 'sc'}://127.0.0.1:{bound.getsockname()[1]}"
        reported = pytest.raises(ProvisionError, match=f"no Spark answers at {address}.*is it started")
        with Spark.start(**{kind: address}) as spark, reported:
            spark.get(SECONDS)


@pytest.mark.parametrize("address", ["spark://", "spark://host", "spark://host:port", "sc://:15002"])
def test_an_address_that_is_none_is_told(address: str) -> None:
    with pytest.raises(ProvisionError, match="no Spark answers"):
        executors.reach(address)


def test_one_of_several_masters_is_enough() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        executors.reach(f"spark://127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}")
        executors.reach(f"sc://127.0.0.1:{server.getsockname()[1]}/;user_id=me")


@pytest.mark.parametrize("address", ["local[*]", "yarn", "k8s://https://host:6443"])
def test_other_masters_are_left_to_spark(address: str) -> None:
    executors.reach(address)


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ("[PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be installed", "their Python has no PyArrow: install"),
        ("ModuleNotFoundError: No module named 'numpy'", "their Python has no numpy: install"),
        ("[UNSUPPORTED_PACKAGE_VERSION] PyArrow >= 18.0.0 must be", "their Python needs PyArrow >= 18.0.0: install"),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that",
            "their Python is 3.9: name",
        ),
        ("java.lang.OutOfMemoryError: Java heap space", ""),
    ],
)
def test_what_spark_says_is_told_as_what_to_do(said: str, meaning: str) -> None:
    reported = executors.meaning_of(f"Job aborted due to stage failure: Task 0 failed\n{said}\n  at org.apache.spark")
    assert reported.startswith(meaning)
    assert bool(reported) == bool(meaning)
