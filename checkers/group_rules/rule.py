"""The type of a rule that needs no records."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fencepost.checkers.detections import Detection
from fencepost.checkers.tables import Tables

Rule = Callable[[Tables], Iterable[Detection]]
