"""The consumer group of a scenario: its members and their settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.errors import Complaints, ScenarioError
from fencepost.interfaces.process import Environment
from fencepost.model import clients, serialization, settings
from fencepost.model.clients import BLACK_BOX, LINES, VERIFIABLE, Client, MemberSpec
from fencepost.model.settings import DEFAULT_MS, HEARTBEAT, POLL_INTERVAL, PROTOCOLS, SESSION, ConfigValue


@dataclass(frozen=True)
class Group:
    """The consumer group under test.

    Attributes:
        client: the library that its members use. A release other than the one that is installed with Fencepost, like
            ``kafka-python==2.2.8``, gets its own environment.
        python: the version of its members' Python, like ``3.9``; empty: Fencepost's Python.
        members: their number; or ``MemberSpec`` of each kind, if they differ (in their client, command, environment or
            settings, static or dynamic).
        protocol: ``eager`` and ``cooperative`` are the classic protocol with such an assignor, ``consumer`` is KIP-848.
        config: client settings. ``session.timeout.ms`` and ``heartbeat.interval.ms`` apply to every protocol (for
            ``consumer`` they become the brokers' group settings). The heartbeat interval is at most a quarter of the
            session time-out unless it is set.
        static: members have a ``group.instance.id``, unless ``MemberSpec`` decide otherwise.
        spare: number of additional members, numbered after the others, each with its own slot; only faults start them.
        name: ``group.id``; by default made from the seed, so that the coordinator differs from run to run.
        command: the user's own program, started as in production, in the current directory. Each process is one member
            (or several, if it has several consumers). Its settings stay as they are, except addresses, access, names
            and ``config``. ``protocol`` must match its settings. ``client`` is the library that it consumes with,
            without a release, because the program brings its own. With the client ``json-lines`` it may be written in
            any language, and reports what it does; see ``fencepost_member.json_lines``. With ``black-box`` it reports
            nothing, and is judged by what brokers see. The workload is ``OwnProgram``.
        image: the image of the containers in which the command runs, with the back-end ``docker``. It contains the
            command, its working directory and everything else it needs, and a shell, ``/bin/sh``.
    """

    members: int | tuple[MemberSpec, ...] = 3
    client: str = "confluent-kafka"
    protocol: str = "cooperative"
    config: Mapping[str, ConfigValue] = field(default_factory=dict)
    static: bool = False
    name: str = ""
    spare: int = 0
    python: str = ""
    command: tuple[str, ...] = ()
    image: str = ""

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
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
        assignors = (find(self.clients, self.protocol) for find in (clients.common_assignors, clients.extra_assignors))
        settings.check_client(self.config, self.protocol, *assignors)
        for index, (member, client) in enumerate(zip(self._each, self.clients, strict=True)):
            place = f"the config of member {index}"
            clients.check([client], self.protocol, [False], set(member.config) - set(settings.DECIDED), place)
            settings.check_client(member.config, self.protocol, (), place=place)
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ScenarioError(f"the group's {HEARTBEAT} must be below its {SESSION}, {self.session_timeout_ms}")

    def _wrong_command(self) -> Iterator[str]:
        """Problems of the command: a user's program has one client, and brings its own libraries and Python."""
        used = tuple(dict.fromkeys(self.clients))
        names = {client.name for client in used}
        if self.runs_programs and not all(self.commands):
            yield "some members have a command, and others have none: give the group a command, too"
        if self.runs_programs and (self.python or any(client.version for client in used)):
            yield "a group with a command must not set python or the client's release: the program brings its own"
        if self.runs_programs and len(used) > 1:
            yield f"a group with a command must have one client, found {', '.join(map(str, used))}"
        if self.runs_programs and VERIFIABLE in names:
            yield f"the client {VERIFIABLE} is itself a program: leave the group's command out"
        if (yours := sorted(names & {LINES, BLACK_BOX})) and not self.runs_programs:
            yield f"the client {yours[0]} is a program of yours: set the group's command"
        if VERIFIABLE in names and self.python:
            yield f"the client {VERIFIABLE} runs on Java: leave the group's python out"
        if self.image and not self.runs_programs:
            yield "the group's image is for its command: set the command, or leave the image out"

    @property
    def _each(self) -> tuple[MemberSpec, ...]:
        """``MemberSpec`` for each member by its index; spare members have the group's defaults."""
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
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The command of each member by its index, spare ones included; empty: it runs our loop."""
        return tuple(member.command or self.command for member in self._each)

    @property
    def runs_programs(self) -> bool:
        """Whether members are programs of the user's."""
        return any(self.commands)

    @property
    def variables(self) -> tuple[Mapping[str, str], ...]:
        """The environment variables of each member by its index, spare ones included."""
        return tuple(member.env for member in self._each)

    @property
    def imports(self) -> bool:
        """Whether all members import a client library: they run our loop, or an instrumented program."""
        return all(client.library.imported for client in self.clients)

    @property
    def environments(self) -> tuple[Environment, ...]:
        """The environment of each member by its index, spare ones included."""
        return tuple(Environment(client, self.python, self.image) for client in self.clients)

    @property
    def silent(self) -> bool:
        """Whether any member reports nothing (a black box)."""
        return any(client.library.silent for client in self.clients)

    @property
    def size(self) -> int:
        """The number of members, without spare ones."""
        return self.members if isinstance(self.members, int) else sum(part.count for part in self.members)

    def first(self, count: int) -> Group:
        """The same group with only its first ``count`` members."""
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
        """Eviction time-outs in seconds, by client setting."""
        poll_interval_ms = int(self.config.get(POLL_INTERVAL, DEFAULT_MS[POLL_INTERVAL]))
        return {SESSION: self.session_timeout_ms / 1000, POLL_INTERVAL: poll_interval_ms / 1000}

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        members = self.members if isinstance(self.members, int) else [vars(part) for part in self.members]
        return {**vars(self), "members": members, "config": dict(self.config)}

    @classmethod
    def from_json(cls, data: Any) -> Group:
        """The inverse of ``to_json``. Raises ScenarioError."""
        parts = dict(serialization.check_type(data, Mapping[str, Any], "the group"))
        if isinstance(parts.get("members"), list | tuple):
            parts["members"] = [
                serialization.from_mapping(MemberSpec, part, "the group's members") for part in parts["members"]
            ]
        group: Group = serialization.from_mapping(cls, parts, "the group")
        return group

    @property
    def client_configs(self) -> tuple[dict[str, Any], ...]:
        """The client settings of each member by its index, spare ones included.

        They have session time-out and heartbeat interval, which adapters leave out where the brokers decide them. A
        user's program keeps its own settings: only ``config`` is returned.
        """
        own = {SESSION: self.session_timeout_ms, HEARTBEAT: self.heartbeat_interval_ms}
        shared = {**self.config, **own}
        if self.runs_programs:
            shared = {k: v for k, v in self.config.items() if self.protocol != "consumer" or k not in own}
        return tuple({**shared, **member.config} for member in self._each)
