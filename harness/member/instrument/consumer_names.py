"""The names of a program's consumers: each claims a name when it is created, and keeps it until it is closed or freed.

The processes of a program share one lock file for each place (see ``names``). The lock ends with its consumer, and with
its process, however that ends. Every earlier consumer in a place has left an event file.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Optional

from fencepost_member import lock
from fencepost_member.config import MemberConfig
from fencepost_member.names import PLACES, name
from fencepost_member.process import event_file


class Claim:
    """The name of one consumer.

    Attributes:
        name: the name of the incarnation.
        instance_id: its ``group.instance.id``; None for a dynamic member.
    """

    def __init__(self, config: MemberConfig, place: str, file: int) -> None:
        """``file``: the descriptor of the place's lock file, locked."""
        self._file = file
        names = (name(config.actor, place, number) for number in itertools.count(1))
        self.name = next(one for one in names if not event_file(config.run, one).exists())
        own = "-" + place if place else ""
        self.instance_id = config.instance_id + own if config.instance_id else None

    def release(self) -> None:
        """Free the place for the next consumer; in a forked process the parent keeps it. May be called twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    __del__ = release


def claim(config: MemberConfig, folder: Path) -> Optional[Claim]:
    """A name in the first free place; None if none is free. ``folder`` holds the lock files."""
    folder.mkdir(exist_ok=True)
    for place in PLACES:
        path = folder / (name(config.actor, place, 1) + ".lock")
        file = os.open(str(path), os.O_WRONLY | os.O_CREAT, 0o600)
        if lock.try_take(file):
            return Claim(config, place, file)
        os.close(file)
    return None
