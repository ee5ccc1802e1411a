"""In containers: programs in an image of their own."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.docker_base import left
from cluster.programs import test_lines
from cluster.programs.test_black_box import AWAY, PROGRAM, SCENARIO, broken, reasons
from fencepost import Group, Scenario, Topic, at, past_session, runner
from fencepost.checkers import Commits, Delivery, Ownership, Progress
from fencepost.checkers.spark.session import Spark
from fencepost.clusters import backends
from fencepost.clusters.cache import quiet
from fencepost.clusters.docker import images
from fencepost.errors import ProvisionError
from fencepost.faults import Bounce, Kill, Pause
from fencepost.judging import judge
from fencepost.model import Validity, Verdict
from fencepost.model.settings import PROTOCOLS
from fencepost.processes.owner import ProcessOwner
from fencepost.targets import one_member
from fencepost.workloads import OwnProgram

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.docker,
    pytest.mark.spark,
    pytest.mark.timeout(600),  # images are built
]
PROMISED = [Delivery("at-least-once"), Ownership(of="assignment"), Commits(), Progress(within_s=30)]
BLOCKS = """
FROM {base}
ENV PYTHONPATH=/opt/fencepost/packages
WORKDIR /srv
COPY apps program.py lines.py /srv/
"""
APPS = Path(__file__).parents[2] / "examples" / "apps"
SERVICES = {
    "shop": Scenario(
        "the order service in its image",
        [Topic("orders", partitions=12)],
        Group(command=["python3", "-m", "shop.consumer"], config={"session.timeout.ms": 6000}),
        OwnProgram(processed="commit", payload="shop.fakes:order", rate_hz=500),
        schedule=[
            at(2, Pause(), one_member(), heal_after=past_session(1.5), expect="fenced"),
            at(14, Bounce(), one_member(), heal_after=1),
        ],
        promises=PROMISED,
    ),
    "dispatch": Scenario(
        "forked workers in their image",
        [Topic("orders", partitions=8)],
        Group(
            command=["python3", "-m", "dispatch.workers"],
            client="kafka-python",
            members=2,
            protocol="eager",
            config={"session.timeout.ms": 6000},
        ),
        OwnProgram(processed="commit", payload="shop.fakes:order", rate_hz=200),
        schedule=[
            at(1, Pause(), one_member(), heal_after=past_session(1.5), expect="fenced"),
            at(13, Kill(), one_member(), heal_after=1),
        ],
        promises=PROMISED,
        min_records=1000,
    ),
}


@pytest.fixture(autouse=True)
def nothing_left(engine: Any, base: str, owners: list[ProcessOwner]) -> Iterator[None]:
    yield
    assert not left(engine, *owners)


@pytest.fixture(scope="module")
def image(engine: Any, base: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a service, as somebody would build it: a program and its client library."""
    folder, name = tmp_path_factory.mktemp("image"), f"fencepost-test-programs-{uuid.uuid4().hex[:8]}"
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "lines.py").write_text(test_lines.PROGRAM, encoding="utf-8")
    shutil.copytree(APPS, folder / "apps")
    blocks = BLOCKS.format(base=images.images(quiet).member)
    (folder / "Dockerfile").write_text(blocks, encoding="utf-8")
    engine.images.build(path=str(folder), tag=name)
    yield name
    engine.images.remove(name, force=True)


def performed(scenario: Scenario, folder: Path, spark: Spark) -> Verdict:
    return judge(runner.run(scenario, plan=scenario.plan(1), runs=folder, backend=backends.docker()), spark)


def boxed(scenario: Scenario, image: str, bug: str, protocol: str) -> Scenario:
    command = ["python3", "program.py", "{bootstrap}", "{group}", "{topics}", protocol, bug, ""]
    return replace(scenario, group=replace(scenario.group, command=command, image=image, protocol=protocol))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_black_box_in_its_own_image_is_judged_by_what_brokers_see(
    tmp_path: Path, chaos_spark: Spark, image: str, protocol: str
) -> None:
    verdict = performed(boxed(SCENARIO, image, "none", protocol), tmp_path, chaos_spark)
    assert verdict.validity is Validity.VALID, reasons(verdict)
    assert verdict.measures["commits"] > 50


def test_a_wrong_one_is_found(tmp_path: Path, chaos_spark: Spark, image: str) -> None:
    verdict = performed(boxed(AWAY, image, "remembers", "cooperative"), tmp_path, chaos_spark)
    assert {"commit-regression", "zombie-commit"} <= broken(verdict), reasons(verdict)


@pytest.mark.parametrize("bug", ["none", "skips"])
def test_a_program_that_tells_lines_is_recorded_in_its_image(
    tmp_path: Path, chaos_spark: Spark, image: str, bug: str
) -> None:
    command = ["python3", "lines.py", "{bootstrap}", "{group}", "{topics}", "{client_id}", bug]
    group = replace(test_lines.SCENARIO.group, client="json-lines", protocol="cooperative", command=command)
    asked = replace(test_lines.SCENARIO, group=replace(group, image=image), workload=OwnProgram("told", rate_hz=300))
    verdict = performed(asked, tmp_path, chaos_spark)
    assert bool(broken(verdict)) == ("commit-ahead" in broken(verdict)) == (bug == "skips"), reasons(verdict)
    assert verdict.validity is (Validity.INVALID if bug == "skips" else Validity.VALID), reasons(verdict)


def test_an_image_that_is_not_there_is_named(tmp_path: Path, chaos_spark: Spark) -> None:
    with pytest.raises(ProvisionError, match="no-such-image"):
        performed(boxed(SCENARIO, "no-such-image:1", "none", "cooperative"), tmp_path, chaos_spark)


@pytest.mark.parametrize(
    ("name", "bug", "kinds"),
    [
        *[(name, "", frozenset()) for name in SERVICES],
        ("shop", "--keep-batch", {"zombie-commit", "commit-regression"}),
        ("dispatch", "--whole-batches", {"commit-ahead"}),
    ],
)
def test_a_service_in_its_image_is_recorded_and_judged(
    tmp_path: Path,
    chaos_spark: Spark,
    image: str,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    bug: str,
    kinds: frozenset[str],
) -> None:
    monkeypatch.chdir(APPS)  # where producers import what they write
    service = SERVICES[name]
    command = [*service.group.command, *filter(None, [bug])]
    drain_s = 10 if bug else service.drain_s
    asked = replace(service, group=replace(service.group, command=command, image=image), drain_s=drain_s)
    verdict = performed(asked, tmp_path, chaos_spark)
    assert bool(kinds & broken(verdict)) == bool(bug), reasons(verdict)
    assert verdict.validity is (Validity.INVALID if bug else Validity.VALID), reasons(verdict)
    assert verdict.measures["members"] == {"shop": 4, "dispatch": 6}[name]
