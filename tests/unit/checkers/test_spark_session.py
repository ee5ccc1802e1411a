"""The Spark session as a process: it starts in the background, and nothing of it outlives whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from fencepost.checkers.spark import jvm, jvm_class_data
from fencepost.checkers.spark.engine import in_own_thread
from fencepost.checkers.spark.session import Spark
from fencepost.clock import eventually
from fencepost.errors import ProvisionError, WaitTimeout

JAVA, JARS = ("openjdk 17", "4.3.0"), Path(__file__).parent
HOLDER = """
import sys
from fencepost.checkers.spark.session import Spark
spark = Spark.start(warm_up=lambda engine: None)
spark.get()
print(spark._close.__self__._work, flush=True)
sys.stdin.read()
"""


def test_a_session_that_does_not_come_is_waited_for_no_longer_than_asked():
    with pytest.raises(WaitTimeout, match=r"waited 0\.01 s for Spark"):
        Spark().get(within_s=0.01)


def test_without_java_the_error_says_what_to_install(monkeypatch, tmp_path):
    from fencepost.clusters.kafka import provision

    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    provision.java.cache_clear()
    spark = Spark.start()
    try:
        with pytest.raises(ProvisionError, match="install Java"):
            spark.get(within_s=30)
    finally:
        spark.stop()
        provision.java.cache_clear()


def test_one_session_makes_the_class_archive_and_the_next_ones_use_it(tmp_path, monkeypatch):
    first = jvm_class_data.of(tmp_path / "home", *JAVA, JARS)
    assert [option.split("=")[0] for option in first.options] == ["-XX:ArchiveClassesAtExit", "-Xlog:disable"]
    assert jvm_class_data.of(tmp_path / "home", *JAVA, JARS).options == ()  # it is being made
    made = Path(first.options[0].partition("=")[2])
    made.write_bytes(b"classes")
    made.chmod(0o444)
    assert jvm_class_data.of(tmp_path / "home", *JAVA, JARS).options == ()  # perhaps it is still being written
    monkeypatch.setattr(jvm_class_data, "SETTLED_S", -1)
    archive = Path(jvm_class_data.of(tmp_path / "home", *JAVA, JARS).options[0].partition("=")[2])
    assert archive.read_bytes() == b"classes"
    assert jvm_class_data.of(tmp_path / "home", "another java", "4.3.0", JARS).claim


def test_a_session_that_made_no_archive_leaves_it_to_the_next(tmp_path):
    jvm_class_data.of(tmp_path, *JAVA, JARS).give_up()
    assert jvm_class_data.of(tmp_path, *JAVA, JARS).claim


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path):
    (tmp_path / "file").touch()
    assert jvm_class_data.of(tmp_path / "file" / "home", *JAVA, JARS).options == ()


def test_what_a_killed_process_left_is_removed_by_the_next_one_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    held, lock = jvm.make_work()
    (tmp_path / f"{jvm.WORK}young").mkdir()
    (tmp_path / f"{jvm.WORK}killed").mkdir()
    (tmp_path / f"{jvm.WORK}killed" / "log4j2.properties").touch()
    (tmp_path / "notes").mkdir()
    for old in (held, tmp_path / f"{jvm.WORK}killed", tmp_path / "notes"):
        os.utime(old, (0, 0))
    new, another = jvm.make_work()
    os.close(lock)
    os.close(another)
    assert set(tmp_path.iterdir()) == {held, new, tmp_path / f"{jvm.WORK}young", tmp_path / "notes"}


@pytest.mark.spark
def test_the_jvm_and_its_files_go_when_the_process_is_killed():
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        work = Path(holder.stdout.readline().strip())
        processes = psutil.Process(holder.pid).children(recursive=True)
        assert any("java" in process.name() for process in processes)
        assert work.is_dir()
    finally:
        holder.kill()
        holder.communicate()
    eventually(lambda: not any(p.is_running() for p in processes), 120, "the JVM to end", state=lambda: str(processes))
    eventually(lambda: not work.exists(), 60, "its files to go")


@pytest.mark.slow
@pytest.mark.spark
def test_a_session_that_nobody_wants_any_more_ends_before_it_is_there():
    spark = Spark.start()
    spark.stop()
    children = psutil.Process().children(recursive=True)
    assert not [child for child in children if "java" in child.name()]
    with pytest.raises(ProvisionError):
        spark.get(within_s=0.1)


@pytest.mark.slow
@pytest.mark.spark
def test_a_second_session_of_a_process_starts_like_the_first():
    for _ in range(2):
        spark = Spark.start(warm_up=lambda engine: None)
        try:
            assert spark.get().map(lambda n: n + 1, 3) == [1, 2, 3]
            assert SparkSession._instantiatedSession is None  # Spark SQL would be a quarter of a cold start
        finally:
            spark.stop()


@pytest.mark.slow
@pytest.mark.spark
def test_who_gives_our_own_jobs_up_leaves_a_users_alone(tmp_path):
    go = tmp_path / "go"

    def waits(name):  # inside, as workers do not have this module
        (tmp_path / name).touch()
        eventually(go.exists, 120, "the word")
        return name

    with Spark.start("local[2]", warm_up=lambda engine: None) as spark, ThreadPoolExecutor(2) as threads:
        engine = spark.get()
        try:
            ours = threads.submit(engine.map, lambda _: waits("ours"), 1)
            theirs = threads.submit(lambda: engine.context.parallelize(["theirs"], 1).map(waits).collect())
            eventually(lambda: {"ours", "theirs"} <= {path.name for path in tmp_path.iterdir()}, 60, "both to begin")
            assert engine.cancel_without_executors()  # of a local context all counted is the driver
            with pytest.raises(Exception, match="cancelled"):
                ours.result(60)
        finally:
            go.touch()
        assert theirs.result(60) == ["theirs"]
        assert engine.map(lambda n: n, 2) == [0, 1]


@pytest.mark.slow
@pytest.mark.spark
def test_who_is_interrupted_leaves_no_answer_for_later_calls(tmp_path):
    """As by a test's time-out, while Spark works."""
    begun, go, main = tmp_path / "begun", tmp_path / "go", threading.get_ident()

    class Interrupted(BaseException):
        pass

    def waits(number):  # inside, as workers do not have this module
        begun.touch()
        eventually(go.exists, 120, "the word")
        return number

    def interrupted(*_):
        raise Interrupted

    def interrupts():
        eventually(begun.exists, 60, "the call to begin")
        signal.pthread_kill(main, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupted)
    try:
        with Spark.start("local[2]", warm_up=lambda engine: None) as spark, ThreadPoolExecutor(1) as threads:
            engine = spark.get()
            interrupter = threads.submit(interrupts)
            with pytest.raises(Interrupted):
                in_own_thread(lambda: engine.map(waits, 1))
            interrupter.result(60)
            go.touch()
            assert in_own_thread(lambda: engine.cores) == 2
            assert in_own_thread(lambda: engine.map(lambda n: n * n, 3)) == [0, 1, 4]
            assert engine.cores == 2
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_what_a_call_apart_raises_is_raised():
    def fails():
        raise WaitTimeout("not there")

    with pytest.raises(WaitTimeout, match="not there"):
        in_own_thread(fails)
