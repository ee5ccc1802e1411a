"""In containers: black boxes in an image of their own, and the workloads whose members write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.docker_base import left
from cluster.plans import WRITING, one_a_day, one_in, under
from cluster.planted import BUGS
from cluster.test_black_box import AWAY, PROGRAM, SCENARIO, broken, reasons
from fencepost import runner
from fencepost.checkers.spark.session import Spark
from fencepost.clusters import backends, docker_images
from fencepost.clusters.cache import quiet
from fencepost.errors import ProvisionError
from fencepost.judging import judge
from fencepost.model import Validity, Verdict
from fencepost.scenario import Scenario

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.docker,
    pytest.mark.spark,
    pytest.mark.timeout(600),  # images are built
]
WRONG = ("offsets-later", "letter-per-attempt", "unwritten-copies", "lock-without-token")
BLOCKS = "FROM {base}\nENV PYTHONPATH=/opt/fencepost/packages\nWORKDIR /srv\nCOPY program.py /srv/\n"


@pytest.fixture(autouse=True)
def nothing_left(engine: Any, base: str) -> Iterator[None]:
    before = left(engine)
    yield
    assert left(engine) == before


@pytest.fixture(scope="module")
def image(engine: Any, base: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a service, as somebody would build it: a program and its client library."""
    folder, name = tmp_path_factory.mktemp("image"), "fencepost-test-black-box"
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    blocks = BLOCKS.format(base=docker_images.images(quiet).member)
    (folder / "Dockerfile").write_text(blocks, encoding="utf-8")
    engine.images.build(path=str(folder), tag=name)
    yield name
    engine.images.remove(name, force=True)


def performed(scenario: Scenario, folder: Path, spark: Spark) -> Verdict:
    return judge(runner.run(scenario, plan=scenario.plan(1), runs=folder, backend=backends.docker()), spark)


def boxed(scenario: Scenario, image: str, bug: str, protocol: str) -> Scenario:
    command = ["python3", "program.py", "{bootstrap}", "{group}", "{topics}", protocol, bug]
    return replace(scenario, group=replace(scenario.group, command=command, image=image, protocol=protocol))


@pytest.mark.parametrize("scenario", one_in(len(WRITING), WRITING), ids=lambda scenario: scenario.name)
def test_members_that_write_keep_their_promises(tmp_path: Path, chaos_spark: Spark, scenario: Scenario) -> None:
    verdict = performed(under("cooperative", scenario), tmp_path, chaos_spark)
    assert verdict.validity is Validity.VALID, reasons(verdict)


@pytest.mark.parametrize("name", one_in(len(WRONG), WRONG))
def test_their_bugs_are_found(tmp_path: Path, chaos_spark: Spark, name: str) -> None:
    verdict = performed(BUGS[name].scenario("cooperative"), tmp_path, chaos_spark)
    assert BUGS[name].kinds <= broken(verdict) <= {*BUGS[name].kinds, *BUGS[name].may_follow}


@pytest.mark.parametrize("protocol", one_a_day())
def test_a_black_box_in_its_own_image_is_judged_by_what_brokers_see(
    tmp_path: Path, chaos_spark: Spark, image: str, protocol: str
) -> None:
    verdict = performed(boxed(SCENARIO, image, "none", protocol), tmp_path, chaos_spark)
    assert verdict.validity is Validity.VALID, reasons(verdict)
    assert verdict.measures["commits"] > 50


@pytest.mark.slow
def test_a_wrong_one_is_found(tmp_path: Path, chaos_spark: Spark, image: str) -> None:
    verdict = performed(boxed(AWAY, image, "remembers", "cooperative"), tmp_path, chaos_spark)
    assert {"commit-regression", "zombie-commit"} <= broken(verdict), reasons(verdict)


def test_an_image_that_is_not_there_is_named(tmp_path: Path, chaos_spark: Spark) -> None:
    with pytest.raises(ProvisionError, match="no-such-image"):
        performed(boxed(SCENARIO, "no-such-image:1", "none", "cooperative"), tmp_path, chaos_spark)
