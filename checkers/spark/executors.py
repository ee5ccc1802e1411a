"""Executors on other machines: whether anybody is there, how they get our code, and what to do about what they lack.

A local session needs none of this: its workers are children of its JVM. Wherever they are, they need a Python of our
minor version with numpy and pyarrow, and the run folder at the same path; Fencepost itself they get from here.
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
EXECUTOR_S = 90.0  # a busy cluster may let us wait; one that can never give what is asked says nothing
DEFAULT_PORTS = {"sc": 15002}
PACKAGES = (
    *("fencepost", "fencepost.checkers", "fencepost.faults", "fencepost.images", "fencepost.workloads"),
    "fencepost_member",
)
GONE = "the executors do not see"
VERSION = "{}.{}".format(*sys.version_info)
PYTHON = f"name one in PYSPARK_PYTHON that has numpy, pyarrow and the version {VERSION}"
LACKS = (  # what Spark says, and what that means
    (r"(?:PACKAGE_NOT_INSTALLED\] |No module named ')(\w+)", "their Python has no {}: install it there, or " + PYTHON),
    (r"UNSUPPORTED_PACKAGE_VERSION\] (\w+ >= \S+)", "their Python needs {}: install it there, or " + PYTHON),
    (r'Cannot run program "([^"]+)"', "they have no {}: " + PYTHON),
    (r"PYTHON_VERSION_MISMATCH\].*?version: (\S+)", "their Python is {}: " + PYTHON),
    (rf"{GONE} (\S+)", "they do not see {}: put the run folder on storage that they share, at the same path"),
)


def reach(address: str) -> None:
    """Return when somebody listens at the ``address`` of a master or Connect server, or when it names no host.

    Raises:
        ProvisionError: nobody does, or it is no address.
    """
    scheme, _, hosts = address.partition("://")
    if scheme not in ("spark", "sc"):
        return  # local, YARN and Kubernetes have addresses of their own kinds
    said = []
    for host in hosts.partition("/")[0].split(","):  # masters that stand by for each other
        try:
            parts = urlsplit(f"//{host}")
            port = parts.port or DEFAULT_PORTS.get(scheme)
            if not parts.hostname or port is None:
                raise ValueError("it has no host and port")
            socket.create_connection((parts.hostname, port), CONNECT_S).close()
            return
        except (OSError, ValueError) as error:
            said.append(f"{host}: {error}")
    raise ProvisionError(f"no Spark answers at {address} ({'; '.join(said)}): is it started, and is this its address?")


def ship(engine: Engine) -> None:
    """Give the executors of a cluster the very code that runs here. Nothing happens when they have it."""
    if engine.elsewhere:
        engine.ship(_archive())


@once
def _archive() -> Path:
    """Made once for this process: executors that come later fetch it, and a session takes no second one."""
    folder = Path(tempfile.mkdtemp(prefix="fencepost-code-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = folder / "fencepost.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for source, name in sorted(_sources().items()):
            file.write(source, name)
    return archive


def _sources() -> dict[Path, str]:
    """Our modules, and their names in the archive: a checkout keeps the packages in folders that are called otherwise.

    There, the folder of one may lie in that of an earlier one; its modules are the later one's.
    """
    found = {}
    for package in PACKAGES:
        for folder in importlib.import_module(package).__path__:
            for source in Path(folder).rglob("*.py"):
                found[source] = f"{package.replace('.', '/')}/{source.relative_to(folder)}"
    return found


@contextmanager
def explained(engine: Engine) -> Iterator[None]:
    """What a job within fails of is told as what to do; one that no executor takes does not wait for ever.

    Raises:
        ProvisionError: the executors lack something, or there are none.
    """
    over, nobody = Event(), Event()
    Thread(target=_watch, args=(engine, over, nobody), name="spark-watch", daemon=True).start()
    try:
        yield
    except Exception as error:
        if nobody.is_set():
            raise ProvisionError(
                f"Spark gave no executor within {EXECUTOR_S:g} s: see whether its workers are alive, and have as many "
                "free cores and as much memory as spark.executor.cores and spark.executor.memory ask for"
            ) from error
        if meaning := meaning_of(str(error)):
            raise ProvisionError(f"Spark's executors cannot judge: {meaning}") from error
        raise
    finally:
        over.set()


def meaning_of(said: str) -> str:
    """What to do about an error that Spark tells of; empty when it is no lack of the executors."""
    for pattern, meaning in LACKS:
        if found := re.search(pattern, said, re.DOTALL):
            return meaning.format(found[1])
    return ""


def _watch(engine: Engine, over: Event, nobody: Event) -> None:
    """Look again and again: at first there may be no job yet that could be ended."""
    while engine.elsewhere and not over.wait(EXECUTOR_S):
        with suppress(Exception):  # the job ends in the meantime, or Spark itself
            if engine.cancel_without_executors():
                nobody.set()
