"""The process of a user's program as the run sees it: what its clients are told instead, and who is the member.

One consumer object of one process is the member of a life: the first that subscribes to the run's topics. Others that
do, in whatever process of the program, go on unrecorded, and say so.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence

from fencepost_member.adapters.settings import ACCESS_PREFIXES
from fencepost_member.config import MemberConfig, read_member
from fencepost_member.events import EventLog
from fencepost_member.process import open_history
from fencepost_member.recorder import MemberLane, Recorder

CONFIG = "FENCEPOST_MEMBER"
ADDRESSES = ("bootstrap.servers", "metadata.broker.list")


class Lanes(threading.local):
    """One lane for each thread that polls."""

    def __init__(self, recorder: Recorder) -> None:
        """Called by every thread that asks for the first time."""
        self.lane: MemberLane = recorder.lane()


class Program:
    """This process, and what it is to be.

    Attributes:
        config: of the member.
    """

    def __init__(self, config: MemberConfig) -> None:
        """Nobody is the member yet."""
        self.config, self._events = config, Path(config.run) / "events"
        self._own_group: Any = None
        self._told = 0

    @classmethod
    def of_environment(cls) -> Program:
        """As the harness started it. Raises ConfigError, or KeyError when it was not the harness."""
        return cls(read_member(os.environ[CONFIG]))

    def reaching(self, settings: Mapping[str, Any]) -> Dict[str, Any]:
        """Settings of any client, with the run's brokers and access instead of the program's."""
        kept = {name: value for name, value in settings.items() if not name.startswith((*ADDRESSES, *ACCESS_PREFIXES))}
        access = {name: value for name, value in self.config.client_config.items() if name.startswith(ACCESS_PREFIXES)}
        return {**kept, **access, "bootstrap.servers": self.config.bootstrap}

    def consuming(self, settings: Mapping[str, Any]) -> Dict[str, Any]:
        """Settings of a consumer: those of the scenario's group on top, for those in the program's own group.

        That is the group of the program's first consumer; it has the run's name here.
        """
        reached, config = self.reaching(settings), self.config
        if self._own_group is None:
            self._own_group = settings.get("group.id", "")
        if settings.get("group.id", "") != self._own_group:
            return reached
        static = {"group.instance.id": config.instance_id} if config.instance_id else {}
        names = {"group.id": config.group, "client.id": config.actor}
        return {**reached, **config.client_config, **names, **static}

    def named(self, topics: Sequence[str]) -> List[str]:
        """What topics (or patterns, which begin with ``^``) are called here; others than the run's keep their names."""
        prefix, ours = self.config.prefix, self.config.topics
        here = {name: "^" + prefix + name[1:] for name in topics if name.startswith("^")}
        return [here.get(name) or (prefix + name if prefix + name in ours else name) for name in topics]

    def claim(self) -> bool:
        """Be the member: who makes its event file is. False when this life has one already."""
        events = self._events / (self.config.actor + ".jsonl")
        events.parent.mkdir(parents=True, exist_ok=True)
        try:
            events.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def history(self) -> Any:
        """The files of the member: (EventLog, Lanes)."""
        events, recorder = open_history(self.config.run, self.config.actor)
        return events, Lanes(recorder)

    def unrecorded(self, what: str) -> None:
        """Say that the program does what is not in the history; again and again would not help anybody."""
        print("fencepost: not recorded: %s" % what, file=sys.stderr, flush=True)
        self._told += 1
        if self._told > 1:
            return
        name = "%s-process-%d" % (self.config.actor, os.getpid())  # ids of the member's own file are the member's
        log = EventLog(self._events / (name + ".jsonl"), name)
        log.note("unrecorded", actor=self.config.actor, detail={"text": what})
        log.close()
