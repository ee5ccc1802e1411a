"""One process of a user's program: the settings that its clients get, and the members in it.

Each consumer object of the group is a member, in whichever process of the program it is created, and has a history of
its own under the name that it claims. Calls to a consumer in a process that was forked later are not recorded.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, MutableSet, Optional, Sequence, Set, Tuple

from fencepost_member.adapters.settings import ACCESS_PREFIXES
from fencepost_member.config import REPORTED, MemberConfig, read_member
from fencepost_member.instrument.consumer_names import Claim, claim
from fencepost_member.ownership import Tp
from fencepost_member.process import open_history
from fencepost_member.recording.events import EventLog
from fencepost_member.recording.recorder import MemberLane
from fencepost_member.stacks import print_on_signal
from fencepost_member.this_process import CONFIG, PROGRAMS

ADDRESSES = ("bootstrap.servers", "metadata.broker.list")


class InstrumentedProgram:
    """This process as a part of a run.

    Attributes:
        config: the member configuration with which the program was started; its consumers have names of their own.
        own_group: the ``group.id`` of its first consumer, as the program has it; None before it.
    """

    def __init__(self, config: MemberConfig, claims: Path) -> None:
        """There is no member yet. ``claims`` is the folder in which all processes of the run claim names."""
        self.config, self._events, self._claims = config, Path(config.run) / "events", claims
        self.own_group: Any = None
        self._told: Set[str] = set()
        self._producing: Set[bool] = set()
        self._consumers: MutableSet[Any] = weakref.WeakSet()
        self._lock = threading.Lock()  # for the three sets
        self._took_part = 0  # pid of the process in which a consumer was recorded
        os.register_at_fork(after_in_child=self._forked)

    @classmethod
    def of_environment(cls) -> InstrumentedProgram:
        """The program that the harness started in this process. Raises ConfigError, and KeyError without a harness."""
        path = os.environ[CONFIG]
        program = cls(read_member(path), Path(path).parent / "claims")
        PROGRAMS.append(program)
        print_on_signal()
        return program

    def reaching(self, settings: Mapping[str, Any]) -> Dict[str, Any]:
        """Settings of any client, with the run's addresses, SASL and TLS instead of the program's."""
        kept = {name: value for name, value in settings.items() if not name.startswith((*ADDRESSES, *ACCESS_PREFIXES))}
        access = {name: value for name, value in self.config.client_config.items() if name.startswith(ACCESS_PREFIXES)}
        return {**kept, **access, "bootstrap.servers": self.config.bootstrap}

    def consuming(self, settings: Mapping[str, Any]) -> Tuple[Dict[str, Any], Optional[Claim]]:
        """The settings of a consumer, and its name. In the program's own group the settings of the scenario's group
        override the program's; in another group there is no name (None).

        The program's own group is that of its first consumer; in the run it has the name of the scenario's group.
        """
        reached, config = self.reaching(settings), self.config
        if self.own_group is None:
            self.own_group = settings.get("group.id", "")
        if settings.get("group.id", "") != self.own_group:
            return reached, None
        own = claim(config, self._claims)
        if own is None:
            self.unrecorded("the program has more consumers at the same time than Fencepost can name")
        names = {"group.id": config.group, "client.id": own.name if own else config.actor}
        static = {"group.instance.id": own.instance_id} if own and own.instance_id else {}
        return {**reached, **config.client_config, **names, **static}, own

    def named(self, topics: Sequence[str]) -> List[str]:
        """The names in this run of topics or patterns (which begin with ``^``); topics that are not the run's keep
        their names."""
        prefix, ours = self.config.prefix, self.config.topics
        here = {name: "^" + prefix + name[1:] for name in topics if name.startswith("^")}
        return [here.get(name) or (prefix + name if prefix + name in ours else name) for name in topics]

    def history(self, own: Claim) -> Tuple[EventLog, MemberLane]:
        """The files of a consumer that is recorded from now on. All threads that poll share one lane: a pool of
        threads, as under an asyncio consumer, would fill the disk with segments of a few records each."""
        events, recorder = open_history(self.config.run, own.name)
        self._took_part = os.getpid()
        return events, recorder.lane()

    @property
    def takes_part(self) -> bool:
        """Whether a consumer of this process is recorded, or was."""
        return self._took_part == os.getpid()

    def processed(self, tp: Tp, next_offset: int) -> bool:
        """The program reports a record as processed; False: the record is in flight in none of its consumers. If two of
        them received it, the one that owns the partition now has processed it."""
        if self.config.loop.processed != REPORTED or tp[0] not in self.config.topics:
            return True
        return any(consumer.processed(tp, next_offset) for consumer in self._owner_first(tp))

    def _owner_first(self, tp: Tp) -> List[Any]:
        with self._lock:
            consumers = list(self._consumers)
        return sorted(consumers, key=lambda consumer: consumer.owns(tp), reverse=True)

    def of_consumers(self, offsets: Mapping[Tp, int]) -> Iterable[Tuple[Any, Dict[Tp, int]]]:
        """Group next offsets of the run's topics by the recorded consumer that owns the partition. If none owns it, any
        consumer gets the offset, and so is recorded as committing a partition that it does not own."""
        found: Dict[Any, Dict[Tp, int]] = {}
        for tp, offset in offsets.items():
            consumer = next((c for c in self._owner_first(tp) if c.on and c.ours([tp])), None)
            if consumer is not None:
                found.setdefault(consumer, {})[tp] = offset
        return found.items()

    def group(self, name: Any) -> Any:
        """The name in this run of a group of the program."""
        return self.config.group if name == self.own_group else name

    def knows(self, consumer: Any) -> None:
        """Call the consumer's ``stay_behind`` in every process that is forked while the consumer exists."""
        with self._lock:
            self._consumers.add(consumer)

    def _forked(self) -> None:
        self._lock = threading.Lock()  # a thread of the parent may have held the old one
        for consumer in list(self._consumers):
            consumer.stay_behind()

    def unrecorded(self, what: str) -> None:
        """Report that the program does something that is missing in the history: each message once on stderr, and the
        first one also as an event."""
        with self._lock:
            known, first = what in self._told, not self._told
            self._told.add(what)
        if not known:
            print("fencepost: not recorded: %s" % what, file=sys.stderr, flush=True)
        if not first:
            return
        name = "%s-process-%d" % (self.config.actor, os.getpid())  # a file of its own: ids are unique within a file
        self._note(name, "unrecorded", {"text": what})

    def polled_by_fork(self, name: str) -> None:
        """This process polls the consumer of that name, which its parent process created and subscribed."""
        self._note("%s-forked-%d" % (name, os.getpid()), "forked", {"pid": os.getpid()}, name)

    def producing(self, client: str, idempotent: bool) -> None:
        """The program created a producer: recorded once for ``idempotent`` producers and once for others."""
        with self._lock:
            first = idempotent not in self._producing
            self._producing.add(idempotent)
        if first:
            sort = "%s-%s-%d" % (client, "once" if idempotent else "again", os.getpid())
            detail = {"client": client, "idempotent": idempotent}
            self._note("%s-producer-of-%s" % (self.config.actor, sort), "producing", detail)

    def _note(self, name: str, kind: str, detail: Mapping[str, Any], actor: str = "") -> None:
        log = EventLog(self._events / (name + ".jsonl"), name)
        log.note(kind, actor=actor or self.config.actor, detail=detail)
        log.close()
