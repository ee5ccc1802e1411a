"""Planted bugs in the pool of worker threads. See ``planted_bugs``.

``unawaited-workers``
    The revoked callback neither waits for the workers nor drops records that they have not begun: they process records
    of partitions that another member owns by then.
``highest-finished``
    Commits the highest finished offset, even if a lower one is not finished.
"""

from __future__ import annotations

from typing import Iterable

from fencepost_member.committing.offset_tracker import OffsetTracker
from fencepost_member.processing.pool import Pool


class UnawaitedWorkers(Pool):
    """The bug ``unawaited-workers``, see the module."""

    def _let_go(self, ledgers: Iterable[OffsetTracker], wait: bool) -> None:
        """Do nothing: the workers continue."""


class _Highest(OffsetTracker):
    """``reached`` is the highest finished offset."""

    def finish(self, index: int) -> None:
        """See ``OffsetTracker``."""
        at = next(next_offset for own, next_offset in self._in_order if own == index)
        super().finish(index)
        self.reached = max(self.reached, at)


class HighestFinished(Pool):
    """The bug ``highest-finished``, see the module."""

    ledger = _Highest


POOLS = {"unawaited-workers": UnawaitedWorkers, "highest-finished": HighestFinished}
