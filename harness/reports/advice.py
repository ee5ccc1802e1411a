"""Advice on the settings that members ran with: what people regret, or wonder at. It changes no verdict.

The rules are those of Kafka's documentation of its consumer settings, and what guides to the design of consumer groups
name as mistakes. Of bounds that are enforced those are among them whose error does not name them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from fencepost.history import EventKind
from fencepost.isolation import UNCOMMITTED, reads
from fencepost.reports.folder import Folder, mapping
from fencepost.reports.words import number
from fencepost.settings import DEFAULT_MS, HEARTBEAT, ISOLATION, MIN_INSYNC, POLL_INTERVAL, SESSION, STRATEGY

HEARTBEATS_A_SESSION = 3
HEADROOM = 2
POLL_RECORDS = "max.poll.records"
INSTANCE = "group.instance.id"
SESSION_LEAST, SESSION_MOST = "group.min.session.timeout.ms", "group.max.session.timeout.ms"
LONGEST_SESSION_MS = 1_800_000  # unless brokers are told otherwise
OWN_PROGRAM = "own_program"
HOLD_UP = {"pause", "stall", "duplicate_instance"}  # faults that keep a member from finishing what it has in hand


class Advice(NamedTuple):
    """One sentence, and whom it is for: names of members, or of topics."""

    sentence: str
    to: tuple[str, ...]


@dataclass(frozen=True)
class Life:
    """What one member ran with: its client settings under Kafka's names, and how long a poll's records may take it.

    Attributes:
        sessions_ms: the shortest and the longest session time-out that brokers take.
        isolation: what its consumer reads, see ``fencepost.isolation``.
        transactions: whether what it reads is written in transactions.
    """

    protocol: str
    settings: Mapping[str, Any]
    work_ms: float = 0.0
    isolation: str = ""
    transactions: bool = False
    sessions_ms: tuple[float, float] = (0, inf)

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


def session(life: Life) -> str:
    """Brokers tell who is outside of their bounds so, and not what these are (INVALID_SESSION_TIMEOUT)."""
    (least, most), own = life.sessions_ms, life.ms(SESSION)
    if life.protocol == "consumer" or least <= own <= most:
        return ""
    name, bound = (SESSION_LEAST, least) if own < least else (SESSION_MOST, most)
    told = f"{SESSION} is {number(own)}, and the brokers' {name} is {number(bound)}"
    return f"{told}: they let no such member in. Change one of them."


def poll_interval(life: Life) -> str:
    """The records of a poll must be done well before the next one is due, else the group rebalances again and again."""
    if life.work_ms * HEADROOM <= life.ms(POLL_INTERVAL):
        return ""
    return (
        f"the records of one poll may take {number(round(life.work_ms))} ms, by the slowest one here and the mean, and "
        f"{POLL_INTERVAL} is {number(life.ms(POLL_INTERVAL))}: less than {HEADROOM} times as much. Have polls return "
        f"fewer records, or make the interval longer."
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
            f"{STRATEGY} is {','.join(names)}: as long as {others[0]} is in it, rebalances stop all members, and the "
            f"cooperative one is no gain. Take it out in a second rolling bounce."
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
    heartbeat,
    session,
    poll_interval,
    automatic_commit,
    offset_reset,
    assignor,
    uncommitted,
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


def shared_ids(folder: Folder) -> dict[str, list[str]]:
    """Of each static id that several members have a sentence, and who they are; unless a fault has it be so."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for detail in _started(folder) if "duplicate_instance" not in _faults(folder) else ():
        if own := detail["config"].get(INSTANCE) or detail.get("instance_id"):
            found[str(own)][f"member-{detail['member']}"] = None
    return {
        f"{INSTANCE} {own} is that of several members: whoever comes puts the other one out of the group for good. "
        "Give each its own, and the same one after a restart.": [*members]
        for own, members in found.items()
        if len(members) > 1
    }


def advise(folder: Folder) -> list[Advice]:
    """All advice on a run, each sentence once."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for member, life in _lives(folder):
        for sentence in filter(None, (rule(life) for rule in RULES)):
            found[sentence][member] = None
    for sentence, members in shared_ids(folder).items():
        found[sentence].update(dict.fromkeys(members))
    topics = folder.asked.get("topics")
    for topic in topics if isinstance(topics, list) else ():
        if sentence := replicas(mapping(topic), mapping(folder.scenario.get("cluster"))):
            found[sentence][str(mapping(topic).get("name"))] = None
    return [Advice(sentence, tuple(sorted(to, key=lambda name: (len(name), name)))) for sentence, to in found.items()]


def _lives(folder: Folder) -> Iterator[tuple[str, Life]]:
    workload, sessions_ms = mapping(folder.asked.get("workload")), _sessions_ms(folder)
    each_ns, most_ns = folder.took("delivered", "begin_ns", "done_ns")
    held_up_ns = most_ns if _faults(folder) & HOLD_UP else sum(s["to_ns"] - s["from_ns"] for s in folder.stalls)
    slowest_ns = max(each_ns, most_ns - held_up_ns)
    for detail in _started(folder):
        settings = detail["config"]
        if not settings and detail.get("told_by") == "lines":
            continue  # it did not say what it runs with
        # A program's own record is done when it polls again: that is how long all of a poll took.
        most = 1 if workload.get("type") == OWN_PROGRAM else workload.get("batch", 0)
        records = min((one for one in (most, settings.get(POLL_RECORDS)) if isinstance(one, int)), default=0)
        life = Life(
            protocol=str(detail.get("protocol")),
            settings=settings,
            work_ms=((records - 1) * each_ns + slowest_ns) / 1e6 if records > 0 else 0.0,
            isolation=reads(detail, mapping(mapping(folder.asked.get("group")).get("config"))),
            transactions=bool(workload.get("transaction_records")),
            sessions_ms=sessions_ms,
        )
        yield f"member-{detail['member']}", life


def _started(folder: Folder) -> Iterator[Mapping[str, Any]]:
    """What members told as they started."""
    for fact in folder.facts:
        detail = fact.detail
        if fact.kind == EventKind.STARTED and "member" in detail and isinstance(detail.get("config"), Mapping):
            yield detail


def _sessions_ms(folder: Folder) -> tuple[float, float]:
    """Of a cluster of the run's own; of others nothing is known."""
    told = mapping(mapping(folder.scenario.get("cluster")).get("broker_config"))
    least, most = told.get(SESSION_LEAST), told.get(SESSION_MOST, LONGEST_SESSION_MS)
    if not told or not isinstance(most, int | float):
        return 0, inf
    return least if isinstance(least, int | float) else 0, most


def _faults(folder: Folder) -> set[str]:
    """The types of all faults of the plan."""
    steps = folder.plan.get("steps")
    return {str(mapping(mapping(step).get("fault")).get("type")) for step in (steps if isinstance(steps, list) else ())}
