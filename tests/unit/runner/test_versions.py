"""What took part in a run is written down, by the very programs and packages that took part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost.clusters.kafka import provision
from fencepost.errors import ProvisionError
from fencepost.runner.versions import versions


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    provision.java.cache_clear()
    yield
    provision.java.cache_clear()


def test_the_java_is_the_one_that_everything_else_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.4\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert versions()["java"] == 'openjdk version "21.0.4"'


def test_without_java_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ProvisionError, match="no java on the PATH: install Java 17 or later"):
        versions()


def test_each_library_that_members_may_use_is_among_them() -> None:
    assert {"fencepost", "confluent-kafka", "kafka-python", "aiokafka", "psycopg", "pyspark"} <= versions().keys()
