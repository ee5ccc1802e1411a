"""The rules for the settings of one member.

Sources: Kafka's documentation of its consumer settings, and mistakes that guides to consumer groups warn about. A limit
that brokers enforce has a rule here only if their error does not state the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from fencepost.model.isolation import UNCOMMITTED
from fencepost.model.settings import DEFAULT_MS, HEARTBEAT, ISOLATION, POLL_INTERVAL, SESSION, STRATEGY
from fencepost.reports.formatting import number

HEARTBEATS_A_SESSION = 3
HEADROOM = 2
SESSION_LEAST, SESSION_MOST = "group.min.session.timeout.ms", "group.max.session.timeout.ms"


@dataclass(frozen=True)
class MemberSettings:
    """The settings of one incarnation, by Kafka's names.

    Attributes:
        work_ms: the longest time that the records of one poll may take to process.
        sessions_ms: the shortest and the longest session time-out that the brokers accept.
        isolation: the isolation level of its consumer, see ``fencepost.model.isolation``.
        transactions: whether the records that it reads are written in transactions.
    """

    protocol: str
    settings: Mapping[str, Any]
    work_ms: float = 0.0
    isolation: str = ""
    transactions: bool = False
    sessions_ms: tuple[float, float] = (0, inf)

    def ms(self, name: str) -> float:
        """A setting in milliseconds; its default if it is missing or not a number."""
        try:
            return float(self.settings.get(name, DEFAULT_MS[name]))
        except (TypeError, ValueError):
            return DEFAULT_MS[name]

    def says(self, name: str, default: bool) -> bool:
        """A boolean setting, in any spelling."""
        return str(self.settings.get(name, default)).lower() == "true"


def assignors(settings: Mapping[str, Any]) -> list[str]:
    """The names of the assignors, as far as they are set."""
    return [name for one in str(settings.get(STRATEGY, "")).split(",") if (name := one.strip())]


def heartbeat(life: MemberSettings) -> str:
    """A session must survive a lost heartbeat. With the consumer protocol, both are the brokers' settings."""
    most = life.ms(SESSION) / HEARTBEATS_A_SESSION
    if life.protocol == "consumer" or life.ms(HEARTBEAT) <= most:
        return ""
    return (
        f"{HEARTBEAT} is {number(life.ms(HEARTBEAT))}, more than a third of {SESSION}, {number(life.ms(SESSION))}: "
        f"one late heartbeat may end the session. Use {number(int(most))} or less."
    )


def session(life: MemberSettings) -> str:
    """The session time-out must be within the brokers' limits; INVALID_SESSION_TIMEOUT does not name them."""
    (least, most), own = life.sessions_ms, life.ms(SESSION)
    if life.protocol == "consumer" or least <= own <= most:
        return ""
    name, bound = (SESSION_LEAST, least) if own < least else (SESSION_MOST, most)
    return (
        f"{SESSION} is {number(own)}, but the brokers' {name} is {number(bound)}: they reject such a member. Change "
        "one of the two."
    )


def poll_interval(life: MemberSettings) -> str:
    """The records of a poll must be processed well within the poll interval, else the group rebalances repeatedly."""
    if life.work_ms * HEADROOM <= life.ms(POLL_INTERVAL):
        return ""
    return (
        f"the records of one poll may take {number(round(life.work_ms))} ms (the slowest record of this run, and the "
        f"mean for the others), but {POLL_INTERVAL} is {number(life.ms(POLL_INTERVAL))}: less than {HEADROOM} times as "
        f"much. Make polls return fewer records, or the interval longer."
    )


def automatic_commit(life: MemberSettings) -> str:
    """Auto-commit treats returned records as processed, whether they are or not."""
    if not life.says("enable.auto.commit", True) or not life.says("enable.auto.offset.store", True):
        return ""
    return (
        "enable.auto.commit is true: the client commits the records that polls returned. Records in flight in other "
        "threads may be committed unprocessed, and records that were processed since the last commit are repeated. Set "
        "it to false, and commit processed records."
    )


def offset_reset(life: MemberSettings) -> str:
    """Consumers find a new partition only after its first records were written."""
    reset = str(life.settings.get("auto.offset.reset", "latest"))
    if reset not in ("latest", "largest", "end"):
        return ""
    return (
        f"auto.offset.reset is {reset}: records that a new partition holds when it is found are skipped, and so are "
        f"records that are written before the group's first commit. Use earliest."
    )


def assignor(life: MemberSettings) -> str:
    """Eager rebalances stop all members; one eager assignor in the list makes all rebalances eager."""
    names = assignors(life.settings) or ["range"]
    others = [name for name in names if "cooperative" not in name]
    if life.protocol == "consumer" or not others:
        return ""
    if len(others) < len(names):
        return (
            f"{STRATEGY} is {','.join(names)}: as long as it contains {others[0]}, rebalances stop all members, and "
            f"the cooperative assignor has no benefit. Remove {others[0]} in a second rolling bounce."
        )
    return (
        f"{STRATEGY} is {','.join(names)}: each rebalance revokes all partitions of all members. Use "
        f"cooperative-sticky, or the consumer protocol."
    )


def uncommitted(life: MemberSettings) -> str:
    """Aborted records stay in the log, and most clients return them by default."""
    if not life.transactions or life.isolation != UNCOMMITTED:
        return ""
    return (
        f"{ISOLATION} is {UNCOMMITTED}, but the group reads records that are written in transactions: members receive "
        f"records that are aborted or not committed yet. Use read_committed."
    )


RULES: tuple[Callable[[MemberSettings], str], ...] = (
    heartbeat,
    session,
    poll_interval,
    automatic_commit,
    offset_reset,
    assignor,
    uncommitted,
)
