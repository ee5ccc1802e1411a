"""The card: its results, its assertions, its pages."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.battery.card import Card, CardRow, Result, remedies
from fencepost.errors import BrokenPromises, UnknownVerdict
from fencepost.model import Finding, Severity, Validity
from fencepost.reports import card_page

KEPT = CardRow("steady", "nothing happens", Result.KEPT, "all valid", records=900, standstill_s=0.5, folder="run-1")
BROKEN = CardRow(
    "crash",
    "a member crashes",
    Result.BROKEN,
    "a promise broken",
    lost=36,
    again=100,
    disruptions=2,
    standstill_s=6.5,
    first_record_s=7.25,
    normal_after_s=None,
    latency={
        "before": {"records": 400, "p50_s": 0.1, "p99_s": 0.21},
        "during": {"records": 900, "p50_s": 2.5, "p99_s": 6.0},
        "after": {"records": 90, "p50_s": 0.1, "p99_s": None},
    },
    rebalances=3,
    records=1500,
    kind="unseen",
    finding="Member-1.1 committed past 36 records.",
    advice=("Commit after processing.",),
    folder="run-2",
)
NOT_SEEN = CardRow("all-down", "the whole group is down", Result.NOT_SEEN, "the battery was interrupted before it")


def card(*rows: CardRow) -> Card:
    return Card(("python", "-m", "shop"), {"client": "aiokafka"}, "The load is 200.", "next-poll", "Blind.", (), rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "card.json").write_text(json.dumps(card(KEPT, BROKEN, NOT_SEEN).to_json()))
    return tmp_path


@pytest.mark.parametrize(
    ("rows", "validity"),
    [
        ((KEPT,), Validity.VALID),
        ((KEPT, NOT_SEEN), Validity.UNKNOWN),
        ((KEPT, NOT_SEEN, BROKEN), Validity.INVALID),
        ((), Validity.UNKNOWN),
    ],
)
def test_a_card_is_as_good_as_its_worst_row(rows: tuple[CardRow, ...], validity: Validity) -> None:
    assert card(*rows).validity is validity


def test_it_is_the_same_after_json() -> None:
    one = card(KEPT, BROKEN, NOT_SEEN)
    assert Card.from_json(json.loads(json.dumps(one.to_json()))) == one


def test_an_assertion_names_the_situation() -> None:
    card(KEPT)["steady"].must_be_kept()
    with pytest.raises(BrokenPromises, match=r"crash \(a member crashes\): broken: Member-1.1 committed past 36"):
        card(KEPT, BROKEN)["crash"].must_be_kept()
    with pytest.raises(UnknownVerdict, match=r"all-down .*interrupted"):
        card(NOT_SEEN)["all-down"].must_be_kept()


def test_the_assertion_of_the_card_has_a_line_for_each_situation_that_was_not_kept() -> None:
    card(KEPT).must_keep_its_promises()
    with pytest.raises(BrokenPromises) as broken:
        card(KEPT, BROKEN, NOT_SEEN).must_keep_its_promises()
    assert [line.split(" (")[0] for line in str(broken.value).splitlines()] == ["crash", "all-down"]
    with pytest.raises(UnknownVerdict):
        card(KEPT, NOT_SEEN).must_keep_its_promises()


def test_what_to_change_is_the_remedy_of_the_worst_kinds() -> None:
    found = [Finding(kind, Severity.VIOLATION, 1) for kind in ("unconsumed", "commit-ahead", "unseen", "phantom")]
    first, second = remedies(found)
    assert first.startswith("Commit an offset only once everything below it is done: also in the revoked callback")
    assert second.startswith("Commit an offset only once everything below it is done. If records")
    assert remedies([Finding("phantom", Severity.VIOLATION, 1)]) == []


def test_the_numbers_of_a_row_are_text_and_what_was_not_measured_is_a_dash() -> None:
    assert card_page.cells(BROKEN.to_json()) == [
        *("36", "100 (50 each)", "6.5 s", "7.2 s", "–", "0.2 → 6.0 → – s", "3")
    ]
    assert card_page.cells(NOT_SEEN.to_json()) == ["–"] * 7


def test_the_pages_say_what_the_card_says(folder: Path) -> None:
    page = card_page.render(folder).read_text()
    for text in ("1 kept, 1 broken, 1 not seen", "Member-1.1 committed past 36 records.", "run-2/report.html"):
        assert text in page
    markdown = (folder / "card.md").read_text()
    assert "| a member crashes | ✕ broken | 36 | 100 (50 each) | 6.5 s | 7.2 s | – | 0.2 → 6.0 → – s | 3 |" in markdown
    assert "**the whole group is down**: the battery was interrupted before it" in markdown


def test_names_of_a_program_are_text_on_the_page(folder: Path) -> None:
    hostile = card(replace(BROKEN, finding="<script>alert(1)</script>", folder="<b>"))
    (folder / "card.json").write_text(json.dumps(hostile.to_json()))
    page = card_page.render(folder).read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert 'href="%3Cb%3E/report.html"' in page
