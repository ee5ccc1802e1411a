"""Keeps logs and warnings of libraries that work for Fencepost out of a user's test output and terminal.

Such a warning is about the library's internals, and a user cannot fix it; Fencepost itself reports what matters to a
user. Logs and warnings for the user's own code in the same process are not changed.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

LIBRARIES = ("docker", "kafka", "py4j", "pyspark", "requests", "testcontainers", "toxiproxy", "urllib3")
_LOG = logging.getLogger("fencepost.library_logs")


@contextmanager
def quiet() -> Iterator[None]:
    """From now on, logs of libraries that work for Fencepost are hidden. In the block, warnings are ignored: a suite
    that turns warnings into errors means its own code."""
    for name in LIBRARIES:
        logger = logging.getLogger(name)
        if not isinstance(logger, _Library):
            logger.__class__ = _Library
            logger.addHandler(_Detail())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class _Library(logging.Logger):
    """The top logger of a library, which does not pass on records that were logged for Fencepost."""

    @property  # read for each record
    def propagate(self) -> bool:
        """Whether handlers of the root logger receive the record."""
        return bool(self.__dict__["propagate"]) and not _is_for_fencepost()

    @propagate.setter
    def propagate(self, value: bool) -> None:
        self.__dict__["propagate"] = value


class _Detail(logging.Handler):
    """Logs records of a library that works for Fencepost as Fencepost's own debug records."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record, in the thread that created it."""
        if _is_for_fencepost():
            _LOG.debug("%s: %s", record.name, record.getMessage(), exc_info=record.exc_info)


def _is_for_fencepost() -> bool:
    """Whether a module of Fencepost is on the call stack."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name != __name__ and name.partition(".")[0] == "fencepost":
            return True
        frame = frame.f_back
    return False
