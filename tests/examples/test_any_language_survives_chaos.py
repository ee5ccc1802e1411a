"""Chaos tests of a service in another language: ``apps/stock``, in Go with franz-go. The same binary is judged by what
it tells as JSON lines, and as a black box by what brokers see of it."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost import Group, Scenario, Topic, at, past_session
from fencepost.checkers import Commits, Delivery, Outside, Ownership, Progress
from fencepost.errors import BrokenPromises
from fencepost.faults import Kill, Pause
from fencepost.targets import one_member
from fencepost.workloads import OwnProgram

STOCK = Path(__file__).parent / "apps" / "stock"
BUILD_S = 300  # of all modules, on a busy machine
ASK = ["-brokers", "{bootstrap}", "-group", "{group}", "-topic", "{topics}", "-client-id", "{client_id}"]
LINES = Scenario(
    name="stock in Go, by its lines, while a member is a zombie, and while one is killed",
    topics=[Topic("orders", partitions=4, replication_factor=1)],
    brokers=1,
    group=Group(command=["stock", *ASK, "-lines"], client="json-lines", members=2, config={"session.timeout.ms": 6000}),
    workload=OwnProgram("told", payload="shop.fakes:order", rate_hz=200),
    schedule=[
        at(1, Pause(), one_member(), heal_after=past_session(1.5), expect="fenced"),
        at(13, Kill(), one_member(), heal_after=1),
    ],
    promises=[Delivery("at-least-once"), Ownership(of="assignment"), Commits(), Progress(within_s=30)],
    min_records=500,
)
BLACK_BOX = replace(
    LINES,
    name="stock in Go, a black box, while a member is a zombie, and while one is killed",
    group=replace(LINES.group, command=["stock", *ASK], client="black-box"),
    workload=replace(LINES.workload, processed="unknown"),
    promises=[Outside(within_s=30)],
)


@pytest.fixture(scope="session")
def stock(tmp_path_factory):
    """The service, built."""
    asked = re.search(r"^go (1\.(\d+))", (STOCK / "go.mod").read_text(), re.MULTILINE)
    go = shutil.which("go")
    has = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout if go else ""
    release = re.match(r"go1\.(\d+)", has)
    if not release or int(release[1]) < int(asked[2]):
        pytest.skip(f"a service in Go needs Go {asked[1]} or later, but there is {has.strip() or 'none'}")
    built = tmp_path_factory.mktemp("stock") / "stock"
    build = [go, "build", "-buildvcs=false", "-o", built, "."]  # it is nobody's release
    subprocess.run(build, cwd=STOCK, timeout=BUILD_S, check=True)
    return built


@pytest.fixture
def journal(stock, tmp_path, monkeypatch):
    """Where services are started, and what they write."""
    monkeypatch.chdir(STOCK.parent)
    return tmp_path / "stock.journal"


def of(scenario, stock, journal, *options):
    """The scenario with the service, wherever it was built."""
    _, *rest = scenario.group.command
    command = [str(stock), *rest, "-journal", str(journal), *options]
    return replace(scenario, group=replace(scenario.group, command=command))


@pytest.mark.chaos
@pytest.mark.timeout(180 + BUILD_S)
@pytest.mark.parametrize(
    "scenario", [LINES, pytest.param(BLACK_BOX, marks=pytest.mark.slow)], ids=["lines", "black box"]
)
def test_a_service_in_go_keeps_its_promises(chaos, stock, journal, scenario):
    chaos.run(of(scenario, stock, journal)).must_keep_its_promises()
    assert len(set(journal.read_text().splitlines())) >= scenario.min_records


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.timeout(180 + BUILD_S)
def test_what_it_commits_and_has_not_written_is_named(chaos, stock, journal):
    run = chaos.run(of(replace(LINES, schedule=[]), stock, journal, "-hasty"))
    with pytest.raises(BrokenPromises):
        run.must_keep_its_promises()
    kinds = {f.kind for check in run.verdict.checks for f in check.findings if f.severity == "violation"}
    assert kinds == {"commit-ahead"}
