"""Verdicts that no change of the code may change: run folders and hand-written histories, each with what was found.

A run is kept as ``runs/<scenario>.tar.xz``, with the files that the judge reads and nothing else, and its verdict as
``runs/<scenario>.json``; ``stories.json`` has the verdicts of the hand-written histories. They say what was found and
how severe it is, in no words that may be improved. A verdict that is there is never made anew::

    PYTHONPATH=tests python -m corpus.frozen build/runs/*   # adds runs, each under the name of its scenario
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from history.approved import PROMISES
from history.builder import HistoryBuilder
from history.test_commit_kinds import STORIES
from history.test_kinds import Story

from fencepost.checkers import oracle
from fencepost.checkers.counts import Bounds, JudgedCounts
from fencepost.checkers.judge import Detector, judge
from fencepost.checkers.spark.detector import find_here
from fencepost.checkers.tables import Tables
from fencepost.history import LACKING
from fencepost.history.run_folder import RunFolder, judged_files
from fencepost.model import Anomaly
from fencepost.model.findings import FORMER

RUNS = Path(__file__).with_name("runs")
STORIES_FROZEN = Path(__file__).with_name("stories.json")
BESIDE = ("history/seal.json", LACKING)  # the judge reads them, though they are no part of the history
RENAMED = FORMER  # kinds of findings: their names when they were frozen, and those of today

Frozen = dict[str, Any]


def verdict(run: Path, finder: Detector = find_here) -> Frozen:
    """What is found in a run folder, and how it is judged: kinds, counts, severities, members and places."""
    anomalies: list[Anomaly] = []

    def recording(run: Path, tables: Tables, bounds: Bounds) -> tuple[list[Anomaly], JudgedCounts]:
        found, facts = finder(run, tables, bounds)
        anomalies.extend(found)
        return found, facts

    judged = judge(run, recording)
    checks = {
        check.check: {
            "validity": str(check.validity),
            "findings": sorted([finding.kind, str(finding.severity), finding.count] for finding in check.findings),
        }
        for check in judged.checks
    }
    places = ([a.kind, [*a.members], f"{a.topic}-{a.partition}", a.first_offset, a.last_offset] for a in anomalies)
    return {"validity": str(judged.validity), "checks": checks, "places": sorted(places)}


def today(frozen: Frozen) -> Frozen:
    """A verdict with the names that its kinds have today."""
    text = json.dumps(frozen)
    for old, new in RENAMED.items():
        text = text.replace(f'["{old}"', f'["{new}"')
    named: Frozen = json.loads(text)
    for check in named["checks"].values():
        check["findings"].sort()
    named["places"].sort()
    return named


def unpacked(archive: Path, into: Path) -> Path:
    """The run folder of an archive, below ``into``."""
    run = into / archive.name.removesuffix(".tar.xz")
    with tarfile.open(archive) as files:
        files.extractall(run, filter="data")
    return run


def add(run: Path) -> str:
    """Keep a run folder and its verdict under the name of its scenario, which is returned.

    Raises:
        FileExistsError: there is one of that name.
        ValueError: the judge reads more of it than what would be kept.
    """
    name = str(RunFolder.open(run).read_json("scenario.json")["scenario"]["name"]).replace(" ", "_")
    if (RUNS / f"{name}.tar.xz").exists():
        raise FileExistsError(f"a run of {name} is kept, and its verdict is not made anew")
    names = sorted({*judged_files(run), *(beside for beside in BESIDE if (run / beside).exists())})
    with tempfile.TemporaryDirectory(dir=RUNS) as folder:
        with tarfile.open(Path(folder, f"{name}.tar.xz"), "x:xz", preset=9) as archive:
            for file in names:
                archive.add(run / file, file, filter=_anonymous)
        frozen = verdict(unpacked(Path(folder, f"{name}.tar.xz"), Path(folder)))
        if frozen != verdict(run):
            raise ValueError(f"{run}: the judge reads more of it than what is kept")
        (RUNS / f"{name}.json").write_text(_text(frozen), encoding="utf-8")
        Path(folder, f"{name}.tar.xz").rename(RUNS / f"{name}.tar.xz")
    return name


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The file, whoever made it."""
    return member.replace(deep=False, mtime=0, mode=0o644, uid=0, gid=0, uname="", gname="")


def ways(story: Story) -> dict[str, tuple[Story, bool, bool]]:
    """The four ways in which a hand-written history is told: wrong or a near miss, by the classic protocol or not."""
    sorts, protocols = (("wrong", True), ("near-miss", False)), (("classic", True), ("consumer", False))
    return {f"{sort}-{name}": (story, wrong, classic) for sort, wrong in sorts for name, classic in protocols}


def verdict_of(story: Story, wrong: bool, classic: bool, folder: Path) -> Frozen:
    """What the specification says of a hand-written history."""
    history = HistoryBuilder(folder, 2, promises=PROMISES, classic=classic)
    story(history, wrong)
    return verdict(history.seal(), oracle.detect)


def _text(frozen: Frozen) -> str:
    return json.dumps(frozen, indent=None, separators=(",", ":")) + "\n"


def main() -> None:
    """Add the runs that are named, and the verdicts of the stories that have none."""
    for folder in map(Path, sys.argv[1:]):
        print("added", add(folder))
    known: dict[str, Frozen] = json.loads(STORIES_FROZEN.read_text()) if STORIES_FROZEN.exists() else {}
    for story in STORIES:
        for name, way in ways(story).items():
            if f"{story.__name__}/{name}" not in known:
                with tempfile.TemporaryDirectory() as folder:
                    known[f"{story.__name__}/{name}"] = verdict_of(*way, Path(folder))
    lines = ",\n".join(f"{json.dumps(name)}: {_text(known[name]).strip()}" for name in sorted(known))
    STORIES_FROZEN.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
