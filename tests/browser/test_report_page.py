"""The report in a real browser: offline, inert, readable at first sight, usable with keys and on narrow screens."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import report_runs as runs

from fencepost.reports import folder, html, run_timeline

pytestmark = pytest.mark.browser
OPENS_WITHIN_MS = 20_000  # the goal is 2 s; a busy machine must not fail the test
EVIL = "</title></script><img src=x onerror='window.hacked=1'><script>window.hacked=1</script><svg/onload=hacked=1>"
Open = Callable[..., Any]


@pytest.fixture
def opened(chromium: Any) -> Iterator[Open]:
    """Opens a run's report; collects what the page asks for and complains of in ``page.asked`` and ``page.said``."""
    contexts = []

    def open_(run: Path, **options: Any) -> Any:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        contexts.append(context)
        page = context.new_page()
        page.asked, page.said = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("dialog", lambda dialog: (page.said.append("dialog"), dialog.dismiss()))
        page.goto(html.render(run).as_uri(), timeout=OPENS_WITHIN_MS)
        return page

    yield open_
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def invalid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.invalid_run(tmp_path_factory.mktemp("runs") / "invalid")


@pytest.fixture
def page(opened: Open, invalid: Path) -> Any:
    return opened(invalid)


def test_it_opens_from_a_file_without_a_request_or_a_complaint(page: Any, invalid: Path) -> None:
    assert page.asked == [(invalid / "report.html").as_uri()]
    assert page.said == []


def test_verdict_and_worst_finding_are_in_the_first_screen(page: Any) -> None:
    for part in (page.locator("#verdict .word"), page.locator("#worst .sentence"), page.locator("dl.key")):
        box = part.bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 800
    assert page.locator("#verdict .word").inner_text() == "✕ INVALID"
    assert "offset 4711 of orders-7" in page.locator("#worst").inner_text()


def test_the_timeline_has_a_visible_bar_for_every_interval_of_ownership(page: Any, invalid: Path) -> None:
    intervals = run_timeline.build(folder.read(invalid)).intervals
    bars = page.locator("#plot g.own")
    assert bars.count() == len(intervals)
    titles = bars.locator("title").all_text_contents()
    assert all(any(f"{i.partition}: " in t and f"owned by {i.owner}," in t for t in titles) for i in intervals)
    widths = page.eval_on_selector_all("#plot g.own > rect:first-of-type", "bars => bars.map(b => b.getBBox().width)")
    assert min(widths) > 1


def test_every_link_inside_the_page_leads_somewhere(page: Any) -> None:
    dead = page.evaluate(
        "() => [...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.getAttribute('href').slice(1))"
        ".filter(id => !document.getElementById(id))"
    )
    assert dead == []


@pytest.mark.parametrize("scripts", [True, False])
def test_hostile_strings_stay_text(opened: Open, tmp_path: Path, scripts: bool) -> None:
    finding = runs.lost(topic=EVIL, sentence=EVIL)
    reported = runs.verdict(EVIL, runs.checks("invalid", finding))
    run = runs.write_run(tmp_path / "run", reported, runs.group_history(EVIL, EVIL), name=EVIL, topic=EVIL)
    page = opened(run, java_script_enabled=scripts)
    assert page.locator("h1").inner_text() == EVIL
    assert page.locator("#worst .sentence").inner_text() == EVIL
    assert page.locator("img").count() == 0
    assert page.said == []
    assert len(page.asked) == 1
    if scripts:
        assert page.evaluate("window.hacked") is None


def test_even_an_injected_script_would_not_run_nor_load(page: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        page.evaluate(INTRUDER, f"http://127.0.0.1:{server.getsockname()[1]}/x")
        with pytest.raises(BlockingIOError):
            server.accept()
    assert page.evaluate("window.hacked") is None
    assert sum("Content Security Policy" in said for said in page.said) == 2


def test_zooming_with_a_key_widens_the_picture_and_back(page: Any) -> None:
    page.locator("#window").focus()
    before = page.locator("#plot").bounding_box()["width"]
    page.keyboard.press("+")
    page.keyboard.press("+")
    assert page.locator("#plot").bounding_box()["width"] == pytest.approx(4 * before, rel=0.01)
    page.keyboard.press("0")
    assert page.locator("#plot").bounding_box()["width"] == pytest.approx(before, rel=0.01)


def test_a_finding_leads_to_its_place_on_the_timeline(page: Any) -> None:
    page.locator("#violation-1 a.jump").click()
    window, mark = page.locator("#window").bounding_box(), page.locator("#plot g.accused").bounding_box()
    assert window["x"] <= mark["x"]
    assert mark["x"] + mark["width"] <= window["x"] + window["width"]
    assert mark["width"] > 200


def test_a_link_into_something_folded_unfolds_it(opened: Open, invalid: Path) -> None:
    page = opened(invalid)
    assert not page.locator("#permitted-1").is_visible()
    page.evaluate("location.hash = 'permitted-1'")
    page.locator("#permitted-1").wait_for(state="visible", timeout=5000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen_never_scrolls_sideways(opened: Open, invalid: Path, scheme: str) -> None:
    page = opened(invalid, viewport={"width": 390, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_the_contrast_of_wcag_aa(opened: Open, invalid: Path, scheme: str) -> None:
    page = opened(invalid, color_scheme=scheme)
    pale = page.evaluate(CONTRAST)
    assert pale == []


def test_it_prints(opened: Open, invalid: Path) -> None:
    page = opened(invalid, color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(21, 24, 27)"
    assert len(page.pdf(format="A4")) > 50_000


@pytest.mark.slow
def test_a_million_record_run_opens(opened: Open, tmp_path: Path) -> None:
    page = opened(runs.huge_run(tmp_path / "run"))
    assert page.said == []
    assert "1,000,000" in page.locator("dl.key").inner_text()
    assert page.locator("p.aggregated").count() >= 1


INTRUDER = """(url) => new Promise((done) => {
  const script = document.createElement("script"), image = new Image();
  script.textContent = "window.hacked = 1";
  image.onerror = image.onload = done;
  setTimeout(done, 3000);
  image.src = url;
  document.body.append(script, image);
})"""

# Every text that is shown, against the nearest background: those under 4.5 to 1.
CONTRAST = """() => {
  const parse = (colour) => {
    const [r, g, b, alpha = 1] = colour.match(/[\\d.]+/g).map(Number);
    return colour.startsWith("color(") ? [r * 255, g * 255, b * 255, alpha] : [r, g, b, alpha];
  };
  const linear = (v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => .2126 * linear(r / 255) + .7152 * linear(g / 255) + .0722 * linear(b / 255);
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const colour = parse(getComputedStyle(element).backgroundColor);
      if (colour[3] > .99) return colour;
    }
    return [255, 255, 255, 1];
  };
  const pale = new Set();
  for (const element of document.querySelectorAll("body *:not(svg):not(svg *):not(script)")) {
    if (![...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())) continue;
    const lights = [light(parse(getComputedStyle(element).color)), light(ground(element))].sort((a, b) => a - b);
    const ratio = (lights[1] + .05) / (lights[0] + .05);
    if (ratio < 4.5) pale.add(`${element.tagName}.${element.className} ${ratio.toFixed(2)}`);
  }
  return [...pale];
}"""
