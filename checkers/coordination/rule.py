"""What a rule is that looks at no record."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fencepost.checkers.sightings import Sighting
from fencepost.checkers.tables import Tables

Rule = Callable[[Tables], Iterable[Sighting]]
