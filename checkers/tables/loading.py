"""Fills the tables of a run from its folder: events and evidence become typed rows, once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fencepost.checkers.tables import (
    another_rule,
    coordinator,
    event_rows,
    integrity,
    processing_rules,
    recreated,
    requests,
    retention,
    starts_at_end,
)
from fencepost.checkers.tables.aborted_visibility import uncommitted
from fencepost.checkers.tables.effects import effects
from fencepost.checkers.tables.gc_pause import no_collecting
from fencepost.checkers.tables.paused import paused
from fencepost.checkers.tables.processing_rules import Inferred
from fencepost.checkers.tables.reading import Reader
from fencepost.checkers.tables.resets import resets
from fencepost.checkers.tables.rows import Damage, DeclaredAction, Interval, Life, Partition, Window
from fencepost.checkers.tables.seeks import seeks
from fencepost.checkers.tables.tables import Tables
from fencepost.history import HARNESS, SETTINGS, EventKind
from fencepost.history import events as from_events
from fencepost.model import TopicPartition


@no_collecting()
def load(run: Path, processed: str = "") -> Tables:
    """The tables of the run folder ``run``. Damage does not raise; it is in the table ``damage``.

    Args:
        run: a run folder.
        processed: a rule of processing that replaces the one of the run; empty: the run's own.

    Raises:
        ScenarioError: the run cannot be judged by that rule; says why.
    """
    from fencepost.checkers.tables import schemas

    reader = Reader(run)
    asked = Tables(run, reader.json("scenario", "scenario.json", schemas.ScenarioFile))
    if not processed or processed == asked.processed:
        return _load(reader, asked.scenario)
    return _load(reader, another_rule.by_another_rule(asked.scenario, processed, asked.own_program), by_commits=True)


def _load(reader: Reader, scenario: Mapping[str, Any], by_commits: bool = False) -> Tables:
    """``by_commits``: the rule ``commit`` replaces the one by which the run was recorded."""
    from fencepost.checkers.tables import schemas

    plan = reader.json("plan", "plan.json", schemas.PlanFile)
    pairs = reader.json("clock", "history/clock.json", schemas.ClockFile).get("pairs") or []
    entries = reader.json("partitions", "history/partitions.json", schemas.PartitionsFile).get("partitions") or ()
    partitions = _partitions(entries)
    numbers = {(p.name.topic, p.name.partition): p.tp for p in partitions.values() if not p.gone}
    events = reader.events()
    of_harness = events or reader.unsealed_events(HARNESS)
    phases = from_events.phases(of_harness)
    offsets = reader.lines("offsets", "history/coordinator/offsets.jsonl", schemas.OffsetLine, **schemas.OF_MEMBER)
    asked = reader.lines("requests", "history/coordinator/requests.jsonl", schemas.RequestLine)
    metadata = reader.lines("metadata", "history/coordinator/metadata.jsonl", schemas.MetadataLine)
    host = reader.lines("host", "history/host.jsonl", schemas.HostLine)
    steps = from_events.steps(of_harness, plan.get("steps") or ())
    known = from_events.lives(events, steps)
    commits = event_rows.commits(events, numbers)
    who = coordinator.incarnations(events, asked, known)
    accepted, overtaken = coordinator.accepted(offsets, commits, numbers)
    given, gone, doubled = coordinator.assignments(offsets, who, numbers)
    intervals = from_events.intervals(events, known, numbers)
    for name, instance_id in requests.static_ids(asked, who).items():  # only requests show the ids of black boxes
        known[name] = replace(known[name], instance_id=known[name].instance_id or instance_id)
    seats = coordinator.seats(metadata, str(scenario.get("group") or ""))
    integrity.check(reader, events, known, event_rows.broken_off(phases), pairs)
    tables = Tables(
        run=reader.run,
        scenario=scenario,
        plan=plan,
        origin_ns=int(pairs[0][0]) if pairs else min((e["begin_ns"] for e in events if e["begin_ns"]), default=0),
        partitions=partitions,
        lives=known,
        intervals=intervals,
        commits=commits,
        accepted=accepted,
        overtaken=overtaken,
        given=given,
        gone=gone,
        doubled=doubled,
        strays=event_rows.strays(events, intervals, numbers),
        rounds=coordinator.rounds(offsets, asked, who),
        steps=steps,
        seeks=tuple(seeks(events, commits, numbers)),
        paused=paused(events, known, numbers),
        acts=_acts(events, numbers),
        stalls=tuple(Window(int(s["from_ns"]), int(s["to_ns"])) for s in host if s.get("kind") == "stall"),
        phases=phases,
        broken_off=event_rows.broken_off(phases),
        terms=coordinator.terms(offsets),
        leaders=coordinator.leaders(metadata, numbers),
        seats=seats,
        loads=coordinator.loads(seats, offsets),
        **_requests(asked, who, numbers, known if Tables(reader.run, scenario).black_box else {}),
        effects=effects(events, numbers, EventKind.EFFECT),
        dead_letters=effects(events, numbers, EventKind.DEAD_LETTER),
        copies=effects(events, numbers, EventKind.REQUEUED),
        unguarded=event_rows.unguarded(events),
        protocols=event_rows.protocols(events),
        uncommitted=uncommitted(events, scenario.get("scenario") or {}),
        resets=(reported := resets(events)),
        first_written=_first_written(
            reader, replace(Tables(reader.run, scenario, partitions=partitions), resets=reported), intervals, phases
        ),
        **_kept(reader, scenario, partitions),
        **_missing(reader, Tables(reader.run, scenario)),
    )
    tables = recreated.split_by_generation(tables, recreated.renewals(entries))
    return replace(tables, **_inferred(reader, tables, events, asked, numbers, by_commits))


def _inferred(
    reader: Reader,
    tables: Tables,
    events: Sequence[Mapping[str, Any]],
    asked: Sequence[Mapping[str, Any]],
    numbers: Mapping[tuple[str, int], int],
    by_commits: bool,
) -> dict[str, Any]:
    """Tables by name: the inferences of the rules of processing that apply, and the damage, also what hides others.

    Deliveries are read only if a rule applies. ``by_commits``: see ``_load``.
    """
    found: list[Inferred] = []
    damage = [*tables.damage]
    if by_commits:
        another_rule.check_commits(events, tables)
        found += another_rule.infer_from_own_commits(tables, reader.deliveries(another_rule.NEEDED))
    if tables.by_effect and processing_rules.effects_known(events):
        every = [*reader.deliveries(processing_rules.OF_FIRST_DELIVERIES)]
        found += processing_rules.infer_from_effects(tables.affected, every)
    if dead := processing_rules.dead_verifiable_consumers(events, tables.lives):
        polls = reader.deliveries(processing_rules.OF_LAST_COMMITS)
        found += processing_rules.infer_from_commits(dead, asked, numbers, polls)
        if any(missing.part == "requests" for missing in tables.not_shown):
            why = "only the brokers' request log, which the cluster does not show, has the last commit of this life"
            damage += [Damage("delivered", f"history/delivered/{name}.parquet", why) for name in sorted(dead)]
    return {"inferred": tuple(found), "damage": tuple(damage)}


def _missing(reader: Reader, asked: Tables) -> dict[str, Any]:
    """The tables of what is missing, by name: records that the cluster does not show are damage if they are demanded.

    ``asked``: the tables with the scenario.
    """
    if asked.demands_full_evidence:
        return {"damage": (*reader.damage, *reader.not_shown)}
    return {"damage": tuple(reader.damage), "not_shown": tuple(reader.not_shown)}


def _kept(reader: Reader, scenario: Mapping[str, Any], partitions: Mapping[int, Partition]) -> dict[str, Any]:
    """The tables about the brokers' retention and compaction, by name."""
    from fencepost.checkers.tables import schemas

    settings = (
        reader.json("partitions", SETTINGS, schemas.SettingsFile) if os.path.lexists(reader.run / SETTINGS) else {}
    )
    return {
        "compacted": retention.compacted(settings, scenario, partitions.values()),
        "offsets_kept_ns": retention.offsets_kept_ns(settings, scenario),
    }


