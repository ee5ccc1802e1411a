"""The picture in the README: the verdict and the timeline of a report, without the sections between them.

Run it as ``PYTHONPATH=tests python -m browser.picture RUN/report.html docs/failing-report.png``; the picture shows the
run ``commit_too_early``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from browser.conftest import launch

HIDDEN = "nav, footer, .tools, section:not(#verdict, #timeline), #timeline details { display: none !important }"


def draw(report: Path, picture: Path) -> None:
    """Write the picture of ``report``, a PNG that is as wide as a column of text."""
    with sync_playwright() as driver:
        browser = launch(driver)
        look = {"viewport": {"width": 1060, "height": 600}, "device_scale_factor": 1.25, "color_scheme": "light"}
        page = browser.new_page(bypass_csp=True, **look)
        page.goto(report.resolve().as_uri())
        page.add_style_tag(content=HIDDEN)
        page.screenshot(path=picture, full_page=True)
        browser.close()


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
