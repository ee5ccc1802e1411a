"""What a rule is that looks at no record."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fencepost.checkers.detections import Detection
from fencepost.checkers.tables import Tables

Rule = Callable[[Tables], Iterable[Detection]]
