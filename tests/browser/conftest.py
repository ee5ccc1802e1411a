"""A headless Chromium for the tests of pages, and the made-up runs that they draw."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "unit"))

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET = ("--disable-gpu", "--disable-background-networking", "--disable-component-update", "--no-first-run")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A browser; without one the test is skipped with the reason."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    if executable() is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on the path, and FENCEPOST_CHROMIUM is not set")
    with playwright.sync_playwright() as driver:
        browser = launch(driver)
        yield browser
        browser.close()


def executable() -> str | None:
    """The path of the browser that this machine has."""
    return os.environ.get("FENCEPOST_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def launch(driver: Any) -> Any:
    """Start the browser of this machine."""
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    return driver.chromium.launch(executable_path=executable(), args=[*sandbox, *QUIET])
