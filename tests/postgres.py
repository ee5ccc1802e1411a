"""A PostgreSQL server for tests, made of this machine's own binaries, and gone after them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from fencepost.clock import eventually
from fencepost.processes.owner import ProcessOwner, send, wait_ended

DEBIANS = "/usr/lib/postgresql"
USER = "postgres"  # the server refuses to be root's
STARTS_S = 60


def binaries() -> Path | None:
    """The folder of ``initdb`` and ``postgres``, of the newest release that is here."""
    newest = sorted(Path(DEBIANS).glob("*/bin"), key=lambda folder: int(folder.parent.name))
    found = shutil.which("initdb")
    folders = [*([Path(found).parent] if found else []), *reversed(newest)]
    return next((folder for folder in folders if (folder / "postgres").exists()), None)


@contextmanager
def server() -> Iterator[str]:
    """The address of a database of it."""
    programs = binaries()
    assert programs is not None
    with ProcessOwner.open() as owner:
        owner.directory.chmod(0o711)
        home = owner.directory / "postgres"
        home.mkdir()
        if os.getuid() == 0:
            shutil.chown(home, USER, USER)
        data, log, port = home / "data", owner.directory / "postgres.log", _free_port()
        make = ["initdb", "--auth=trust", "--no-sync", "--username=fencepost", str(data)]
        assert wait_ended(owner.spawn(_as_user(programs, *make), log=log, cwd=home), STARTS_S) == 0, log.read_text()
        serve = ["postgres", "-D", str(data), "-F", "-h", "127.0.0.1", "-p", str(port), "-k", ""]
        process = owner.spawn(_as_user(programs, *serve), log=log, cwd=home)
        address = f"postgresql://fencepost@127.0.0.1:{port}/postgres"
        eventually(lambda: _answers(address), STARTS_S, "PostgreSQL to answer", state=log.read_text)
        yield address
        send(process, signal.SIGINT)  # its "fast" shutdown: nobody is waited for
        wait_ended(process, STARTS_S)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a server that serves all tests of the session."""
    if binaries() is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: the package postgresql)")
    with server() as address:
        yield address


def schemas(address: str) -> list[str]:
    """Those that runs made, and did not remove."""
    query = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'fencepost%'"
    with psycopg.connect(address) as db:
        return [name for (name,) in db.execute(query).fetchall()]


def _as_user(programs: Path, program: str, *arguments: str) -> list[str]:
    other = [f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    return [*(["setpriv", *other] if os.getuid() == 0 else []), str(programs / program), *arguments]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(address: str) -> bool:
    try:
        psycopg.connect(address).close()
    except psycopg.OperationalError:
        return False
    return True
