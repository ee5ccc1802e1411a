"""The client libraries that members of a group may use, and what each can do. None of them needs to be installed.

A client is named by a requirement: ``kafka-python``, or one release of it, ``kafka-python==2.2.8``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from fencepost.errors import ScenarioError, refuse
from fencepost.model import serialization
from fencepost.model.settings import ASSIGNORS, HEARTBEAT, POLL_INTERVAL, SESSION, STRATEGY, ConfigValue
from fencepost_member.adapters import AdapterFeature
from fencepost_member.adapters.settings import ISOLATION, READ_COMMITTED, unknown

REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+?)(?:==(?P<version>\d+(?:\.\d+)*(?:(?:a|b|rc|\.post|\.dev)\d+)?))?")
STATIC = "static members"
CONFLUENT = "confluent-kafka"
LINES, VERIFIABLE, BLACK_BOX = "json-lines", "verifiable-consumer", "black-box"
KAFKA_4 = "Kafka 4"  # its brokers no longer know the oldest requests (KIP-896)


@dataclass(frozen=True)
class Library:
    """One client library, as of its newest release.

    Attributes:
        about: a sentence about it.
        assignors: protocol of a group -> its assignors for it, the preferred one first; with the consumer protocol the
            brokers assign.
        extras: additional features of its adapter.
        since: the first release with a protocol, ``STATIC`` or ``KAFKA_4``, where older ones do not have it.
        oldest: the first release that the adapter supports.
        lines: its members are programs that report by JSON lines, see ``fencepost_member.json_lines``; not our loop.
        silent: its members are programs that report nothing: only the brokers show what they do.
        isolation: the isolation level where no ``isolation.level`` is set; empty: unknown.
    """

    name: str
    about: str
    assignors: Mapping[str, tuple[str, ...]]
    extras: frozenset[AdapterFeature]
    since: Mapping[str, str] = field(default_factory=dict)
    oldest: str = "0"
    lines: bool = False
    silent: bool = False
    isolation: str = "read_uncommitted"

    @property
    def imported(self) -> bool:
        """Whether its members are Python programs that import it: our loop, or an instrumented program."""
        return not (self.lines or self.silent)


KNOWN: Mapping[str, Library] = MappingProxyType(
    {
        library.name: library
        for library in (
            Library(
                CONFLUENT,
                "librdkafka.",
                ASSIGNORS,
                frozenset(AdapterFeature),
                {"consumer": "2.4.0", KAFKA_4: "1.8.2"},
                oldest="1.6.1",
                isolation=READ_COMMITTED,
            ),
            Library(
                "kafka-python",
                "Kafka's protocol in Python, blocking.",
                {"eager": ("range", "roundrobin", "sticky"), "cooperative": ("cooperative-sticky",)},
                frozenset(AdapterFeature)
                - {AdapterFeature.STORE_OFFSETS, AdapterFeature.OUTPUTS, AdapterFeature.DELAY_REVOCATION},
                {"cooperative": "3.0.0", STATIC: "2.3.0"},
                oldest="2.0.2",
            ),
            Library(
                "aiokafka",
                "Kafka's protocol in Python, for asyncio.",
                {"eager": ("range", "roundrobin", "sticky")},
                frozenset(AdapterFeature)
                - {
                    AdapterFeature.STORE_OFFSETS,
                    AdapterFeature.OUTPUTS,
                    AdapterFeature.DELAY_REVOCATION,
                    AdapterFeature.REPORT_COMMITS,
                    AdapterFeature.COMMIT_UNOWNED,
                },
                {STATIC: "0.10.0"},
                oldest="0.9.0",
            ),
            Library(
                VERIFIABLE,
                "Kafka's own client in Java, in the program of its system tests; releases are Kafka's.",
                {**ASSIGNORS, "eager": ("range", "roundrobin", "sticky")},
                frozenset(),
                {"consumer": "4.0.0"},
                oldest="3.9.1",
                lines=True,
                isolation=READ_COMMITTED,  # which Fencepost sets
            ),
            Library(
                LINES,
                "A program in any language, the group's command, that reports what it does as JSON lines.",
                {**ASSIGNORS, "eager": ("range", "roundrobin", "sticky")},
                frozenset(),
                lines=True,
                isolation="",
            ),
            Library(
                BLACK_BOX,
                "A program in any language, the group's command, that reports nothing; brokers' records are judged.",
                {**ASSIGNORS, "eager": ("range", "roundrobin", "sticky")},
                frozenset(),
                silent=True,
                isolation="",
            ),
        )
    }
)


@dataclass(frozen=True)
class Client:
    """A client by a requirement; ``version`` is empty for the release that is installed here."""

    name: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.name}=={self.version}" if self.version else self.name

    @property
    def library(self) -> Library:
        """The library's description."""
        return KNOWN[self.name]

    @property
    def assignors(self) -> Mapping[str, tuple[str, ...]]:
        """The library's assignors that this release has."""
        return {protocol: names for protocol, names in self.library.assignors.items() if self._has(protocol)}

    @property
    def static(self) -> bool:
        """Whether this release can be a static member."""
        return self._has(STATIC)

    @property
    def kafka_4(self) -> bool:
        """Whether this release can talk to brokers of Kafka 4."""
        return self._has(KAFKA_4)

    def lacks(self, features: Iterable[AdapterFeature]) -> list[AdapterFeature]:
        """The features among ``features`` that its adapter does not have, in the order of ``AdapterFeature``."""
        needed = set(features) - self.library.extras
        return [feature for feature in AdapterFeature if feature in needed]

    def _has(self, ability: str) -> bool:
        return not self.version or _release(self.version) >= _release(self.library.since.get(ability, "0"))


