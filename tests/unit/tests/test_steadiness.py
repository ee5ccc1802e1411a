"""A test of real parts is tried again where the host was not steady, and only there; what it failed with is shown."""

import json

import pytest
from steadiness import REPEATS

from fencepost.clock import now_ns
from fencepost.evidence import host_monitor

CONFTEST = """
import steadiness

def pytest_configure(config):
    config.addinivalue_line("markers", "cluster: needs a real Kafka cluster")
    config.pluginmanager.register(steadiness.Steadiness())
"""
TESTS = """
import pytest

tries = []

@pytest.mark.cluster
def test_of_real_parts():
    tries.append(1)
    assert len(tries) > {failures}, "it was not there yet"

def test_of_words():
    assert False, "words do not get better"
"""


@pytest.fixture
def outcomes(pytester, monkeypatch):
    """How these tests end where the witness of the host says these lines."""

    def ended(failures, *lines):
        class Written:
            def stop(self):
                pass

        def start(owner, into):
            (into / host_monitor.FILE).write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"torn')
            return Written()

        monkeypatch.setattr(host_monitor, "start", start)
        pytester.makeconftest(CONFTEST)
        pytester.makepyfile(TESTS.format(failures=failures))
        run = pytester.runpytest_inprocess("--rerun-show-tracebacks", "-p", "no:cacheprovider")
        counted = run.parseoutcomes()
        counted.pop("warnings", None)  # of modules that were imported before, which depends on who runs this
        return counted, run.stdout

    return ended


def stall(at_s):
    return {"kind": "stall", "why": "steal", "from_ns": 0, "to_ns": now_ns() + int(at_s * 1e9)}


def test_on_a_steady_host_nothing_is_tried_again(outcomes):
    counted, _ = outcomes(1, stall(-1))
    assert counted == {"failed": 2}


def test_where_the_host_stood_still_it_is_tried_again_and_the_failure_shown(outcomes):
    counted, reported = outcomes(1, stall(100))
    assert counted == {"failed": 1, "passed": 1, "rerun": 1}
    reported.fnmatch_lines(["*rerun test summary*", "*it was not there yet*"])


def test_it_is_not_tried_for_ever(outcomes):
    counted, _ = outcomes(REPEATS + 1, stall(100))
    assert counted == {"failed": 2, "rerun": REPEATS}
