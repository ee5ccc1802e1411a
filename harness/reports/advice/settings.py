"""The rules of what one member runs with.

They are those of Kafka's documentation of its consumer settings, and what guides to the design of consumer groups name
as mistakes. Of bounds that are enforced those are among them whose error does not name them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from fencepost.model.isolation import UNCOMMITTED
from fencepost.model.settings import DEFAULT_MS, HEARTBEAT, ISOLATION, POLL_INTERVAL, SESSION, STRATEGY
from fencepost.reports.words import number

HEARTBEATS_A_SESSION = 3
HEADROOM = 2
SESSION_LEAST, SESSION_MOST = "group.min.session.timeout.ms", "group.max.session.timeout.ms"


@dataclass(frozen=True)
class Life:
    """What one member ran with: its client settings under Kafka's names, and how long a poll's records may take it.

    Attributes:
        sessions_ms: the shortest and the longest session time-out that brokers take.
        isolation: what its consumer reads, see ``fencepost.model.isolation``.
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


def assignors(settings: Mapping[str, Any]) -> list[str]:
    """Their names, as far as they were told."""
    return [name for one in str(settings.get(STRATEGY, "")).split(",") if (name := one.strip())]


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
    names = assignors(life.settings) or ["range"]
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
