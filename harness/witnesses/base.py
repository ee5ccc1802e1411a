"""How every witness works: it looks repeatedly within a bound, until nothing is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from fencepost.clock import NS, eventually, now_ns
from fencepost.errors import FencepostError, WaitTimeout
from fencepost.interfaces import Evidence
from fencepost.model import TopicPartition

LENT_NS = NS // 10  # a shorter total time of ``run_between_looks`` calls is not added to the bound
_MEANWHILE: ContextVar[Callable[[], None]] = ContextVar("meanwhile", default=lambda: None)


@contextmanager
def run_between_looks(do: Callable[[], None]) -> Iterator[None]:
    """In the block, witnesses call ``do`` before each look, so that faults that are due are healed on time."""
    token = _MEANWHILE.set(do)
    try:
        yield
    finally:
        _MEANWHILE.reset(token)


@dataclass(frozen=True)
class Observation:
    """One look at an effect.

    Attributes:
        missing: what is missing, as a clause ("process 4711 is not stopped but sleeping"); empty: proven.
        what: what was seen, as a clause; used when nothing is missing.
        data: the numbers behind it.
    """

    missing: str
    what: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


def all_of(sights: Mapping[str, Observation]) -> Observation:
    """Combine looks at several things, by name: something is missing if any of them misses something."""
    missing = "; ".join(sight.missing for sight in sights.values() if sight.missing)
    what = "; ".join(sight.what for sight in sights.values())
    data = {name: sight.data for name, sight in sights.items() if sight.data}
    return Observation(missing or ("" if sights else "nothing was hit"), what, data)


def witness(look: Callable[[], Observation], within_s: float, every_s: float = 0.01) -> Evidence:
    """Look until nothing is missing, at most for ``within_s``. A look that fails is a missing proof, never an error.

    The time of ``run_between_looks`` calls does not count.
    """
    last, lent_ns = Observation("nothing was looked at"), 0

    def seen() -> bool:
        nonlocal last, lent_ns
        since_ns = now_ns()
        _MEANWHILE.get()()
        lent_ns += now_ns() - since_ns
        try:
            last = look()
        except FencepostError as error:
            last = Observation(str(error), data=last.data)
        return not last.missing

    left_s = within_s
    while left_s > 0:
        lent_ns = 0
        try:
            eventually(seen, left_s, "the proof", every_s=every_s)
        except WaitTimeout:
            left_s = lent_ns / NS if lent_ns > LENT_NS else 0
        else:
            return Evidence(True, now_ns(), last.what, last.data)
    return Evidence(False, now_ns(), f"no proof within {within_s:g} s: {last.missing}", last.data)


def _nothing_to_heal() -> Evidence:
    return Evidence(True, now_ns(), "there is nothing to heal")


class CallbackInjection:
    """One fault in effect, made of three functions (``interfaces.Injection``); a second undo does nothing.

    A fault without anything to undo needs only the first one.
    """

    def __init__(
        self,
        proven: Callable[[], Evidence],
        undo: Callable[[], None] = lambda: None,
        healed: Callable[[], Evidence] = _nothing_to_heal,
        acts: Sequence[TopicPartition] = (),
        recreates: bool = False,
    ) -> None:
        """Nothing is called yet. ``acts``, ``recreates``: see ``DeclaresAction``."""
        self.acts, self.recreates = acts, recreates
        self._proven, self._undo, self._healed = proven, undo, healed
        self._undone = False

    def proven(self) -> Evidence:
        """Wait, bounded, for the proof that the fault took effect."""
        return self._proven()

    def undo(self) -> None:
        """Undo the fault. A failed attempt may be repeated."""
        if not self._undone:
            self._undo()
            self._undone = True

    def healed(self) -> Evidence:
        """Wait, bounded, for the proof that the effect is gone."""
        return self._healed()
