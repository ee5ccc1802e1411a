"""The names of incarnations when one process has several consumers.

``member-2.1`` is the first incarnation of member 2, and its first consumer. A second consumer at the same time, in the
same process or in a fork of it, is ``member-2b.1``, the next one ``member-2c.1``: separate members, each in its own
*place*. A consumer that uses a place after the previous one was closed (or its process ended) is another incarnation in
that place: ``member-2.1-2``.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

PLACES = ("", *"bcdefghijklmnopqrstuvwxyz")


class ConsumerName(NamedTuple):
    """One consumer: its place, one of ``PLACES``, and its number in that place, from 1."""

    place: str
    number: int


def name(actor: str, place: str, number: int) -> str:
    """The name of the ``number``-th consumer in a place, in the incarnation ``actor``."""
    member, dot, life = actor.rpartition(".")
    return "%s%s%s%s%s" % (member, place, dot, life, "-%d" % number if number > 1 else "")


def parse(actor: str, text: str) -> Optional[ConsumerName]:
    """The consumer of the incarnation ``actor`` that has this name; None if there is none."""
    member, dot, life = map(re.escape, actor.rpartition("."))
    found = re.fullmatch("%s([b-z]?)%s%s(?:-([2-9]|[1-9][0-9]+))?" % (member, dot, life), text)
    return ConsumerName(found[1], int(found[2] or 1)) if found else None
