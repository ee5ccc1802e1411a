"""The card of a program in a real browser: offline, readable on a phone and on paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from unit.battery.test_card import BROKEN, KEPT, NOT_SEEN, card

from fencepost.reports import card_page

pytestmark = pytest.mark.browser
WITHIN_MS = 20_000


@pytest.fixture
def page(chromium: Any, tmp_path: Path) -> Any:
    (tmp_path / "card.json").write_text(json.dumps(card(KEPT, BROKEN, NOT_SEEN).to_json()))
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.asked, page.said = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.goto(card_page.render(tmp_path).as_uri(), timeout=WITHIN_MS)
    yield page
    context.close()


def test_it_opens_without_a_request_or_a_complaint_and_leads_to_the_runs(page: Any) -> None:
    assert page.asked == [page.url]
    assert page.said == []
    links = page.locator("table.situations a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert links == ["run-1/report.html", "run-2/report.html"]


@pytest.mark.parametrize("width", [360, 640, 800, 1280])
def test_it_is_as_wide_as_the_screen_and_no_number_is_hidden(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for row in page.locator("table.situations tbody tr:not(.finding)").all():
        cells = [box for cell in row.locator("td").all() if (box := cell.bounding_box())]
        assert len(cells) == len(card_page.COLUMNS) - 1
        assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in cells)


def test_on_a_phone_each_number_has_its_name(page: Any) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    shown = page.locator("td[data-column=standstill]").first.evaluate(
        "cell => getComputedStyle(cell, '::before').content"
    )
    assert "standstill" in shown or "attr(data-column)" in shown
    assert not page.locator("table.situations thead").is_visible()


def test_on_paper_the_findings_are_there(page: Any) -> None:
    page.emulate_media(media="print")
    assert page.get_by_text("Member-1.1 committed past 36 records.").is_visible()
    assert page.locator("table.situations thead").is_visible()
