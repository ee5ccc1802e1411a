"""The Spark session as a process: it starts in the background, and nothing of it outlives whoever started it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from fencepost.checkers.session import Spark
from fencepost.clock import eventually
from fencepost.errors import ProvisionError, WaitTimeout

HOLDER = """
import sys
from fencepost.checkers.session import Spark
spark = Spark.start(warm_up=lambda session: None)
spark.get()
print(spark._jvm._work, flush=True)
sys.stdin.read()
"""


def test_a_session_that_does_not_come_is_waited_for_no_longer_than_asked():
    with pytest.raises(WaitTimeout, match=r"waited 0\.01 s for the Spark session"):
        Spark().get(within_s=0.01)


def test_without_java_the_error_says_what_to_install(monkeypatch, tmp_path):
    from fencepost.clusters import provision

    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    provision.java.cache_clear()
    spark = Spark.start()
    try:
        with pytest.raises(ProvisionError, match="install Java"):
            spark.get(within_s=30)
    finally:
        spark.stop()
        provision.java.cache_clear()


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
    eventually(lambda: not any(p.is_running() for p in processes), 30, "the JVM to end", state=lambda: str(processes))
    eventually(lambda: not work.exists(), 10, "its files to go")
