"""The rules for a group and its topics, which need more than one member's settings.

Each rule yields sentences, each with the member or topic that it concerns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import Any

from fencepost.history import EventKind
from fencepost.model.findings import FINDINGS
from fencepost.model.impact import Impact
from fencepost.model.settings import MIN_INSYNC, STRATEGY
from fencepost.reports.folder import Folder, mapping
from fencepost.reports.formatting import number, plural
from fencepost.reports.lint import gathering
from fencepost.reports.lint.gathering import Started, TransactionalCommit
from fencepost.reports.lint.settings import assignors

INSTANCE = "group.instance.id"
TRANSACTIONAL = "transactional.id"
ALL = "the group"
HOT = 2  # times the mean of a topic's partitions
FEW = 100  # records; a partition with fewer is not judged
Advised = Iterator[tuple[str, str]]  # a sentence, and the member or topic that it concerns


def shared_ids(folder: Folder) -> Advised:
    """No two members may share a static id; not checked if a fault duplicates one."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for one in gathering.started(folder) if Impact.DUPLICATES not in gathering.impact_of_faults(folder) else ():
        if own := one.detail["config"].get(INSTANCE) or one.detail.get("instance_id"):
            found[str(own)][one.name] = None
    for own, members in found.items():
        for name in members if len(members) > 1 else ():
            yield (
                f"several members use {INSTANCE} {own}: each one that joins fences the other one for good. Give each "
                "member its own, and the same one after a restart.",
                name,
            )


def assignors_in_common(folder: Folder) -> Advised:
    """Members that run at the same time must have an assignor in common, also during an upgrade."""
    known: defaultdict[tuple[str, ...], list[Started]] = defaultdict(list)
    for one in gathering.started(folder):
        if (names := assignors(one.detail["config"])) and one.detail.get("protocol") != "consumer":
            known[tuple(names)].append(one)
    for some, others in combinations(known, 2):
        pairs = [(a, b) for a in known[some] for b in known[others]] if not {*some} & {*others} else []
        for first, second in (sorted(pair, key=lambda member: member.begin_ns) for pair in pairs):
            if first.name != second.name and second.begin_ns < first.end_ns:
                had, has = (some, others) if first in known[some] else (others, some)
                yield (
                    f"{STRATEGY} is {','.join(has)}, but other members have {','.join(had)}: without a common assignor "
                    "the coordinator rejects the member that joins later (INCONSISTENT_GROUP_PROTOCOL). Upgrade in "
                    "two rolling bounces: first all members get both, then only the new one.",
                    second.name,
                )


def transactional_ids(folder: Folder) -> Advised:
    """A transactional id must belong to one member, in all its lives, or to one partition, whoever owns it. Sharing is
    not checked if a fault duplicates members."""
    doubled = Impact.DUPLICATES in gathering.impact_of_faults(folder)
    by_id, by_life = (
        defaultdict[str, list[TransactionalCommit]](list),
        defaultdict[int, defaultdict[str, set[str]]](_sets),
    )
    for one in gathering.sent(folder):
        by_id[one.id].append(one)
        by_life[one.member][one.incarnation].add(one.id)
    # An id that only ever committed one partition may belong to that partition.
    tied = {own for own, sends in by_id.items() if len({place for one in sends for place in one.partitions}) < 2}
    for own in by_id.keys() - tied if not doubled else ():
        members = {one.member for one in by_id[own]}
        for member in members if len(members) > 1 else ():
            yield (
                f"several members use {TRANSACTIONAL} {own}: each one that starts fences the others (PRODUCER_FENCED), "
                "and their transactions are aborted. Give each member its own, and the same one after a restart.",
                f"member-{member}",
            )
    for member, lives in by_life.items():
        if any(_strange(one, other, tied) for one, other in combinations(lives.values(), 2)):
            yield (
                f"{TRANSACTIONAL} changes with a restart: a transaction that was open when a member died is aborted "
                "only after transaction.timeout.ms, and until then consumers with read_committed wait. Build it from "
                "something stable, like a host name and a number.",
                f"member-{member}",
            )


def _strange(one: set[str], other: set[str], tied: set[str]) -> bool:
    """Whether two lives of a member have no id in common although one is expected. Not expected: a short life may have
    used only some of several producers, and ids of partitions move with their partitions."""
    return one.isdisjoint(other) and len(one) == len(other) and not one | other <= tied


def _sets() -> defaultdict[str, set[str]]:
    return defaultdict(set)


def producers(folder: Folder) -> Advised:
    """A program's own producers must be idempotent: a retried record must be in the log once, and in order."""
    for fact in folder.facts:
        if fact.kind == EventKind.PRODUCING and fact.detail.get("idempotent") is False:
            yield (
                "a producer of the program is not idempotent: a record that it retries may be written twice, or after "
                "records that were sent later. Set enable.idempotence to true, with a client that supports it.",
                fact.actor.rpartition(".")[0],
            )


def findings(folder: Folder) -> Advised:
    """Advice for kinds of findings, whether violations or permitted."""
    for kind in FINDINGS.values():
        if kind.advice and (count := gathering.found(folder, kind.name)):
            yield f"{plural(count, 'record')} {kind.advice}", ALL


def stopping(folder: Folder) -> Advised:
    """A record that cannot be processed must not stop the group."""
    workload = mapping(folder.asked.get("workload"))
    if workload.get("on_failure") == "stop":
        yield (
            "a record that cannot be processed ends each member that is assigned its partition. Write it to a "
            "dead-letter topic, which keeps it (retention.ms) until it is inspected, and continue.",
            ALL,
        )


def hot_partitions(folder: Folder) -> Advised:
    """A group may lag far behind in one partition although its total or mean lag looks harmless."""
    for topic, partitions in gathering.records(folder).items():
        mean = sum(partitions.values()) / len(partitions)
        for name, count in partitions.items():
            if count >= FEW and count > HOT * mean:
                yield (
                    f"{name} has {plural(count, 'record')}, but the partitions of its topic have "
                    f"{number(round(mean))} on average: the group's total lag hides the lag of this partition. Monitor "
                    "the lag of each partition, and choose keys that spread evenly.",
                    topic,
                )


def topics(folder: Folder) -> Advised:
    """The replication of each topic of the scenario."""
    asked = folder.asked.get("topics")
    for topic in asked if isinstance(asked, list) else ():
        if sentence := replicas(mapping(topic), mapping(folder.scenario.get("cluster"))):
            yield sentence, str(mapping(topic).get("name"))


def replicas(topic: Mapping[str, Any], cluster: Mapping[str, Any]) -> str:
    """Advice if a topic does not survive the loss of a broker (replicas, ``min.insync.replicas``); else empty."""
    count, brokers = topic.get("replication_factor"), cluster.get("brokers")
    asked = str({**mapping(cluster.get("broker_config")), **mapping(topic.get("config"))}.get(MIN_INSYNC))
    insync = int(asked) if asked.isdecimal() else 0
    if not isinstance(count, int) or not isinstance(brokers, int) or brokers < 2:
        return ""
    if count == 1:
        return "the replication factor is 1: a partition is lost with its broker. Use 3."
    if insync >= count:
        return f"{MIN_INSYNC} is {insync} of {count} replicas: if one broker is down, no records can be written."
    return f"{MIN_INSYNC} is 1: an acknowledged record may exist on one broker only. Use 2." if insync == 1 else ""


RULES: tuple[Callable[[Folder], Advised], ...] = (
    shared_ids,
    assignors_in_common,
    transactional_ids,
    producers,
    findings,
    stopping,
    hot_partitions,
    topics,
)
