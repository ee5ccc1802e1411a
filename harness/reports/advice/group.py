"""The rules of a group and its topics: what no member's settings tell alone.

Each gives sentences, and whom each is for.
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
from fencepost.reports.advice import gathering
from fencepost.reports.advice.gathering import Sent, Started
from fencepost.reports.advice.settings import assignors
from fencepost.reports.folder import Folder, mapping
from fencepost.reports.words import number, plural

INSTANCE = "group.instance.id"
TRANSACTIONAL = "transactional.id"
ALL = "the group"
HOT = 2  # times the mean of a topic's partitions
FEW = 100  # records, of which nothing can be said
Told = Iterator[tuple[str, str]]  # a sentence, and the member or topic that it is for


def shared_ids(folder: Folder) -> Told:
    """A static id is one member's alone; unless a fault has it be that of two."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for one in gathering.started(folder) if Impact.DUPLICATES not in gathering.impact_of_faults(folder) else ():
        if own := one.detail["config"].get(INSTANCE) or one.detail.get("instance_id"):
            found[str(own)][one.name] = None
    for own, members in found.items():
        for name in members if len(members) > 1 else ():
            yield (
                f"{INSTANCE} {own} is that of several members: whoever comes puts the other one out of the group for "
                "good. Give each its own, and the same one after a restart.",
                name,
            )


def apart(folder: Folder) -> Told:
    """Members that are there at once have an assignor in common, as during an upgrade in two rolling bounces."""
    known: defaultdict[tuple[str, ...], list[Started]] = defaultdict(list)
    for one in gathering.started(folder):
        if (names := assignors(one.detail["config"])) and one.detail.get("protocol") != "consumer":
            known[tuple(names)].append(one)
    for these, those in combinations(known, 2):
        pairs = [(a, b) for a in known[these] for b in known[those]] if not {*these} & {*those} else []
        for first, second in (sorted(pair, key=lambda one: one.begin_ns) for pair in pairs):
            if first.name != second.name and second.begin_ns < first.end_ns:
                had, has = (these, those) if first in known[these] else (those, these)
                yield (
                    f"{STRATEGY} is {','.join(has)}, and others who are there have {','.join(had)}: without one in "
                    "common the coordinator lets nobody in who comes later (INCONSISTENT_GROUP_PROTOCOL). Upgrade in "
                    "two rolling bounces: at first each has both, then the new one alone.",
                    second.name,
                )


def transactional_ids(folder: Folder) -> Told:
    """One is one member's in all of its lives, or one partition's, whoever has that; unless a fault has it be so."""
    doubled = Impact.DUPLICATES in gathering.impact_of_faults(folder)
    by_id, by_life = defaultdict[str, list[Sent]](list), defaultdict[int, defaultdict[str, set[str]]](_sets)
    for one in gathering.sent(folder):
        by_id[one.id].append(one)
        by_life[one.member][one.incarnation].add(one.id)
    # What was only ever sent for one partition may be that partition's.
    tied = {own for own, those in by_id.items() if len({place for one in those for place in one.partitions}) < 2}
    for own in by_id.keys() - tied if not doubled else ():
        members = {one.member for one in by_id[own]}
        for member in members if len(members) > 1 else ():
            yield (
                f"{TRANSACTIONAL} {own} is that of several members: whoever comes fences the others "
                "(PRODUCER_FENCED), and their transactions are aborted. Give each its own, and the same one after a "
                "restart.",
                f"member-{member}",
            )
    for member, lives in by_life.items():
        if any(_strange(one, other, tied) for one, other in combinations(lives.values(), 2)):
            yield (
                f"{TRANSACTIONAL} is another one after a restart: what a member left open when it died is aborted by "
                "nobody until transaction.timeout.ms is over, and until then who reads what is committed waits. Make "
                "it of what stays, like the name of a host and a number.",
                f"member-{member}",
            )


def _strange(one: set[str], other: set[str], tied: set[str]) -> bool:
    """Whether two lives of a member have no id in common, and would have: of several producers, a short one may have
    used some only, and those of partitions go with these."""
    return one.isdisjoint(other) and len(one) == len(other) and not one | other <= tied


def _sets() -> defaultdict[str, set[str]]:
    return defaultdict(set)


def producers(folder: Folder) -> Told:
    """A program's own: what it tries again must be in the log once, and in order."""
    for fact in folder.facts:
        if fact.kind == EventKind.PRODUCING and fact.detail.get("idempotent") is False:
            yield (
                "a producer of the program is not idempotent: what it sends again, as no answer came, may be there "
                "twice, or behind what was sent later. Set enable.idempotence to true, with a client that has it.",
                fact.actor.rpartition(".")[0],
            )


def findings(folder: Folder) -> Told:
    """What checks found, whether or not it is permitted."""
    for kind in FINDINGS.values():
        if kind.advice and (count := gathering.found(folder, kind.name)):
            yield f"{plural(count, 'record')} {kind.advice}", ALL


def stopping(folder: Folder) -> Told:
    """What nobody can process must not stop everybody."""
    workload = mapping(folder.asked.get("workload"))
    if workload.get("on_failure") == "stop":
        yield (
            "a record that cannot be processed ends each member that is given its partition. Park it in a topic of its "
            "own, which keeps it (retention.ms) until somebody has looked, and go on.",
            ALL,
        )


def hot_partitions(folder: Folder) -> Told:
    """A group may be far behind in one partition while its lag as a whole, or the mean, looks harmless."""
    for topic, partitions in gathering.records(folder).items():
        mean = sum(partitions.values()) / len(partitions)
        for name, count in partitions.items():
            if count >= FEW and count > HOT * mean:
                yield (
                    f"{name} was given {plural(count, 'record')}, and the partitions of its topic "
                    f"{number(round(mean))} each in the mean: the group's lag as a whole hides that it is behind "
                    "there. Watch the lag of each partition, and choose keys that spread.",
                    topic,
                )


def topics(folder: Folder) -> Told:
    """Each topic of the scenario."""
    asked = folder.asked.get("topics")
    for topic in asked if isinstance(asked, list) else ():
        if sentence := replicas(mapping(topic), mapping(folder.scenario.get("cluster"))):
            yield sentence, str(mapping(topic).get("name"))


def replicas(topic: Mapping[str, Any], cluster: Mapping[str, Any]) -> str:
    """Whether a topic outlives a broker, by ``min.insync.replicas`` of its own or of the brokers."""
    count, brokers = topic.get("replication_factor"), cluster.get("brokers")
    told = str({**mapping(cluster.get("broker_config")), **mapping(topic.get("config"))}.get(MIN_INSYNC))
    insync = int(told) if told.isdecimal() else 0
    if not isinstance(count, int) or not isinstance(brokers, int) or brokers < 2:
        return ""
    if count == 1:
        return "the replication factor is 1: with its broker, a partition is gone. Use 3."
    if insync >= count:
        return f"{MIN_INSYNC} is {insync} of {count} replicas: no broker may be down while records are written."
    return f"{MIN_INSYNC} is 1: an acknowledged record may be in one place only. Use 2." if insync == 1 else ""


RULES: tuple[Callable[[Folder], Told], ...] = (
    shared_ids,
    apart,
    transactional_ids,
    producers,
    findings,
    stopping,
    hot_partitions,
    topics,
)
