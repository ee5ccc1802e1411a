"""The certain owners of a partition at many times, by the coordinator's records."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.tables import Tables

Array = NDArray[Any]
NOBODY = -1


class Owners:
    """The owners of one partition, as ``Tables.certain_owner`` returns them, as indices into ``names``."""

    def __init__(self, tables: Tables, tp: int) -> None:
        """Prepares the lookup."""
        self._tables, self._tp = tables, tp
        given = tables.given_of.get(tp, [])
        self.names = sorted({one.incarnation for one in given if one.incarnation})
        self.index = {name: index for index, name in enumerate(self.names)}
        self._owner = np.array([self.index.get(one.incarnation, NOBODY) for one in given], np.int64)
        at_ns = np.array([one.at_ns for one in given], np.int64)
        blur_ns = np.array([one.uncertainty_ns for one in given], np.int64)
        self._earliest, self._latest = at_ns - blur_ns, at_ns + blur_ns
        self._in_order = bool((np.diff(self._earliest) >= 0).all())  # whether the order of the log is the order of time

    def at(self, times: Array, which: Array) -> Array:
        """The certain owner at each time that ``which`` selects (``NOBODY``: none is certain); else any value."""
        if not len(self._owner) or not which.any():
            return np.broadcast_to(NOBODY, len(times))
        if not self._in_order:
            changes = [self._tables.certain_owner(self._tp, at) for at in times.tolist()]
            return np.array([self.index[given.incarnation] if given else NOBODY for given in changes])
        some = times if which.all() else times[which]
        low, high = (int(np.searchsorted(self._earliest, at, side="right")) - 1 for at in (some.min(), some.max()))
        if low == high and low >= 0 and self._latest[low] <= some.min():
            return np.broadcast_to(self._owner[low], len(times))
        last = np.searchsorted(self._earliest, times, side="right") - 1
        certain = (last >= 0) & (self._latest[last] <= times)
        return np.where(certain, self._owner[last], NOBODY)
