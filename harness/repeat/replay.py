"""Reads from a run folder how to repeat the run: its scenario, its plan, and what its steps really hit."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.errors import RunFolderError
from fencepost.history import EventKind
from fencepost.history.run_folder import RunFolder, opened
from fencepost.interfaces import Selector
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.plan import Plan, Step, plan_from_json
from fencepost.schedule.selectors import Idle, brokers, members

EVENTS = "history/events.parquet"


def load(run: Path) -> tuple[Scenario, Plan]:
    """The scenario and the plan of a run; whether it can be performed is for the preflight to say.

    Raises:
        RunFolderError: they are missing or damaged.
        ScenarioError: they need something that this release does not have.
    """
    folder = RunFolder.open(run)
    scenario = Scenario.from_json(folder.read_json("scenario.json").get("scenario"))
    return scenario, plan_from_json(folder.read_json("plan.json"))


def pinned(plan: Plan, run: Path) -> Plan:
    """``plan`` with each selector replaced by what it selected in ``run``.

    A step that selected nothing there keeps its selector. Faults that choose their targets themselves choose again, and
    idle members are the first ones that are idle then.

    Raises:
        RunFolderError: the folder does not record what was selected.
    """
    selected = _selected(run)

    def target(step: Step) -> Selector | None:
        return step.target if isinstance(step.target, Idle) else selected.get(step.step, step.target)

    return replace(plan, steps=tuple(replace(step, target=target(step)) for step in plan.steps))


def _selected(run: Path) -> dict[int, Selector]:
    """By step, from the events of the injector."""
    try:
        return {detail["step"]: _selector(detail["target"]) for detail in fired(run) if detail["target"]}
    except (KeyError, TypeError) as error:
        raise RunFolderError(f"{run / EVENTS} does not record what each step hit: {error}") from error


def fired(run: Path) -> list[dict[str, Any]]:
    """The injector's record of each step that fired (the detail of ``EventKind.FAULT``).

    Raises:
        RunFolderError: the events cannot be read.
    """
    try:
        with opened(run, run / EVENTS) as file:
            rows = pq.read_table(file, columns=["kind", "detail"]).to_pylist()
        return [dict(json.loads(row["detail"])) for row in rows if row["kind"] == EventKind.FAULT]
    except (OSError, ValueError, TypeError, pa.ArrowException) as error:
        raise RunFolderError(
            f"{run / EVENTS} does not record what each step hit: {error or type(error).__name__}"
        ) from error


def _selector(target: str) -> Selector:
    """From the text of ``str(Target)``: ``member-0, member-2`` or ``broker-3``."""
    hit = {kind: tuple(map(int, re.findall(rf"\b{kind}-(\d+)", target))) for kind in ("member", "broker")}
    return members(hit["member"]) if hit["member"] else brokers(hit["broker"])
