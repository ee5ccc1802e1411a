"""What Jepsen's tests of Kafka can report, found here under Jepsen's name, or the reason why it cannot be there.

The list is what ``analysis`` of ``jepsen.tests.kafka`` can put among its errors (and ``checker`` of the Bufstream
suite among the bad ones); the cycles are Elle's.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.checkers import oracle
from fencepost.checkers.counts import Bounds
from fencepost.checkers.explanations import example
from fencepost.checkers.tables import Tables, load
from fencepost.model import Anomaly
from fencepost.model.findings import FINDINGS
from history import test_kinds as stories
from history.builder import HistoryBuilder

JEPSENS = {
    *("duplicate", "duplicate-nonzero", "inconsistent-offsets", "lost-write", "unseen"),
    *("nonmonotonic-poll", "int-nonmonotonic-poll", "poll-skip", "int-poll-skip"),
    *("nonmonotonic-send", "int-nonmonotonic-send", "int-send-skip"),
    *("G1a", "precommitted-read", "G0", "G0-process", "G0-realtime", "G1c", "G1c-process", "G1c-realtime"),
    *("PL-1-cycle-exists", "strong-PL-1-cycle-exists", "PL-2-cycle-exists", "strong-PL-2-cycle-exists"),
}

# Jepsen's name, and the story that shows it.
SHOWN = [
    ("G1a", stories.an_aborted_record),
    ("duplicate", stories.a_send_that_landed_twice),
    ("inconsistent-offsets", stories.an_offset_with_two_contents),
    ("int-nonmonotonic-poll", stories.a_poll_that_goes_back),
    ("int-poll-skip", stories.a_poll_with_a_hole),
    ("lost-write", stories.a_lost_write),
    ("nonmonotonic-poll", stories.a_rewind),
    ("nonmonotonic-poll", stories.a_rewind_by_an_undeclared_seek),
    ("nonmonotonic-send", stories.a_send_that_landed_late),
    ("poll-skip", stories.a_record_skipped),
    ("unseen", stories.a_record_skipped),
    ("unseen", stories.records_left_after_the_drain),
]
TRANSACTIONS = "several operations of one transaction in an order; what a transaction of ours holds is one poll"
CYCLES = "orders between transactions, which no workload has yet; the writes of others may always come between"
NOT_SHOWN = {
    "duplicate-nonzero": "a duplicate, told apart because of one defect of Bufstream at offset 0",
    "int-nonmonotonic-send": TRANSACTIONS,
    "int-send-skip": f"{TRANSACTIONS}; Jepsen always allows it",
    "precommitted-read": TRANSACTIONS,
    **dict.fromkeys((name for name in JEPSENS if name[:2] in ("G0", "PL") or name.startswith("strong")), CYCLES),
    **dict.fromkeys(("G1c", "G1c-process", "G1c-realtime"), CYCLES),
}


def found(folder: Path, story: stories.Story, wrong: bool) -> tuple[Tables, list[Anomaly]]:
    h = HistoryBuilder(folder, 2)
    story(h, wrong)
    run = h.seal()
    tables = load(run)
    return tables, oracle.detect(run, tables, Bounds())[0]


@pytest.mark.parametrize(("name", "story"), SHOWN, ids=lambda of: of if isinstance(of, str) else of.__name__)
def test_it_is_found_under_jepsens_name_and_not_in_the_near_miss(
    tmp_path: Path, name: str, story: stories.Story
) -> None:
    tables, anomalies = found(tmp_path / "wrong", story, True)
    mine = [a for a in anomalies if FINDINGS[a.kind].jepsens(a.cause) == name]
    assert {example(tables, a).get("jepsen", a.kind) for a in mine} == {name}
    _, near_miss = found(tmp_path / "right", story, False)
    assert name not in {FINDINGS[a.kind].jepsens(a.cause) for a in near_miss}


def test_every_kind_of_jepsens_is_shown_or_it_is_said_why_it_cannot_be() -> None:
    shown = {name for name, _ in SHOWN}
    assert (shown | set(NOT_SHOWN), shown & set(NOT_SHOWN)) == (JEPSENS, set())


def test_no_name_is_made_up() -> None:
    names = {kind.jepsens(cause) for kind in FINDINGS.values() for cause in ("", "inside one poll")}
    assert names <= {*JEPSENS, ""}
