"""What libraries log while they work for Fencepost is not shown; the same from a user's own code is."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator

import pytest
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataRequest

from fencepost.clusters.admin.connections import Connections
from fencepost.console import library_logs
from fencepost.model.endpoint import Endpoint

SLOW = "blocking the event loop"
IN_A_PROCESS_OF_ITS_OWN = """
import logging
from fencepost.console import library_logs
code = compile("def warn(): logging.getLogger('urllib3.connectionpool').warning('from inside')", "x", "exec")
with library_logs.quiet():
    exec(code, {"__name__": "fencepost.x", "logging": logging} | (inside := {}), inside)
    inside["warn"]()
    logging.getLogger("urllib3.connectionpool").warning("from outside")  # urllib3 asks for handlers
logging.getLogger("fencepost.runner").warning("our own")
"""


@pytest.fixture(autouse=True)
def every_step_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """kafka-python warns of each step of its event loops that takes longer; a busy machine is enough for that."""
    monkeypatch.setitem(NetworkSelector.DEFAULT_CONFIG, "slow_task_threshold_secs", 1e-9)


@pytest.fixture
def nobody() -> Iterator[Endpoint]:
    """An address at which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield Endpoint(*bound.getsockname())


def test_nothing_of_an_administrators_client_is_shown(nobody: Endpoint, caplog: pytest.LogCaptureFixture) -> None:
    with library_logs.quiet():
        connections = Connections({1: nobody})
    assert connections.request_once(1, MetadataRequest()) is None
    connections.close()
    assert caplog.records == []


def test_what_a_client_of_the_user_says_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    with library_logs.quiet():
        pass
    net = NetworkSelector()
    net.start()

    async def step() -> None:
        return None

    net.run(step)
    net.close()
    assert SLOW in caplog.text


def test_it_is_there_as_detail(nobody: Endpoint, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "fencepost.library_logs")
    with library_logs.quiet():
        connections = Connections({1: nobody})
    connections.close()
    assert {record.levelno for record in caplog.records if SLOW in record.getMessage()} == {logging.DEBUG}


@pytest.mark.parametrize("configured", [True, False])
def test_a_terminal_shows_nothing_that_a_library_logs_for_us(configured: bool) -> None:
    program = (
        "import logging\nlogging.basicConfig(format='%(message)s')" if configured else ""
    ) + IN_A_PROCESS_OF_ITS_OWN
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == (["from outside", "our own"] if configured else ["our own"])


def test_warnings_of_libraries_are_no_errors_of_a_test() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with library_logs.quiet():
            warnings.warn("of a library", stacklevel=1)
        with pytest.raises(UserWarning, match="of the test"):
            warnings.warn("of the test", stacklevel=1)
