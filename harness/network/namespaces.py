"""Network namespaces of other processes: a thread enters one, and its new sockets and processes belong there."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from fencepost.errors import ClusterError

CLONE_NEWNET = 0x40000000
OURS = Path("/proc/thread-self/ns/net")


@dataclass(frozen=True)
class Namespace:
    """The network namespace of a process.

    Attributes:
        pid: of the process.
        host: one of its addresses there.
    """

    pid: int
    host: str

    @contextmanager
    def entered(self) -> Iterator[None]:
        """In the block, this thread is in the namespace.

        Raises:
            ClusterError: there is no such process, or the right is missing.
        """
        with ExitStack() as stack:
            try:
                back = stack.enter_context(OURS.open("rb"))
                there = stack.enter_context(Path(f"/proc/{self.pid}/ns/net").open("rb"))
                _enter(there.fileno())
            except OSError as error:
                why = f"the network namespace of process {self.pid} cannot be entered ({error.strerror})"
                raise ClusterError(f"{why}: run as root, or give CAP_SYS_ADMIN") from error
            stack.callback(lambda: _enter(back.fileno()))
            yield


def _enter(namespace: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def missing_reason() -> str:
    """Why no namespace can be entered, as a clause with the remedy; empty: our own can be entered."""
    try:
        with Namespace(os.getpid(), "").entered():
            return ""
    except ClusterError as error:
        return str(error)
