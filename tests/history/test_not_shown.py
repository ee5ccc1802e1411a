"""A cluster of another owner does not show what its brokers record: a promise is judged by the rest of the history.

The verdict lists the kinds that were not judged. Every hand-written history is judged with and without these records.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from fencepost.checkers import oracle
from fencepost.checkers.judge import judge
from fencepost.checkers.tables.reading import BROKERS_RECORDS
from fencepost.evidence.sealing.seal import seal
from fencepost.history import LACKING
from fencepost.model import Check, Severity, Validity, Verdict
from fencepost.model.clients import VERIFIABLE
from fencepost.model.findings import FINDINGS
from history.builder import HistoryBuilder
from history.hand_written import HandWritten, hand_written
from history.test_judge import good_life
from history.test_processing_rules import told

PROMISES = ("delivery", "order", "ownership", "progress", "commits", "rebalances", "outside")
WHY = "the {} of a cluster of others cannot be read"
ATTACHED = ("requests", "metadata")  # what no client can read
# Kinds that are listed for the same reason as another one, without a history of their own here.
LIKE = {
    "missing-effect": "unseen",
    "requeue-missing": "unseen",
    "dead-letter-missing": "unseen",
    "commit-regression": "zombie-commit",  # the writer is unknown, so a move of any program is permitted
}


def hide(run: Path, parts: Collection[str]) -> None:
    """Take these parts away, and note the reason as a run does."""
    for part in parts:
        (run / f"history/coordinator/{part}.jsonl").unlink()
    reasons = {part: WHY.format(part) for part in parts}
    (run / LACKING).write_text(json.dumps({"format_version": 1, "parts": reasons}))


def judge_without(run: Path, to: Path, parts: Collection[str]) -> Verdict:
    """The verdict of a copy of an unsealed history in which these parts are missing."""
    shutil.copytree(run, to)
    if parts:
        hide(to, parts)
    seal(to)
    verdict = judge(to, oracle.detect)
    shutil.rmtree(to)
    return verdict


def more(folder: Path) -> Iterator[HandWritten]:
    """Histories in which a record of a broker is the only sign of a fact."""
    yield HandWritten("the last commit of a dead verifiable-consumer", told(folder / "dead", 2, VERIFIABLE))
    lost = HistoryBuilder(folder / "lost answer", 1)
    lost.write(10)
    a = lost.member(0)
    a.assigned(1)
    a.process(range(4), 2)
    a.commit(4, 2.5)
    a.poll([4, 5, 6], 3)
    a.commit(7, 3.1, outcome=None, accepted=True)
    a.die(3.3)
    yield HandWritten("a commit of unfinished records whose answer is lost", lost)
    fenced = HistoryBuilder(folder / "fenced", 1, classic=True)
    fenced.write(10)
    a, b = fenced.member(0), fenced.member(1)
    a.assigned(1)
    a.process(range(4), 2)
    fenced.join(b, 3.9)
    a.commit(4, 4, outcome="fail", error="ILLEGAL_GENERATION")
    a.process([4, 5], 8)
    fenced.gives(a, 0, 9.6)
    a.close(39)
    yield HandWritten("a commit during a rebalance", fenced)


def is_empty(file: Path) -> bool:
    return not file.read_text().strip()


def with_records(folder: Path, parts: Collection[str]) -> Iterator[tuple[str, Path]]:
    """The hand-written histories in which brokers recorded some of these parts: names, and unsealed run folders."""
    for story in (*hand_written(folder / "cases"), *more(folder / "more")):
        there = {promise["type"] for promise in story.history.promises}
        story.history.promises += [{"type": name} for name in PROMISES if name not in there]
        run = story.history.seal(sealed=False)
        if not all(is_empty(run / f"history/coordinator/{part}.jsonl") for part in parts):
            yield story.name, run


def kinds(check: Check) -> set[str]:
    return {finding.kind for finding in check.findings}


def violated(check: Check) -> set[str]:
    return {finding.kind for finding in check.findings if finding.severity is Severity.VIOLATION}


@pytest.mark.parametrize(
    "parts",
    [ATTACHED, *(pytest.param((part,), marks=pytest.mark.slow) for part in ("offsets", "requests", "metadata"))],
    ids="+".join,
)
def test_without_some_records_nobody_is_accused_and_what_goes_unnoticed_is_listed(
    tmp_path: Path, parts: tuple[str, ...]
) -> None:
    unnoticed: set[str] = set()
    for name, run in with_records(tmp_path / "runs", parts):
        whole, verdict = (judge_without(run, tmp_path / "judged", hidden) for hidden in ((), parts))
        before, after = ({check.check: check for check in v.checks} for v in (whole, verdict))
        for promise in PROMISES:
            was, now = before[promise], after[promise]
            assert violated(now) <= violated(was), (name, promise, now.reason)
            if now.validity is Validity.VALID:
                assert violated(was) <= verdict.unjudged.keys(), (name, promise)
            unnoticed |= kinds(was) - kinds(now)
    declared = {kind.name for kind in FINDINGS.values() if {*parts} & {*kind.hidden_without}}
    assert {LIKE.get(kind, kind) for kind in declared - unnoticed} <= unnoticed, (
        "these kinds are listed as not judged, and no history shows why"
    )


@pytest.fixture
def attached(tmp_path: Path) -> Path:
    """An unsealed history of a correct member of a cluster of others."""
    h = HistoryBuilder(tmp_path / "run", 1, promises=[{"type": name} for name in ("ownership", "commits")])
    good_life(h)
    run = h.seal(sealed=False)
    hide(run, ATTACHED)
    return run


def full(run: Path) -> None:
    """The scenario demands the full evidence."""
    path = run / "scenario.json"
    asked = json.loads(path.read_text())
    asked["scenario"]["evidence"] = "full"
    path.write_text(json.dumps(asked))


def test_a_promise_is_kept_over_what_is_shown_and_the_reason_lists_the_rest(attached: Path) -> None:
    seal(attached)
    verdict = judge(attached, oracle.detect)
    commits = next(check for check in verdict.checks if check.check == "commits")
    assert commits.validity is Validity.VALID
    assert commits.reason.startswith("kept over 1 commits; not judged: ")
    assert "silent-commit-failure" in commits.reason
    assert verdict.unjudged["silent-commit-failure"] == WHY.format("requests")
    history = next(check for check in verdict.checks if check.check == "history")
    assert history.validity is Validity.VALID
    assert WHY.format("metadata") in history.reason
    assert verdict.validity is Validity.VALID


def test_a_scenario_that_demands_the_full_evidence_is_unknown_without_it(attached: Path) -> None:
    full(attached)
    seal(attached)
    verdict = judge(attached, oracle.detect)
    assert {check.check: check.validity for check in verdict.checks} == {
        "faults": Validity.VALID,
        **dict.fromkeys(("history", "ownership", "commits"), Validity.UNKNOWN),
    }
    assert WHY.format("requests") in next(check.reason for check in verdict.checks if check.check == "commits")
    assert verdict.unjudged == {}


def test_a_promise_of_black_boxes_is_unknown_without_the_records_of_brokers(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path / "run", 1, black_box=True, promises=[{"type": "commits"}])
    good_life(h)
    run = h.seal(sealed=False)
    hide(run, ("requests",))
    seal(run)
    verdict = judge(run, oracle.detect)
    commits = next(check for check in verdict.checks if check.check == "commits")
    assert (commits.validity, commits.reason) == (
        Validity.UNKNOWN,
        f"history/coordinator/requests.jsonl: {WHY.format('requests')}",
    )
    assert WHY.format("requests") not in verdict.unjudged.values()  # that is for promises that can be kept without it


def test_records_that_were_there_at_the_seal_and_are_missing_are_damage(attached: Path) -> None:
    requests, reasons = attached / "history/coordinator/requests.jsonl", (attached / LACKING).read_text()
    requests.write_text("")
    seal(attached)
    requests.unlink()
    (attached / LACKING).write_text(reasons)
    verdict = judge(attached, oracle.detect)
    reason = next(check.reason for check in verdict.checks if check.check == "commits")
    assert reason.endswith("it is missing, and it was there when the history was sealed")


def test_a_promise_of_which_every_kind_is_hidden_is_unknown(attached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seal(attached)
    reason = WHY.format("requests")
    monkeypatch.setattr("fencepost.checkers.judge.hidden_kinds", lambda tables: dict.fromkeys(FINDINGS, reason))
    verdict = judge(attached, oracle.detect)
    for check in verdict.checks:
        if check.check in ("ownership", "commits"):
            assert (check.validity, "not all of it can be judged" in check.reason) == (Validity.UNKNOWN, True)


def test_a_part_that_could_not_be_read_is_damage(attached: Path) -> None:
    reasons = {"parts": {"metadata": WHY.format("metadata")}, "failed": {"requests": "the disk was full"}}
    (attached / LACKING).write_text(json.dumps({"format_version": 1, **reasons}))
    seal(attached)
    verdict = judge(attached, oracle.detect)
    commits = next(check for check in verdict.checks if check.check == "commits")
    assert (commits.validity, "the disk was full" in commits.reason) == (Validity.UNKNOWN, True)


def test_only_records_of_brokers_hide_kinds() -> None:
    assert {part for kind in FINDINGS.values() for part in kind.hidden_without} == {*BROKERS_RECORDS}
