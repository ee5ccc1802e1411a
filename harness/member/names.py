"""How incarnations are called, where one process has several consumers.

``member-2.1`` is the first life of member 2, and the first consumer in it. One beside it, in the same process or in one
that this forked, is ``member-2b.1``, the next one ``member-2c.1``: members, each in a *place* of its own. Who comes
into a place when the one before is closed (or gone, with its process) is another life there: ``member-2.1-2``.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

PLACES = ("", *"bcdefghijklmnopqrstuvwxyz")


class Incarnation(NamedTuple):
    """One consumer of a life: one of ``PLACES``, and how many were in it by then."""

    place: str
    number: int


def name(actor: str, place: str, number: int) -> str:
    """What the ``number``-th consumer in a place is called, in the life ``actor``."""
    member, dot, life = actor.rpartition(".")
    return "%s%s%s%s%s" % (member, place, dot, life, "-%d" % number if number > 1 else "")


def parse(actor: str, text: str) -> Optional[Incarnation]:
    """Which consumer of the life ``actor`` is called so; None: none of its."""
    member, dot, life = map(re.escape, actor.rpartition("."))
    found = re.fullmatch("%s([b-z]?)%s%s(?:-([2-9]|[1-9][0-9]+))?" % (member, dot, life), text)
    return Incarnation(found[1], int(found[2] or 1)) if found else None
