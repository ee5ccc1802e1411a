"""Executors on other machines: is a server reachable, how do executors get our code, and what do their errors mean?

A local session needs none of this: its workers are children of its JVM. Executors need a Python of the same minor
version with numpy and pyarrow, and the run folder at the same path. This module sends them Fencepost itself.
"""

from __future__ import annotations

import atexit
import importlib
import re
import shutil
import socket
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache as once
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit

from fencepost.checkers.spark.engine import Engine
from fencepost.errors import ProvisionError

CONNECT_S = 5.0
EXECUTOR_S = 90.0  # a busy cluster may need time; a cluster that can never meet the request reports no error
DEFAULT_PORTS = {"sc": 15002}
PACKAGES = (
    *("fencepost", "fencepost.checkers", "fencepost.faults", "fencepost.images", "fencepost.workloads"),
    "fencepost_member",
)
GONE = "the executors do not see"
VERSION = "{}.{}".format(*sys.version_info)
PYTHON = f"name one in PYSPARK_PYTHON that has numpy, pyarrow and the version {VERSION}"
LACKS = (  # the pattern of an error of Spark, and its meaning
    (r"(?:PACKAGE_NOT_INSTALLED\] |No module named ')(\w+)", "their Python has no {}: install it there, or " + PYTHON),
    (r"UNSUPPORTED_PACKAGE_VERSION\] (\w+ >= \S+)", "their Python needs {}: install it there, or " + PYTHON),
    (r'Cannot run program "([^"]+)"', "they have no {}: " + PYTHON),
    (r"PYTHON_VERSION_MISMATCH\].*?version: (\S+)", "their Python is {}: " + PYTHON),
    (rf"{GONE} (\S+)", "they do not see {}: put the run folder on storage that they share, at the same path"),
)


def reach(address: str) -> None:
    """Return if a server listens at the ``address`` of a master or Connect server, or if the address names no host.

    Raises:
        ProvisionError: no server listens there, or it is not an address.
    """
    scheme, _, hosts = address.partition("://")
    if scheme not in ("spark", "sc"):
        return  # local, YARN and Kubernetes have other kinds of addresses
    errors = []
    for host in hosts.partition("/")[0].split(","):  # standby masters
        try:
            parts = urlsplit(f"//{host}")
            port = parts.port or DEFAULT_PORTS.get(scheme)
            if not parts.hostname or port is None:
                raise ValueError("it has no host and port")
            socket.create_connection((parts.hostname, port), CONNECT_S).close()
            return
        except (OSError, ValueError) as error:
            errors.append(f"{host}: {error}")
    raise ProvisionError(
        f"no Spark answers at {address} ({'; '.join(errors)}): is it started, and is this its address?"
    )


def ship(engine: Engine) -> None:
    """Send the code of this process to the executors of a cluster. Local ones have it already."""
    if engine.elsewhere:
        engine.ship(_archive())


@once
def _archive() -> Path:
    """Our modules as a zip file, made once per process: new executors may fetch it, and a session accepts only one."""
    folder = Path(tempfile.mkdtemp(prefix="fencepost-code-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = folder / "fencepost.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for source, name in sorted(_sources().items()):
            file.write(source, name)
    return archive


def _sources() -> dict[Path, str]:
    """The files of our modules, and their names in the archive. In a checkout, folders and packages differ in name.

    There, the folder of a package may lie inside the folder of an earlier one; its modules belong to the later package.
    """
    found = {}
    for package in PACKAGES:
        for folder in importlib.import_module(package).__path__:
            for source in Path(folder).rglob("*.py"):
                found[source] = f"{package.replace('.', '/')}/{source.relative_to(folder)}"
    return found


@contextmanager
def explained(engine: Engine) -> Iterator[None]:
    """Turn the errors of Spark jobs in this context into advice, and cancel a job that no executor ever starts.

    Raises:
        ProvisionError: the executors do not meet a requirement, or there are none.
    """
    over, no_executors = Event(), Event()
    Thread(target=_watch, args=(engine, over, no_executors), name="spark-watch", daemon=True).start()
    try:
        yield
    except Exception as error:
        if no_executors.is_set():
            raise ProvisionError(
                f"Spark gave no executor within {EXECUTOR_S:g} s: see whether its workers are alive, and have as many "
                "free cores and as much memory as spark.executor.cores and spark.executor.memory ask for"
            ) from error
        if meaning := meaning_of(str(error)):
            raise ProvisionError(f"Spark's executors cannot judge: {meaning}") from error
        raise
    finally:
        over.set()


def meaning_of(error: str) -> str:
    """The meaning of an error of Spark, with advice; empty if it does not concern a requirement of executors."""
    for pattern, meaning in LACKS:
        if found := re.search(pattern, error, re.DOTALL):
            return meaning.format(found[1])
    return ""


def _watch(engine: Engine, over: Event, no_executors: Event) -> None:
    """Check repeatedly for executors: at the first check there may be no job yet to cancel."""
    while engine.elsewhere and not over.wait(EXECUTOR_S):
        with suppress(Exception):  # the job or Spark itself may end in the meantime
            if engine.cancel_without_executors():
                no_executors.set()
