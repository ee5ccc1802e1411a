"""The pages of the project lead where they say: links, their anchors, and the files that are named."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from fencepost import checkers, faults, workloads
from fencepost.model.findings import FINDINGS

TOP = Path(__file__).parent.parent
README = TOP / "README.md"
PAGES = [README, TOP / "CHANGELOG.md", *sorted((TOP / "docs").glob("*.md"))]
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
PAGES_WITH_NAMES = ("write-a-scenario", "read-a-report")  # of all faults, workloads and promises
NAMED = re.compile(r"`((?:harness|faults|workloads|checkers|docker|docs|tests)/[\w./-]*)`")


def anchors(page: str) -> set[str]:
    """What one may link to in a page, as GitHub names its headings."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: Path) -> list[str]:
    dead = []
    for link in LINK.findall(page.read_text()):
        file, _, anchor = link.partition("#")
        leads_to = page.parent / file if file else page
        if not leads_to.exists() or (anchor and anchor not in anchors(leads_to.read_text())):
            dead.append(link)
    return dead


def missing_names(text: str) -> list[str]:
    """The faults, workloads and promises that ``text`` does not name."""
    stems = [re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in faults.__all__]
    missing = [stem for stem in stems if f"`{stem}`" not in text]
    return missing + [name for name in (*workloads.__all__, *checkers.__all__) if not re.search(rf"`{name}[`(]", text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_leads_where_it_says(page: Path) -> None:
    assert dead_links(page) == []
    assert [name for name in NAMED.findall(page.read_text()) if not (TOP / name).exists()] == []


def test_each_fault_workload_and_promise_is_on_the_page_about_scenarios_or_reports() -> None:
    assert missing_names("".join((TOP / "docs" / f"{name}.md").read_text() for name in PAGES_WITH_NAMES)) == []


def test_the_readme_takes_ten_minutes_and_leads_to_every_page() -> None:
    assert len(README.read_text().splitlines()) <= 220
    leads_to = {link.partition("#")[0] for link in LINK.findall(README.read_text())}
    assert {str(page.relative_to(TOP)) for page in PAGES[1:]} <= leads_to


def test_the_newest_version_of_the_changelog_is_that_of_the_project() -> None:
    newest, *_ = re.findall(r"^## \[(\d[\d.]*)\]", (TOP / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest == tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["version"]


def test_dead_links_and_missing_names_are_found(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("# One\n\n## Two, and `three`\n\n[a](#two-and-three) [b](#three) [c](gone.md) [d](README.md#one)\n")
    assert dead_links(page) == ["#three", "gone.md"]
    assert {"pause", "Transform", "Order"} <= set(missing_names("`paused` `Transforms` Order"))


def test_the_page_lists_the_kinds_that_go_unnoticed_in_each_environment() -> None:
    page = (TOP / "docs/choose-a-back-end.md").read_text()
    listed = re.findall(r"^\| `(\S+)` \| (\w+) \| (\w+) \| (\w+) \| (\w+) \|$", page, re.MULTILINE)
    hidden = [set[str](), set[str](), {"requests", "metadata"}, {"requests", "metadata", "offsets"}]
    kinds = [kind for kind in FINDINGS.values() if kind.hidden_without]
    assert listed == [
        (kind.name, *("some" if records & {*kind.hidden_without} else "all" for records in hidden)) for kind in kinds
    ]
