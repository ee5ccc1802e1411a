"""Reads the inputs of the lint: the reports of members about themselves, and other parts of the run folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import inf
from typing import Any, NamedTuple

from fencepost.history import EventKind
from fencepost.history.run_folder import opened
from fencepost.model import Severity, impact
from fencepost.model.impact import Impact
from fencepost.model.isolation import reads
from fencepost.reports.folder import Folder, mapping
from fencepost.reports.lint.settings import SESSION_LEAST, SESSION_MOST, MemberSettings

POLL_RECORDS = "max.poll.records"
LONGEST_SESSION_MS = 1_800_000  # the brokers' default
OWN_PROGRAM = "own_program"
SENT = "TXN_OFFSET_COMMIT"  # offsets of a consumer, sent in the transaction of a producer


class Started(NamedTuple):
    """The report of a starting incarnation, and its lifetime; ``name`` is the member's, the same in all its lives."""

    name: str
    actor: str
    begin_ns: int
    end_ns: float
    detail: Mapping[str, Any]


class TransactionalCommit(NamedTuple):
    """Offsets that were sent in a transaction: its ``transactional.id``, the incarnation whose slot sent the request,
    and the partitions."""

    id: str
    member: int
    incarnation: str
    partitions: frozenset[str]


def started(folder: Folder) -> Iterator[Started]:
    """Every incarnation that reported its settings."""
    ended = {fact.actor: fact.end_ns or fact.begin_ns for fact in folder.facts if fact.kind == EventKind.ENDED}
    for fact in folder.facts:
        detail = fact.detail
        if fact.kind == EventKind.STARTED and "member" in detail and isinstance(detail.get("config"), Mapping):
            name = f"member-{detail['member']}"
            yield Started(name, fact.actor, fact.begin_ns, ended.get(fact.actor, inf), detail)


def lives(folder: Folder) -> Iterator[tuple[Started, MemberSettings]]:
    """The same, each with the input of the rules in ``settings``."""
    workload, sessions_ms = mapping(folder.asked.get("workload")), _sessions_ms(folder)
    each_ns, most_ns = folder.took("delivered", "begin_ns", "done_ns")
    held_up_ns = (
        most_ns if Impact.DELAYS in impact_of_faults(folder) else sum(s["to_ns"] - s["from_ns"] for s in folder.stalls)
    )
    slowest_ns = max(each_ns, most_ns - held_up_ns)
    for one in started(folder):
        detail, settings = one.detail, one.detail["config"]
        if not settings and detail.get("told_by") == "lines":
            continue  # it did not report its settings
        # A user's program processes the records of a poll until it polls again, so its time covers all of them.
        most = 1 if workload.get("type") == OWN_PROGRAM else workload.get("batch", 0)
        records = min((one for one in (most, settings.get(POLL_RECORDS)) if isinstance(one, int)), default=0)
        yield (
            one,
            MemberSettings(
                protocol=str(detail.get("protocol")),
                settings=settings,
                work_ms=((records - 1) * each_ns + slowest_ns) / 1e6 if records > 0 else 0.0,
                isolation=reads(detail, mapping(mapping(folder.asked.get("group")).get("config"))),
                transactions=bool(workload.get("transaction_records")),
                sessions_ms=sessions_ms,
            ),
        )


def _sessions_ms(folder: Folder) -> tuple[float, float]:
    """The brokers' shortest and longest session time-out; no bounds for an attached cluster, where they are unknown."""
    config = mapping(mapping(folder.scenario.get("cluster")).get("broker_config"))
    least, most = config.get(SESSION_LEAST), config.get(SESSION_MOST, LONGEST_SESSION_MS)
    if not config or not isinstance(most, int | float):
        return 0, inf
    return least if isinstance(least, int | float) else 0, most


def impact_of_faults(folder: Folder) -> frozenset[str]:
    """The impacts of all faults that fired in this run; see ``model.impact``."""
    fired = (fact.detail for fact in folder.facts if fact.kind == EventKind.FAULT)
    return frozenset().union(*map(impact.recorded, fired))


def found(folder: Folder, kind: str) -> int:
    """The count of a kind of finding, as a violation or permitted; notes do not count."""
    checks = folder.verdict.checks if folder.verdict else ()
    findings = (finding for check in checks for finding in check.findings if finding.kind == kind)
    return max((finding.count for finding in findings if finding.severity is not Severity.NOTE), default=0)


def records(folder: Folder) -> dict[str, dict[str, int]]:
    """By topic and partition, the log end offset of each partition whose log was read."""
    there: dict[str, dict[str, int]] = {}
    for name, end in folder.partitions.items():
        if end >= 0:
            there.setdefault(name.rpartition("-")[0], {})[name] = end
    return there


def sent(folder: Folder) -> list[TransactionalCommit]:
    """The offsets that were sent in transactions, in order, by the brokers' request logs; empty without these."""
    launched: dict[int, list[tuple[int, str, int]]] = {}
    for fact in folder.facts:
        slot, member = fact.detail.get("slot"), fact.detail.get("member")
        if fact.kind == EventKind.LAUNCHED and isinstance(slot, int) and isinstance(member, int):
            launched.setdefault(slot, []).append((fact.begin_ns, fact.actor, member))
    found = []
    for request in _requests(folder, SENT):
        name, at_ns = mapping(request.get("request")).get("transactionalId"), request.get("end_ns")
        if not isinstance(name, str) or not isinstance(at_ns, int):
            continue
        places = frozenset(f"{one[0]}-{one[1]}" for one in request.get("offsets") or ())
        before = [life for life in launched.get(request.get("slot", -1), ()) if life[0] <= at_ns]
        found += [TransactionalCommit(name, member, actor, places) for _, actor, member in before[-1:]]
    return found


def _requests(folder: Folder, api: str) -> Iterator[Mapping[str, Any]]:
    """The logged requests of this API. Unreadable lines are left out: the checks report them."""
    named, path = api.encode(), folder.path / "history" / "coordinator" / "requests.jsonl"
    with suppress(OSError), opened(folder.path, path) as lines:
        for line in lines:
            with suppress(ValueError, RecursionError):
                if named in line and (request := mapping(json.loads(line.decode(errors="replace")))).get("api") == api:
                    yield request
