"""Getting the parts: the cache is whole or untouched, and what is missing is a sentence with its remedy."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost.clusters import cache
from fencepost.clusters.kafka import provision
from fencepost.errors import ProvisionError
from fencepost.model.settings import KAFKAS


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "cache"))
    for name in ("KAFKA_HOME", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    provision.java.cache_clear()
    yield tmp_path / "cache"
    provision.java.cache_clear()


def make(into: Path) -> None:
    (into / "part").write_text("whole")


def never(into: Path) -> None:
    raise AssertionError("it was there already")


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_what_was_installed_once_is_not_made_again(own_cache: Path) -> None:
    assert cache.install("thing-1.0", make) == own_cache / "thing-1.0"
    assert cache.install("thing-1.0", never) == own_cache / "thing-1.0"


@pytest.mark.parametrize("damage", [lambda part: part.unlink(), lambda part: part.write_text("hole"), os.utime])
def test_what_was_tampered_with_is_made_again(own_cache: Path, damage: object) -> None:
    part = cache.install("thing-1.0", make) / "part"
    assert callable(damage)
    damage(part)
    assert not cache.intact(own_cache / "thing-1.0")
    assert (cache.install("thing-1.0", make) / "part").read_text() == "whole"


def test_a_failure_on_the_way_leaves_nothing(own_cache: Path) -> None:
    def fail(into: Path) -> None:
        make(into)
        raise ProvisionError("the line went dead")

    with pytest.raises(ProvisionError, match="the line went dead"):
        cache.install("thing-1.0", fail)
    assert [path.name for path in own_cache.iterdir()] == ["locks"]


def test_what_a_killed_run_left_half_made_is_removed(own_cache: Path) -> None:
    (own_cache / "thing-1.0.killed" / "made").mkdir(parents=True)
    cache.install("thing-1.0", make)
    assert {path.name for path in own_cache.iterdir()} == {"locks", "thing-1.0"}


def test_two_runs_that_need_the_same_thing_make_it_once(own_cache: Path) -> None:
    made, begun, go = [], threading.Event(), threading.Event()

    def slowly(into: Path) -> None:
        begun.set()
        assert go.wait(10)
        made.append(into)
        make(into)

    runs = [threading.Thread(target=cache.install, args=("thing-1.0", slowly)) for _ in range(2)]
    runs[0].start()
    assert begun.wait(10)
    runs[1].start()
    go.set()
    for run in runs:
        run.join(10)
    assert len(made) == 1


def test_the_cache_follows_the_desktop_convention(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FENCEPOST_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.directory() == tmp_path / "xdg" / "fencepost"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda folder: (folder / "a.jar").write_text("altered"), "a.jar has SHA-256 .* is pinned"),
        (lambda folder: (folder / "a.jar").unlink(), "a.jar is pinned but was not fetched"),
        (lambda folder: (folder / "b.jar").write_text("more"), "b.jar was fetched but is not pinned"),
    ],
)
def test_only_exactly_the_pinned_files_are_accepted(tmp_path: Path, change: object, sentence: str) -> None:
    folder = tmp_path / "fetched"
    folder.mkdir()
    (folder / "a.jar").write_text("original")
    pins = {"a.jar": cache.sha256(folder / "a.jar")}
    cache.verify(folder, pins)
    assert callable(change)
    change(folder)
    with pytest.raises(ProvisionError, match=sentence):
        cache.verify(folder, pins)


@pytest.mark.parametrize("version", KAFKAS)
def test_every_jar_of_a_known_kafka_is_pinned_and_none_of_log4j_1(version: str) -> None:
    pins = provision.kafka_pins(version)
    assert f"kafka_2.13-{version}.jar" in pins
    assert f"kafka-tools-{version}.jar" in pins
    assert not [name for name in pins if "reload4j" in name]
    assert all(len(pin) == 64 for pin in pins.values())
    for library in ("log4j-core", "log4j-api", "log4j-slf4j-impl"):
        assert len([name for name in pins if name.startswith(f"{library}-2")]) == 1


def test_a_cache_that_cannot_be_written_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ProvisionError, match="set FENCEPOST_CACHE to another folder"):
        cache.install("thing-1.0", make)


def test_a_full_disk_is_a_sentence_before_anything_is_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cache, "NEEDED_BYTES", shutil.disk_usage(tmp_path).total + 1)
    with pytest.raises(ProvisionError, match=r"MB free, but \d+ MB are needed: free some, or set FENCEPOST_CACHE"):
        cache.install("thing-1.0", never)


def test_a_missing_java_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProvisionError, match="no java on the PATH: install Java 17 or later"):
        provision.java()


@pytest.mark.parametrize(("reported", "named"), [("1.8.0_402", "Java 8"), ("11.0.22", "Java 11")])
def test_an_old_java_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, reported: str, named: str) -> None:
    program(tmp_path / "bin", "java", f"echo 'openjdk version \"{reported}\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ProvisionError, match=f"is {named}: install 17 or later"):
        provision.java()


def test_a_java_home_without_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ProvisionError, match=f"no java in JAVA_HOME={tmp_path}"):
        provision.java()


def test_a_distribution_is_taken_from_kafka_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))
    with pytest.raises(ProvisionError, match=r"has no libs/kafka_2.\*.jar: unset it, or name a distribution"):
        provision.kafka()
    (tmp_path / "libs").mkdir()
    for name in ("kafka_2.13-4.1.0.jar", "scala-library-2.13.16.jar"):
        (tmp_path / "libs" / name).touch()
    jars = provision.kafka()
    assert [jar.name for jar in jars] == ["kafka_2.13-4.1.0.jar", "scala-library-2.13.16.jar"]
    assert provision.kafka_version(jars) == "4.1.0"
    with pytest.raises(ProvisionError, match=r"is Kafka 4.1.0, but the scenario needs 3.9.1: unset it"):
        provision.kafka(version="3.9.1")


def test_a_distribution_whose_logs_nobody_here_can_read_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))
    (tmp_path / "libs").mkdir()
    for name in ("kafka_2.13-3.9.1.jar", "slf4j-reload4j-1.7.36.jar"):
        (tmp_path / "libs" / name).touch()
    with pytest.raises(ProvisionError, match=r"is Kafka 3.9.1 with log4j 1, .* the scenario's option kafka \(4.3.1, 3"):
        provision.kafka(version="3.9.1")


def test_what_is_pinned_is_what_is_known() -> None:
    folder = Path(provision.__file__).parent
    assert {path.stem for path in folder.glob("*.sha256")} == {f"kafka-{version}" for version in KAFKAS}
