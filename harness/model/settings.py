"""Which of Kafka's settings and names a scenario may set. Settings that Fencepost decides are refused, with advice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from fencepost.errors import ScenarioError, refuse
from fencepost_member.adapters.settings import ACCESS_PREFIXES
from fencepost_member.adapters.settings import ISOLATION as ISOLATION
from fencepost_member.adapters.settings import STRATEGY as STRATEGY

ConfigValue = str | int | float | bool  # a value of Kafka's settings

ACCESS = "give SASL and TLS with --cluster-config: scenarios are stored, and secrets must not be"
ADDRESSES = "Fencepost gives every member its own, the addresses of its proxies"
COMMITS = "use the workload's option commit"
# Client setting -> what to use instead.
DECIDED = {
    "bootstrap.servers": ADDRESSES,
    "metadata.broker.list": ADDRESSES,
    "client.id": "Fencepost names every client like its member, so that the brokers' logs distinguish them",
    "group.id": "use the group's option name",
    "group.instance.id": "use the group's option static",
    "group.protocol": "use the group's option protocol",
    "group.protocol.type": "use the group's option protocol",
    "enable.auto.commit": COMMITS,
    "enable.auto.offset.store": COMMITS,
    "auto.commit.enable": COMMITS,
    "auto.commit.interval.ms": "use the workload's option commit_every_ms",
}
# Protocol of a group -> its assignors; with the consumer protocol the brokers assign.
ASSIGNORS = {"eager": ("range", "roundrobin"), "cooperative": ("cooperative-sticky",), "consumer": ()}
PROTOCOLS = tuple(ASSIGNORS)
SESSION, HEARTBEAT, POLL_INTERVAL = "session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms"
DEFAULT_MS = {SESSION: 45_000, HEARTBEAT: 3_000, POLL_INTERVAL: 300_000}  # Kafka's
RESET = "auto.offset.reset"
MIN_INSYNC = "min.insync.replicas"
CLEANUP, TOMBSTONES = "cleanup.policy", "delete.retention.ms"  # of topics; the brokers' names begin with "log."
CLEANED, OFFSETS_RETENTION = "log.cleaner.enable", "offsets.retention.minutes"  # of brokers
DAY_MS = 24 * 60 * 60 * 1000  # the default life of a tombstone
NETWORKS = ("", "packets", "best")  # see ``Scenario.network``
FULL = "full"
EVIDENCE = ("", FULL)  # see ``Scenario.evidence``
KAFKAS = ("4.3.1", "3.9.1")  # versions of clusters that Fencepost starts; the first is the default

PYTHON = re.compile(r"(\d+)\.(\d+)(?:\.\d+)?")
OLDEST_PYTHON = 8  # the oldest Python 3 that the member side of Fencepost supports

TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")


def check_client(
    config: Mapping[str, Any],
    protocol: str,
    known: Sequence[str],
    additional: Sequence[str] = (),
    *,
    place: str = "the group's config",
) -> None:
    """Refuse client settings of a group that Fencepost decides, or that contradict its ``protocol``. ``known``: the
    assignors that its clients have in common for it; ``additional``: assignors that a list may contain in addition.

    Raises:
        ScenarioError: names each such setting and what to use instead.
    """
    refuse(map(ScenarioError, _wrong(config, protocol, known, additional, place)))


def _wrong(
    config: Mapping[str, Any], protocol: str, known: Sequence[str], additional: Sequence[str], place: str
) -> Iterator[str]:
    for name in config:
        if name in DECIDED:
            yield f"{place} cannot set {name}: {DECIDED[name]}"
        if name.startswith(ACCESS_PREFIXES):
            yield f"{place} cannot set {name}: {ACCESS}"
    if STRATEGY in config and not known:
        yield f"{place} cannot set {STRATEGY} with protocol {protocol!r}: the brokers assign"
    elif STRATEGY in config:
        names = str(config[STRATEGY]).split(",")
        allowed = {*known, *(additional if any(name.strip() in known for name in names) else ())}
        if wrong := [name for name in names if name.strip() not in allowed]:
            yield (
                f"the group's {STRATEGY} {wrong[0].strip()!r} contradicts its protocol {protocol!r}, "
                f"which goes with {' or '.join(known)}"
            )
    for name in (SESSION, HEARTBEAT, POLL_INTERVAL):
        value = config.get(name, 1)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            yield f"the group's {name} must be a whole number of milliseconds above 0, found {value!r}"


def check_python(version: str) -> None:
    """Refuse a Python version that members cannot run on.

    Raises:
        ScenarioError: says which versions are possible.
    """
    found = PYTHON.fullmatch(version or f"3.{OLDEST_PYTHON}")
    if not found:
        raise ScenarioError(f"the group's python must be a version like 3.9 or 3.9.18, as text, but found {version!r}")
    if (int(found[1]), int(found[2])) < (3, OLDEST_PYTHON):
        raise ScenarioError(f"members need Python 3.{OLDEST_PYTHON} or later, but the group's python is {version}")


def of_kafka_3(version: str) -> bool:
    """Whether a cluster's version is one of Kafka 3."""
    return version.startswith("3.")


def check_kafka(version: str, protocol: str) -> None:
    """Refuse a version of Kafka that is not pinned, and the consumer protocol where Kafka only has a preview of it.

    Raises:
        ScenarioError: lists the versions.
    """
    if version and version not in KAFKAS:
        raise ScenarioError(f"there is no Kafka {version!r} for a cluster; known are {', '.join(KAFKAS)}")
    if problem := lacks_protocol(version, protocol):
        raise ScenarioError(problem)


def lacks_protocol(version: str, protocol: str) -> str:
    """A sentence when clusters of this version do not support a group protocol; else empty."""
    preview = of_kafka_3(version) and protocol == "consumer"
    return f"Kafka {version} has only a preview of the protocol 'consumer': use another protocol, or Kafka 4" * preview


def check_topic(name: str) -> None:
    """Refuse invalid topic names, and Kafka's own topics.

    Raises:
        ScenarioError: says which names are valid.
    """
    if not TOPIC.fullmatch(name) or name in (".", ".."):
        raise ScenarioError(
            f"{name!r} cannot be a topic's name: use up to 249 letters, digits, dots, underscores and hyphens"
        )
    if name in INTERNAL_TOPICS:
        raise ScenarioError(f"the topic {name} is Kafka's own: choose another name")


def check_topics(names: Sequence[str]) -> None:
    """Refuse a duplicate name; for Kafka, names that differ only in dots and underscores collide.

    Raises:
        ScenarioError: names both.
    """
    for one, other in combinations(names, 2):
        if one == other:
            raise ScenarioError(f"the topic {one} is there twice")
        if one.replace(".", "_") == other.replace(".", "_"):
            raise ScenarioError(f"topics {one} and {other} differ only in dots and underscores: Kafka refuses that")


def spare_replicas(replicas: int, min_insync: Any) -> int:
    """How many replicas of a partition may be down while it accepts writes; 0 where Kafka will refuse the setting."""
    text = str(min_insync)
    return max(0, replicas - max(1, int(text))) if text.isdecimal() else 0
