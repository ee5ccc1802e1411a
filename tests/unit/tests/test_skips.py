"""On CI nothing of our own may be skipped: a missing part is a failure there, not a green run."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = (Path(__file__).parents[2] / "conftest.py").read_text().replace('pytest_plugins = ["pytester"]', "")
TESTS = """
import pytest

@pytest.mark.cluster
def test_cluster(): pytest.skip("no Java here")

@pytest.mark.browser
@pytest.mark.skipif(True, reason="no Chromium here")
def test_browser(): pass

@pytest.mark.spark
@pytest.mark.xfail(reason="known")
def test_known(): assert False

def test_other(): pytest.skip("another system")
"""


@pytest.mark.parametrize(("ci", "failed", "errors", "skipped"), [("true", 1, 2, 1), ("", 0, 0, 4)])
def test_a_skipped_test_of_ours_fails_on_ci_alone(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, ci: str, failed: int, errors: int, skipped: int
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("CI", ci)
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    pytester.makeini("[pytest]\nmarkers =\n    cluster\n    browser\n    spark\n    chaos")
    pytester.makepyfile(test_whole="import pytest; pytest.importorskip('no_such_library')")
    result = pytester.runpytest_inprocess("--continue-on-collection-errors")
    result.assert_outcomes(failed=failed, errors=errors, skipped=skipped, xfailed=1)
    if ci:
        result.stdout.fnmatch_lines(["*skipped on CI, where every cluster test must run: *no Java here*"])