def _first_written(
    reader: Reader, asked: Tables, intervals: Iterable[Interval], phases: Mapping[str, Window]
) -> dict[int, int]:
    """See ``BaseTables.first_written``. ``asked``: the tables with the scenario, the partitions and the members' reset
    policies."""
    warm_up = phases.get("warm-up")
    if asked.black_box or not (asked.resets_to_end and warm_up and warm_up.end_ns):
        return {}
    received = {
        (one.incarnation, *place)
        for one in reader.deliveries(("tp", "interval"))
        for place in {*zip(*(one.columns[name].tolist() for name in ("tp", "interval")), strict=True)}
    }
    after_ns = starts_at_end.started_ns(asked.partitions.values(), intervals, received, warm_up.end_ns)
    return starts_at_end.first_written(reader.acknowledged(), after_ns)


def _acts(events: Iterable[Mapping[str, Any]], numbers: Mapping[tuple[str, int], int]) -> tuple[DeclaredAction, ...]:
    return tuple(
        DeclaredAction(str(e["detail"].get("what") or "act"), -1 if tp is None else tp, e["begin_ns"])
        for e, tp in from_events.placed(events, numbers, EventKind.ACT, anywhere=True)
    )


def _requests(
    lines: Sequence[Mapping[str, Any]],
    who: Mapping[str, str],
    numbers: Mapping[tuple[str, int], int],
    silent: Mapping[str, Life],
) -> dict[str, Any]:
    """The tables of requests to the coordinator, by name.

    ``silent``: the lives of black boxes, which are identified only by their slot. Other members have their name as the
    client id, so an unknown client on their slot is not in the group.
    """
    return {
        "asked_commits": requests.commits(lines, who, numbers),
        "fetched": requests.fetches(lines, who, numbers, coordinator.clients(silent)),
        "heartbeats": requests.heartbeats(lines, who),
        "joins": requests.joins(lines, who),
    }


def _partitions(entries: Iterable[Mapping[str, Any]]) -> dict[int, Partition]:
    found = {}
    for entry in entries:
        gone = "renewed" in entry
        name = TopicPartition(f"{entry['topic']} (deleted)" if gone else entry["topic"], entry["partition"])
        tp = entry["tp"]
        found[tp] = Partition(tp, name, entry.get("log_start", 0), entry.get("log_end", -1), gone)
    return found
