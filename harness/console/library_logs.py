"""What libraries log and warn of while they work for Fencepost is kept from a user's test output and terminal.

A warning of theirs is about their insides, and nothing that a user could mend; what matters to a user is told by
Fencepost itself. What they tell code of the user's own stays as it is, in the same process, too.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

LIBRARIES = ("docker", "kafka", "py4j", "pyspark", "requests", "toxiproxy", "urllib3")
_LOG = logging.getLogger("fencepost.library_logs")


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing that libraries log for Fencepost is shown from now on. What they warn of is ignored within: a suite that
    turns warnings into errors means its own code."""
    for name in LIBRARIES:
        logger = logging.getLogger(name)
        if not isinstance(logger, _Library):
            logger.__class__ = _Library
            logger.addHandler(_Detail())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class _Library(logging.Logger):
    """The logger above all those of a library: what was logged for Fencepost goes no further."""

    @property  # asked with each record
    def propagate(self) -> bool:
        """Whether handlers of the root are given a record."""
        return bool(self.__dict__["propagate"]) and not _is_for_fencepost()

    @propagate.setter
    def propagate(self, wanted: bool) -> None:
        self.__dict__["propagate"] = wanted


class _Detail(logging.Handler):
    """Logs as detail of Fencepost what a library has logged for it."""

    def emit(self, record: logging.LogRecord) -> None:
        """One record, in the thread that logged it."""
        if _is_for_fencepost():
            _LOG.debug("%s: %s", record.name, record.getMessage(), exc_info=record.exc_info)


def _is_for_fencepost() -> bool:
    """Whether a module of Fencepost has called what is called now, however indirectly."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name != __name__ and name.partition(".")[0] == "fencepost":
            return True
        frame = frame.f_back
    return False
