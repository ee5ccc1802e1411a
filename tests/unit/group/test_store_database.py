"""A run's database for the store of its members: made before they start; a schema is gone after the run, however the
harness ends."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from postgres import schemas

from fencepost.clock import eventually
from fencepost.errors import ProvisionError
from fencepost.evidence import effects
from fencepost.group import store_database
from fencepost.workloads import ExclusiveWrites, PollLoop
from fencepost_member import databases
from fencepost_member.databases import FILE, PLACE, opened
from fencepost_member.recording.events import EventLog, read

HARNESS = """
import sys, time
from pathlib import Path
from fencepost.group import store_database
from fencepost.workloads import ExclusiveWrites
with store_database.of(ExclusiveWrites(store=sys.argv[1]), Path(sys.argv[2])):
    print("made", flush=True)
    time.sleep(600)
"""


def told(history: Path) -> list[str]:
    log = EventLog(history / "events" / "harness.jsonl", "harness")
    effects.of_store(history, log)
    log.close()
    return [event["detail"]["text"] for event in read(history / "events" / "harness.jsonl").events]


@pytest.mark.postgresql
def test_it_is_there_during_the_run_and_gone_after_it(postgres: str, tmp_path: Path) -> None:
    with store_database.of(ExclusiveWrites(store=postgres), tmp_path):
        (made,) = schemas(postgres)
        assert made in (tmp_path / PLACE).read_text()
        with closing(opened(tmp_path)) as db:
            assert db.execute("SELECT count(*) FROM effects").fetchone() == (0,)
        assert told(tmp_path) == []
    assert schemas(postgres) == []


@pytest.mark.postgresql
def test_it_goes_with_a_harness_that_is_killed(postgres: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", HARNESS, postgres, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as harness:
        try:
            assert harness.stdout is not None
            assert harness.stdout.readline() == b"made\n"
            assert len(schemas(postgres)) == 1
        finally:
            harness.send_signal(signal.SIGKILL)
    eventually(lambda: not schemas(postgres), 30, "the schema to be gone")


@pytest.mark.postgresql
def test_who_is_gone_before_effects_are_told_leaves_them_unknown(postgres: str, tmp_path: Path) -> None:
    with store_database.of(ExclusiveWrites(store=postgres), tmp_path):
        pass
    (text,) = told(tmp_path)
    assert re.match(r'the store of the run cannot be read: relation "effects" does not exist', text)


@pytest.mark.postgresql
def test_what_cannot_be_removed_is_told(
    postgres: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = databases.SchemaLocation(postgres.replace("fencepost@", "nobody@"), "fencepost_1")
    (left,) = store_database.removed(place)
    assert re.match(r'the schema fencepost_1 \(.*role "nobody" does not exist\)', left, re.DOTALL)


def test_other_workloads_have_none(tmp_path: Path) -> None:
    with store_database.of(PollLoop(), tmp_path):
        assert not [*tmp_path.iterdir()]


def test_members_that_start_at_once_can_open_the_file_while_another_one_writes(tmp_path: Path) -> None:
    with (
        store_database.of(ExclusiveWrites(), tmp_path),
        closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with closing(opened(tmp_path)) as member:
            assert member.execute("SELECT count(*) FROM effects").fetchone() == (0,)
    assert told(tmp_path) == []


def test_a_file_that_cannot_be_created_is_said_before_anything_starts(tmp_path: Path) -> None:
    folder = tmp_path / "absent"
    with (
        pytest.raises(ProvisionError, match=f"no SQLite file can be created in {folder}: unable to open"),
        store_database.of(ExclusiveWrites(), folder),
    ):
        pass


def test_nobody_there_is_said_before_anything_starts(tmp_path: Path) -> None:
    address = "postgresql://somebody@127.0.0.1:1/nothing"
    with (
        pytest.raises(ProvisionError, match=rf"no schema can be created in {address}: .*Does the server run"),
        store_database.of(ExclusiveWrites(store=address), tmp_path),
    ):
        pass
    assert not [*tmp_path.iterdir()]


def test_a_python_without_the_driver_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "find_spec", lambda name: None)
    address = "postgresql://somebody@127.0.0.1:1/nothing"
    with (
        pytest.raises(ProvisionError, match=r"which needs psycopg in this Python: pip install 'psycopg\[binary\]'"),
        store_database.of(ExclusiveWrites(store=address), tmp_path),
    ):
        pass
