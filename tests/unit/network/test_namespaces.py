"""Entering the network namespace of another process, and always coming back."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost.errors import ClusterError
from fencepost.network import namespaces
from fencepost.network.namespaces import OURS, Namespace


@pytest.fixture
def elsewhere() -> Iterator[Namespace]:
    """That of a process which waits in one of its own."""
    if shutil.which("unshare") is None or namespaces.missing_reason():
        pytest.skip("network namespaces cannot be made or entered here")
    argv = ["unshare", "--net", "sh", "-c", "echo there; read line"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        yield Namespace(process.pid, "127.0.0.1")
        process.communicate(b"\n")


def test_what_is_started_in_there_belongs_there_and_what_comes_after_does_not(elsewhere: Namespace) -> None:
    there, ours = Path(f"/proc/{elsewhere.pid}/ns/net").readlink(), OURS.readlink()
    with elsewhere.entered():
        child = subprocess.run(["readlink", "/proc/self/ns/net"], capture_output=True, text=True, check=True)
        assert Path(child.stdout.strip()) == OURS.readlink() == there != ours
    assert OURS.readlink() == ours


def test_what_fails_in_there_fails_as_it_is_and_outside(elsewhere: Namespace) -> None:
    ours = OURS.readlink()
    with pytest.raises(FileNotFoundError, match="iptables"), elsewhere.entered():
        raise FileNotFoundError("iptables")
    assert OURS.readlink() == ours


def test_that_of_nobody_cannot_be_entered() -> None:
    nobody = Namespace(4194305, "").entered()  # no kernel gives such a number
    with pytest.raises(ClusterError, match=r"of process 4194305 cannot be entered .*: run as root"), nobody:
        pytest.fail("it was entered")
