"""Pools of worker threads that are wrong on purpose. See ``planted``.

``unawaited-workers``
    Its revoked callback neither waits for its workers nor drops what they have not begun: they go on with partitions
    that somebody else has by then.
``highest-finished``
    Commits the highest offset that is finished, also where one below it is not.
"""

from __future__ import annotations

from typing import Iterable

from fencepost_member.ledger import Ledger
from fencepost_member.pool import Pool


class UnawaitedWorkers(Pool):
    """See the module."""

    def _let_go(self, ledgers: Iterable[Ledger], wait: bool) -> None:
        """Workers go on."""


class _Highest(Ledger):
    """What is reached is the highest that is finished."""

    def finish(self, index: int) -> None:
        """See ``Ledger``."""
        at = next(next_offset for own, next_offset in self._in_order if own == index)
        super().finish(index)
        self.reached = max(self.reached, at)


class HighestFinished(Pool):
    """See the module."""

    ledger = _Highest


POOLS = {"unawaited-workers": UnawaitedWorkers, "highest-finished": HighestFinished}
