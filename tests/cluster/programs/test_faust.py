"""A service on faust-streaming, which reads aiokafka below its public calls and has an assignor of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cluster.plans import topic
from cluster.user_programs import EFFECTS, broken, performed
from fencepost import Group, Scenario, at
from fencepost.checkers import Commits, Delivery, Effects, Ownership, Progress
from fencepost.clusters import cache
from fencepost.clusters.kafka import provision
from fencepost.errors import ProvisionError
from fencepost.faults import Kill
from fencepost.model import Validity
from fencepost.targets import one_member
from fencepost.workloads import OwnProgram

pytestmark = pytest.mark.cluster

RELEASE = "faust-streaming==0.15.3"
PROGRAM = """
import sys
import faust

told = open("told", "a", buffering=1)
app = faust.App(
    "shop", broker="kafka://kafka.shop.internal:9092", key_serializer="raw", value_serializer="raw", store="memory://",
    topic_disable_leader=True, consumer_auto_offset_reset="earliest", broker_commit_interval=0.5,
    broker_session_timeout=6.0, broker_heartbeat_interval=1.0, stream_wait_empty=False, web_enabled=False,
)
topic = app.topic("orders", key_serializer="raw", value_serializer="raw")

@app.agent(topic)
async def price(stream):
    async for event in stream.events():
        print(event.message.topic, event.message.partition, event.message.offset, file=told)

if __name__ == "__main__":
    sys.argv = [sys.argv[0], "worker", "-l", "warn", "--without-web"]
    app.main()
"""


@pytest.fixture(scope="module")
def python() -> str:
    """Of an environment with that release, made once and kept in the cache."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"

    def make(into: Path) -> None:
        provision.run([sys.executable, "-m", "venv", str(into)], into.parent, {})
        provision.run([str(into / "bin" / "pip"), "install", "--quiet", RELEASE], into.parent, {"PYTHONPATH": ""})

    try:
        return str(cache.install(f"program-{RELEASE.replace('==', '-')}-python{version}", make) / "bin" / "python")
    except ProvisionError as error:
        pytest.skip(str(error))


def test_what_faust_reads_is_recorded_and_a_member_that_dies_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str
) -> None:
    for name, text in (("program.py", PROGRAM), ("fakes.py", EFFECTS), ("told", "")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    asked = Scenario(
        "a service on faust-streaming",
        [topic("orders", 4)],
        brokers=1,
        group=Group(
            command=[python, "program.py"],
            client="aiokafka",
            members=2,
            protocol="eager",
            config={"session.timeout.ms": 6000},
        ),
        workload=OwnProgram(processed="effect", effects="fakes:told", rate_hz=100),
        schedule=[at(3, Kill(), one_member(), heal_after=1)],
        promises=(
            Delivery("at-least-once"),
            Ownership(of="assignment"),
            Commits(),
            Progress(within_s=30),
            Effects("at-least-once"),
        ),
        min_records=1000,
    )
    _, verdict = performed(asked, tmp_path)
    assert broken(verdict) <= {"rewind"}  # it moves its position back by itself as a rebalance ends
    history = next(check for check in verdict.checks if check.check == "history")
    assert (history.validity, history.facts_judged >= 1000) == (Validity.VALID, True)
