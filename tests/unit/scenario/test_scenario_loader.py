"""The scenarios that come with Fencepost: each says what it shows, and can be performed."""

from __future__ import annotations

import re

import pytest

from fencepost.reports.glossary import GLOSSARY
from fencepost.scenario import loader


@pytest.mark.parametrize("name", loader.built_in())
def test_a_built_in_scenario_says_what_it_shows_and_has_a_plan(name: str) -> None:
    scenario = loader.load(name)
    assert scenario.name.replace(" ", "_") == name
    assert scenario.about.endswith(".")
    assert "  " not in scenario.about
    assert set(re.findall("`([^`]*)`", scenario.about)) <= set(GLOSSARY), "it names kinds of findings, and nothing else"
    assert scenario.plan(1) == scenario.plan(1)


def test_no_two_show_the_same() -> None:
    abouts = [loader.load(name).about for name in loader.built_in()]
    assert len(set(abouts)) == len(abouts)