def named(name: str) -> Library:
    """The client library of that name.

    Raises:
        ScenarioError: there is none; lists the known ones.
    """
    if name not in KNOWN:
        raise ScenarioError(f"client {name!r} is unknown; known are {', '.join(KNOWN)}")
    return KNOWN[name]


def parse(requirement: str) -> Client:
    """A client from ``name`` or ``name==version``.

    Raises:
        ScenarioError: it is neither, or there is no such client, or the release is older than its adapter supports.
    """
    found = REQUIREMENT.fullmatch(requirement)
    if not found:
        raise ScenarioError(f"client {requirement!r} is neither name nor name==version, like kafka-python==2.2.8")
    library, version = named(found["name"]), found["version"] or ""
    if version and _release(version) < _release(library.oldest):
        raise ScenarioError(f"client {requirement!r} is too old; use release {library.oldest} or newer")
    return Client(library.name, version)


# Client settings that all members of a group have in common.
OF_GROUPS = {SESSION, HEARTBEAT, POLL_INTERVAL, STRATEGY, ISOLATION, "auto.offset.reset"}


@dataclass(frozen=True)
class MemberSpec:
    """Some of a group's members, with the same options.

    Attributes:
        client: empty: the group's own.
        static: whether they have a ``group.instance.id``; None: as the group says.
        command: their program, for example another release of it; empty: the group's own.
        env: environment variables of their processes, in addition to ours. They are stored with the scenario: no
            secrets.
        config: client settings in addition to the group's, without those by which faults and rules judge all members.
    """

    count: int = 1
    client: str = ""
    static: bool | None = None
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, ConfigValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        if self.count < 1:
            raise ScenarioError(f"found {self.count} members of one client in a group: use 1 or more")
        if shared := sorted(OF_GROUPS & {*self.config}):
            raise ScenarioError(
                f"the config of single members cannot set {', '.join(shared)}: faults and rules count with one value "
                "for the whole group; set it in the group's config"
            )
        for name, value in self.env.items():
            if not name or "=" in name or "\0" in name + value:
                raise ScenarioError(f"the env of members has {name!r}, which is no variable: use NAME = 'value'")
            if name.startswith("FENCEPOST_"):
                raise ScenarioError(f"the env of members cannot set {name}: Fencepost sets it itself")
        if self.command and not self.command[0]:
            raise ScenarioError("the command of members begins with an empty word: begin it with a program")


def check(
    clients: Iterable[Client],
    protocol: str,
    static: Iterable[bool],
    names: Iterable[str],
    place: str = "the group's config",
) -> None:
    """Refuse a group whose clients lack a feature; ``static``: for each client whether it is a static member;
    ``names``: the names of client settings, which stand at ``place``.

    Raises:
        ScenarioError: names each such client and what it can do.
    """
    refuse(map(ScenarioError, _wrong(clients, protocol, static, names, place)))


def _wrong(
    clients: Iterable[Client], protocol: str, static: Iterable[bool], names: Iterable[str], place: str
) -> Iterator[str]:
    for client, is_static in dict.fromkeys(zip(clients, static, strict=True)):
        if protocol not in client.assignors:
            can = ", ".join(client.assignors)
            yield f"client {client} cannot be in a group with protocol {protocol!r}; it can with {can}"
        if is_static and not client.static:
            since = client.library.since[STATIC]
            yield f"client {client} has no static members: it has them since release {since}"
        if problem := unknown(client.name, dict.fromkeys(names)):
            yield f"{place}: {problem}"


def common_assignors(clients: Collection[Client], protocol: str) -> tuple[str, ...]:
    """The assignors for ``protocol`` that all of them have, as the first one prefers them."""
    first, *others = [client.assignors[protocol] for client in clients]
    return tuple(name for name in first if all(name in names for names in others))


def extra_assignors(clients: Collection[Client], protocol: str) -> tuple[str, ...]:
    """Cooperative assignors that an eager list may also contain and stay eager. Imported clients refuse such lists."""
    return ASSIGNORS["cooperative"] if protocol == "eager" and not any(c.library.imported for c in clients) else ()


def _release(version: str) -> tuple[int, ...]:
    """``2.3.0`` -> (2, 3, 0), for comparisons; a release candidate counts as its release."""
    numbers = (re.split(r"[a-z]|\.post|\.dev", version, maxsplit=1)[0].rstrip(".")).split(".")
    return (*map(int, numbers), 0, 0)[:3]
