"""The consumer group of a scenario: who its members are, and by which settings they take part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.errors import Complaints, ScenarioError
from fencepost.interfaces.process import Environment
from fencepost.model import clients, serialization, settings
from fencepost.model.clients import BLACK_BOX, LINES, VERIFIABLE, Client, MemberSpec
from fencepost.model.settings import DEFAULT_MS, HEARTBEAT, POLL_INTERVAL, PROTOCOLS, SESSION, Setting


@dataclass(frozen=True)
class Group:
    """The consumer group under test.

    Attributes:
        client: the library that its members use; a release that is not the one beside Fencepost, like
            ``kafka-python==2.2.8``, gets an environment of its own.
        python: the version of its members' Python, like ``3.9``, if it is to be another one than Fencepost's.
        members: how many; or, where not all are alike (their client, static or not), ``MemberSpec`` of each kind.
        protocol: ``eager`` and ``cooperative`` are the classic protocol with such an assignor, ``consumer`` is KIP-848.
        config: client settings. ``session.timeout.ms`` and ``heartbeat.interval.ms`` hold for every protocol (for
            ``consumer`` they become the brokers' group settings); heartbeats are at most a quarter of the session
            time-out unless set.
        static: members carry a ``group.instance.id``, unless ``MemberSpec`` say otherwise of theirs.
        spare: members beyond these, numbered after them, each with a slot of its own; only faults start them.
        name: ``group.id``; by default made from the seed, so that the coordinator differs from run to run.
        command: the user's own program, as it is started in production, in the current directory; it is each member
            (or several, if it has several consumers), and its settings stay as they are but for addresses, access,
            names and ``config``. ``protocol`` must be the one that follows from them, and ``client`` the library that
            it consumes with, without a release: it brings its own. With the client ``json-lines`` it may be in any
            language, and tells what it does; see ``fencepost_member.lines``. With ``black-box`` it tells nothing, and
            is judged by what brokers see. The workload is ``OwnProgram``.
        image: of the containers in which the command runs, with the back-end ``docker``: it is found there, as its
            working directory and all else is; the image has a shell, ``/bin/sh``.
    """

    members: int | tuple[MemberSpec, ...] = 3
    client: str = "confluent-kafka"
    protocol: str = "cooperative"
    config: Mapping[str, Setting] = field(default_factory=dict)
    static: bool = False
    name: str = ""
    spare: int = 0
    python: str = ""
    command: tuple[str, ...] = ()
    image: str = ""

    def __post_init__(self) -> None:
        serialization.settle(self)
        complaints = Complaints()
        with complaints.gather(ScenarioError):
            settings.check_python(self.python)
        if self.spare < 0:
            complaints.found.append(ScenarioError(f"a group cannot have {self.spare} spare members: use 0 or more"))
        if self.protocol not in PROTOCOLS:
            known = ", ".join(PROTOCOLS)
            complaints.found.append(ScenarioError(f"protocol {self.protocol!r} is unknown; known are {known}"))
        if self.size < 1:
            complaints.found.append(ScenarioError("a group needs at least one member"))
        with complaints.gather(ScenarioError):
            complaints.found += map(ScenarioError, self._wrong_command())
        complaints.refuse()  # the rest needs a protocol, and members with clients
        clients.check(self.clients, self.protocol, self.statics, set(self.config) - set(settings.DECIDED))
        assignors = (find(self.clients, self.protocol) for find in (clients.in_common, clients.beside))
        settings.check_client(self.config, self.protocol, *assignors)
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ScenarioError(f"the group's {HEARTBEAT} must be below its {SESSION}, {self.session_timeout_ms}")

    def _wrong_command(self) -> Iterator[str]:
        """A user's program is one, and brings its libraries and its Python."""
        used = tuple(dict.fromkeys(self.clients))
        names = {client.name for client in used}
        if self.command and (self.python or any(client.version for client in used)):
            yield "a group with a command leaves python and the client's release out: it brings its own"
        if self.command and len(used) > 1:
            yield f"a group with a command has one client, found {', '.join(map(str, used))}"
        if self.command and VERIFIABLE in names:
            yield f"the client {VERIFIABLE} is a program of its own: leave the group's command out"
        if (yours := sorted(names & {LINES, BLACK_BOX})) and not self.command:
            yield f"the client {yours[0]} is a program of yours: give the group its command"
        if VERIFIABLE in names and self.python:
            yield f"the client {VERIFIABLE} runs on Java: leave the group's python out"
        if self.image and not self.command:
            yield "the group's image is for its command: give that, or leave the image out"

    @property
    def _each(self) -> tuple[MemberSpec, ...]:
        """One for each member by its index; spare ones are as the group says."""
        parts = (MemberSpec(self.members),) if isinstance(self.members, int) else self.members
        own = [replace(part, count=1) for part in parts for _ in range(part.count)]
        return (*own, *[MemberSpec()] * self.spare)

    @property
    def clients(self) -> tuple[Client, ...]:
        """The client of each member by its index, spare ones included."""
        return tuple(clients.parse(member.client or self.client) for member in self._each)

    @property
    def statics(self) -> tuple[bool, ...]:
        """Whether each member is static, by its index, spare ones included."""
        return tuple(self.static if member.static is None else member.static for member in self._each)

    @property
    def imports(self) -> bool:
        """Whether all members import a client library: they run our loop, or a program that is instrumented."""
        return all(client.library.imported for client in self.clients)

    @property
    def environments(self) -> tuple[Environment, ...]:
        """What each of its members is to run on, spare ones included."""
        return tuple(Environment(client, self.python, self.image) for client in self.clients)

    @property
    def silent(self) -> bool:
        """Whether its members tell nothing."""
        return any(client.library.silent for client in self.clients)

    @property
    def size(self) -> int:
        """How many members there are, without spare ones."""
        return self.members if isinstance(self.members, int) else sum(part.count for part in self.members)

    def first(self, count: int) -> Group:
        """The same group of its first members only."""
        return replace(self, members=count if isinstance(self.members, int) else self._each[:count])

    @property
    def session_timeout_ms(self) -> int:
        """Kafka's default is 45,000."""
        return int(self.config.get(SESSION, DEFAULT_MS[SESSION]))

    @property
    def heartbeat_interval_ms(self) -> int:
        """Kafka's default is 3,000."""
        return int(self.config.get(HEARTBEAT, min(DEFAULT_MS[HEARTBEAT], self.session_timeout_ms // 4)))

    def gives_up_after_s(self) -> dict[str, float]:
        """By its setting, each time in seconds after which the group gives a member up."""
        poll_interval_ms = int(self.config.get(POLL_INTERVAL, DEFAULT_MS[POLL_INTERVAL]))
        return {SESSION: self.session_timeout_ms / 1000, POLL_INTERVAL: poll_interval_ms / 1000}

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        members = self.members if isinstance(self.members, int) else [vars(part) for part in self.members]
        return {**vars(self), "members": members, "config": dict(self.config)}

    @classmethod
    def from_json(cls, data: Any) -> Group:
        """The inverse of ``to_json``. Raises ScenarioError."""
        parts = dict(serialization.fit(data, Mapping[str, Any], "the group"))
        if isinstance(parts.get("members"), list | tuple):
            parts["members"] = [
                serialization.build(MemberSpec, part, "the group's members") for part in parts["members"]
            ]
        group: Group = serialization.build(cls, parts, "the group")
        return group

    def client_config(self) -> dict[str, Any]:
        """The settings for the client, times of the group protocol included; where these are the brokers' to decide,
        adapters leave them out. A program of the user's has its own."""
        own = {SESSION: self.session_timeout_ms, HEARTBEAT: self.heartbeat_interval_ms}
        if not self.command:
            return {**self.config, **own}
        return {k: v for k, v in self.config.items() if self.protocol != "consumer" or k not in own}
