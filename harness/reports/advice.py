"""Advice on the settings that members ran with: what Kafka takes, and people regret. It changes no verdict.

The rules are those of Kafka's documentation of its consumer settings, and what guides to the design of consumer groups
name as mistakes. Bounds that brokers or clients enforce are not among them: who breaks one gets an error.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fencepost.history import EventKind
from fencepost.isolation import UNCOMMITTED, reads
from fencepost.reports.folder import Folder, mapping
from fencepost.reports.words import number
from fencepost.settings import DEFAULT_MS, HEARTBEAT, ISOLATION, MIN_INSYNC, POLL_INTERVAL, SESSION, STRATEGY

HEARTBEATS_A_SESSION = 3
HEADROOM = 2
POLL_RECORDS = "max.poll.records"
OWN_PROGRAM = "own_program"


class Advice(NamedTuple):
    """One sentence, and whom it is for: names of members, or of topics."""

    sentence: str
    to: tuple[str, ...]


@dataclass(frozen=True)
class Life:
    """What one member ran with: its client settings under Kafka's names, and how long a poll's records took it.

    Attributes:
        isolation: what its consumer reads, see ``fencepost.isolation``.
        transactions: whether what it reads is written in transactions.
    """

    protocol: str
    settings: Mapping[str, Any]
    work_ms: float = 0.0
    isolation: str = ""
    transactions: bool = False

    def ms(self, name: str) -> float:
        """A setting that is a time; its default where it is none."""
        try:
            return float(self.settings.get(name, DEFAULT_MS[name]))
        except (TypeError, ValueError):
            return DEFAULT_MS[name]

    def says(self, name: str, default: bool) -> bool:
        """A setting that is true or false, in any spelling."""
        return str(self.settings.get(name, default)).lower() == "true"


def heartbeat(life: Life) -> str:
    """A session must outlive a lost heartbeat. With the consumer protocol, both are the brokers' settings."""
    most = life.ms(SESSION) / HEARTBEATS_A_SESSION
    if life.protocol == "consumer" or life.ms(HEARTBEAT) <= most:
        return ""
    return (
        f"{HEARTBEAT} is {number(life.ms(HEARTBEAT))}, more than a third of {SESSION}, {number(life.ms(SESSION))}: "
        f"one late heartbeat may end the session. Use {number(int(most))} or less."
    )


def poll_interval(life: Life) -> str:
    """The records of a poll must be done well before the next one is due, else the group rebalances again and again."""
    if life.work_ms * HEADROOM <= life.ms(POLL_INTERVAL):
        return ""
    return (
        f"the records of one poll may take {number(round(life.work_ms))} ms, by what a record took on average here, "
        f"and {POLL_INTERVAL} is {number(life.ms(POLL_INTERVAL))}: less than {HEADROOM} times as much. Have polls "
        f"return fewer records, or make the interval longer."
    )


def automatic_commit(life: Life) -> str:
    """What polls returned counts as processed, whatever became of it."""
    if not life.says("enable.auto.commit", True) or not life.says("enable.auto.offset.store", True):
        return ""
    return (
        "enable.auto.commit is true: the client commits by itself what polls returned. What other threads have in hand "
        "may be committed unprocessed, and what was processed since the last such commit is repeated. Set it to false, "
        "and commit what is processed."
    )


def offset_reset(life: Life) -> str:
    """Partitions that are added are found after their first records were written."""
    reset = str(life.settings.get("auto.offset.reset", "latest"))
    if reset not in ("latest", "largest", "end"):
        return ""
    return (
        f"auto.offset.reset is {reset}: what a new partition holds when it is found is skipped, and so is what comes "
        f"while the group has no commit. Use earliest."
    )


def assignor(life: Life) -> str:
    """Eager rebalances stop everybody; beside a cooperative assignor, another one decides that all are eager."""
    names = [name.strip() for name in str(life.settings.get(STRATEGY, "range")).split(",")]
    others = [name for name in names if "cooperative" not in name]
    if life.protocol == "consumer" or not others:
        return ""
    if len(others) < len(names):
        return (
            f"{STRATEGY} is {','.join(names)}: as long as {others[0]} is in it, rebalances stop all members. Take it "
            f"out in a second rolling bounce."
        )
    return (
        f"{STRATEGY} is {','.join(names)}: each rebalance takes all partitions from all members. Use "
        f"cooperative-sticky, or the consumer protocol."
    )


def uncommitted(life: Life) -> str:
    """What is aborted is in the log, too, and most clients return it unless they are told otherwise."""
    if not life.transactions or life.isolation != UNCOMMITTED:
        return ""
    return (
        f"{ISOLATION} is {UNCOMMITTED}, and what the group reads is written in transactions: members are given what is "
        f"aborted, or not committed yet. Use read_committed."
    )


RULES: tuple[Callable[[Life], str], ...] = (
    *(heartbeat, poll_interval, automatic_commit, offset_reset, assignor, uncommitted),
)


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


def advise(folder: Folder) -> list[Advice]:
    """All advice on a run, each sentence once."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for member, life in _lives(folder):
        for sentence in filter(None, (rule(life) for rule in RULES)):
            found[sentence][member] = None
    topics = folder.asked.get("topics")
    for topic in topics if isinstance(topics, list) else ():
        if sentence := replicas(mapping(topic), mapping(folder.scenario.get("cluster"))):
            found[sentence][str(mapping(topic).get("name"))] = None
    return [Advice(sentence, tuple(sorted(to, key=lambda name: (len(name), name)))) for sentence, to in found.items()]


def _lives(folder: Folder) -> Iterator[tuple[str, Life]]:
    workload, each_ns = mapping(folder.asked.get("workload")), folder.mean("delivered", "begin_ns", "done_ns") or 0.0
    for fact in folder.facts:
        settings = fact.detail.get("config")
        if fact.kind != EventKind.STARTED or "member" not in fact.detail or not isinstance(settings, Mapping):
            continue
        if not settings and fact.detail.get("told_by") == "lines":
            continue  # it did not say what it runs with
        # A program's own record is done when it polls again: that is how long all of a poll took.
        most = 1 if workload.get("type") == OWN_PROGRAM else workload.get("batch", 0)
        records = min((one for one in (most, settings.get(POLL_RECORDS)) if isinstance(one, int)), default=0)
        member = f"member-{fact.detail['member']}"
        yield (
            member,
            Life(
                protocol=str(fact.detail.get("protocol")),
                settings=settings,
                work_ms=records * each_ns / 1e6,
                isolation=reads(fact.detail, mapping(mapping(folder.asked.get("group")).get("config"))),
                transactions=bool(workload.get("transaction_records")),
            ),
        )
