"""Conducts a battery: learns the program, performs the situations one after the other, and keeps the card."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fencepost.battery import learning, situations
from fencepost.battery.card import BLIND_SPOTS, Card, CardRow, Result, judged
from fencepost.battery.program import LOOKS_EVERY_S, Program
from fencepost.battery.request import BatteryRequest
from fencepost.battery.situations import Situation
from fencepost.battery.speed import BatteryLoad
from fencepost.clusters.backends import ManagedBackend
from fencepost.clusters.kept import kept
from fencepost.errors import FencepostError, RunFolderError
from fencepost.history.atomic import replacing
from fencepost.repeat.batch import RunOptions, perform
from fencepost.reports import card_page
from fencepost.runner import preflight
from fencepost.runner.phases import Observer
from fencepost.scenario.scenario import Scenario

if TYPE_CHECKING:
    from fencepost.checkers.spark.session import Spark

CARD = "card.json"
INTERRUPTED = "the battery was interrupted before it"


class Audience(Protocol):
    """An observer of a battery, such as a display."""

    def note(self, sentence: str) -> None:
        """Something happened that is no situation."""

    def planned(self, chosen: Sequence[Situation], estimate_s: float) -> None:
        """These situations follow, which take about so long."""

    def begins(self, number: int, situation: Situation) -> Observer:
        """A situation begins; returns what observes its run."""

    def ended(self, number: int, row: CardRow) -> None:
        """A situation has a result."""


class Nobody:
    """An observer that does nothing. Satisfies ``Audience``."""

    def note(self, sentence: str) -> None:
        """See ``Audience``."""

    def planned(self, chosen: Sequence[Situation], estimate_s: float) -> None:
        """See ``Audience``."""

    def begins(self, number: int, situation: Situation) -> Observer:
        """See ``Audience``."""
        return lambda progress: None

    def ended(self, number: int, row: CardRow) -> None:
        """See ``Audience``."""


@dataclass(frozen=True)
class Battery:
    """A program, the situations that it is put into, and the place for all of it.

    Attributes:
        folder: gets the card and all run folders.
        where: the back-end and Spark; its ``runs`` is the folder.
    """

    request: BatteryRequest
    chosen: Sequence[Situation]
    seed: int
    folder: Path
    where: RunOptions
    audience: Audience

    def run(self, spark: Spark | None) -> tuple[Program, BatteryLoad, Card]:
        """Learn the program and perform all situations; returns the card, which is also in the folder.

        Once the program is known, Ctrl-C ends it with the card of what there is.

        Raises:
            FencepostError: the program could not be learned.
        """
        cluster = self.where.cluster.for_another_run()
        try:
            program, speed = learning.learn(self.request, cluster, self.folder / "learning", self.audience.note)
        except FencepostError:
            with suppress(OSError):  # logs of the program stay
                self.folder.rmdir()
            raise
        load = BatteryLoad.of(speed, self.request.members, os.cpu_count() or 1)
        self.audience.planned(self.chosen, situations.estimate_s(self.chosen, self.request, program))
        card = self._blank(program, load)
        rows = list(card.rows)
        with _interruptible(), self._one_cluster(program, load) as where:
            for number, situation in enumerate(self.chosen):
                observe = self.audience.begins(number, situation)
                asked = situations.scenario(situation, self.request, program, load)
                rows[number] = row = self._perform(asked, where, rows[number], spark, observe)
                card = replace(card, rows=tuple(rows))
                self._write(card)
                self.audience.ended(number, row)
        self._write(card)
        return program, load, card

    @contextmanager
    def _one_cluster(self, program: Program, load: BatteryLoad) -> Iterator[RunOptions]:
        """Where all runs are performed: if clusters are our own, on one that is started once."""
        own, widest = self.where.cluster, max(self.chosen, key=lambda one: one.spare)
        if not isinstance(own, ManagedBackend):
            yield self.where
            return
        spec = situations.scenario(widest, self.request, program, load).cluster_spec()
        with kept(own, spec, self.audience.note) as cluster:
            yield replace(self.where, cluster=cluster)

    def _perform(
        self, asked: Scenario, where: RunOptions, row: CardRow, spark: Spark | None, observe: Observer
    ) -> CardRow:
        try:
            plan, once = asked.drawn(self.seed), where.once()
            preflight.check([(asked, plan)], once.cluster, once.runs, self.audience.note)
            run, verdict = perform(asked, plan, once, spark, observe)
        except FencepostError as error:
            return replace(row, reason=str(error))
        assert verdict is not None
        return judged(row, run, verdict, once.cluster.prefix)

    def _blank(self, program: Program, load: BatteryLoad) -> Card:
        rule = self.request.rule
        described = {
            "client": f"{program.client} {program.version}".strip(),
            "protocol": program.protocol,
            "topics": ", ".join(program.topics),
            "group": program.group or "unknown",
            "session time-out": f"{program.session_timeout_s:g} s",
            "commits": "its client commits by itself" if program.commits_automatically else "it commits itself",
        }
        if self.request.client:
            del described["commits"]
        rows = [CardRow(one.name, one.title, Result.NOT_SEEN, INTERRUPTED) for one in self.chosen]
        notes = []
        if program.session_s:
            notes.append(f"Its session time-out was replaced by {program.session_s:g} s; nothing else about time was.")
        if program.skips_what_is_there and not self.request.client:
            notes.append(
                "Its group began at the first record (auto.offset.reset=earliest): by its own settings a new group "
                "begins at the end, and records that come before its first assignment are skipped."
            )
        if program.looks_for_partitions and any(one.adds_partitions for one in self.chosen):
            (name,) = program.looks_for_partitions
            notes.append(
                f"When partitions are added, its members look for new ones every {LOOKS_EVERY_S:g} s ({name}); by its "
                "own settings their records may wait for longer."
            )
        return Card(self.request.command, described, load.why, rule, BLIND_SPOTS[rule], tuple(notes), tuple(rows))

    def _write(self, card: Card) -> None:
        with replacing(self.folder / CARD) as draft:
            draft.write_text(json.dumps(card.to_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        card_page.render(self.folder)


def make_folder(runs: Path, command: Sequence[str]) -> Path:
    """A new folder for a battery of this command, below ``runs``. Raises RunFolderError."""
    last = next((word for word in reversed(command) if not word.startswith("-")), "program")
    name = re.sub(r"[^A-Za-z0-9_.]+", "-", Path(last).name).strip("-.")[:40] or "program"
    path = runs.absolute() / f"try-{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        path.mkdir(parents=True)
    except OSError as error:
        raise RunFolderError(f"the folder {path} cannot be made: {error.strerror}; choose another --runs") from error
    return path


@contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        return
