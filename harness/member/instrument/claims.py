"""Which consumer of a program is called how: each claims a name when it is made, and has it until it is gone.

The processes of a program share one lock file for each place (see ``names``). The lock goes with the consumer that has
it, and with its process, however that ends. Who was in a place before has left an event file.
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
    """A name that a consumer has.

    Attributes:
        name: of the incarnation.
        instance_id: its ``group.instance.id``; None: it is no static member.
    """

    def __init__(self, config: MemberConfig, place: str, file: int) -> None:
        """``file``: the descriptor of the place's lock file, locked."""
        self._file = file
        names = (name(config.actor, place, number) for number in itertools.count(1))
        self.name = next(one for one in names if not event_file(config.run, one).exists())
        own = "-" + place if place else ""
        self.instance_id = config.instance_id + own if config.instance_id else None

    def release(self) -> None:
        """Let the next one have the place; in a forked process: leave it to its owner. May be called twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    __del__ = release


def claim(config: MemberConfig, folder: Path) -> Optional[Claim]:
    """A name in the first place that is free; None: all are taken. ``folder`` holds the lock files."""
    folder.mkdir(exist_ok=True)
    for place in PLACES:
        path = folder / (name(config.actor, place, 1) + ".lock")
        file = os.open(str(path), os.O_WRONLY | os.O_CREAT, 0o600)
        if lock.try_take(file):
            return Claim(config, place, file)
        os.close(file)
    return None
