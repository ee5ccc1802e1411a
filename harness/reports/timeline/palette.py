"""One colour per member, the same everywhere on the page; the lives of a member alternate between two shades."""

from __future__ import annotations

import re
from collections.abc import Iterable

COLOURS = 10


class Palette:
    """Gives each member a style by its place in the order of names. The colours themselves are in the CSS."""

    def __init__(self, incarnations: Iterable[str]) -> None:
        """``incarnations``: all incarnations of the run."""
        members = {name.rsplit(".", 1)[0] for name in incarnations if name}
        self._place = {member: n for n, member in enumerate(sorted(members, key=_natural))}

    @property
    def members(self) -> list[str]:
        """All members, in order."""
        return list(self._place)

    def order(self, member: str) -> int:
        """The member's place."""
        return self._place.get(member, len(self._place))

    def style(self, incarnation: str) -> str:
        """The CSS classes of an incarnation (or member): ``c3``, for even lives ``c3 alt``, after ten ``c3 far``."""
        member, _, life = incarnation.rpartition(".")
        place = self._place.get(member if member in self._place else incarnation, 0)
        number = life.rpartition("-")[2]  # number of the process, or of the consumer in it
        alt = " alt" if member in self._place and number.isdigit() and int(number) % 2 == 0 else ""
        return f"c{place % COLOURS}{alt}{' far' if place >= COLOURS else ''}"


def _natural(name: str) -> list[tuple[int, str]]:
    """A sort key that puts ``member-10`` after ``member-9``."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]
