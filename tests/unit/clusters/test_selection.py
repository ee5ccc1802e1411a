"""``auto`` means the quickest back-end that is ready, and says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.clusters import backends, names, selection
from fencepost.clusters.backends import ManagedBackend
from fencepost.clusters.doctor import Prerequisite, Readiness
from fencepost.errors import ScenarioError

KAFKA = Prerequisite("Kafka", Readiness.LATER, "the first run fetches it")
SS = Prerequisite("ss", Readiness.MISSING, "install it")
ENGINE = Prerequisite("Docker", Readiness.OPTIONAL, "start it")
IMAGES = Prerequisite("Docker", Readiness.LATER, "the first run builds images")
LOCAL, DOCKER = backends.local(), backends.docker()


@pytest.mark.parametrize(
    ("local", "docker", "name", "why"),
    [
        ((), (), "local", "auto: ready; the fastest"),
        ((), (ENGINE,), "local", "auto: ready; docker needs Docker"),
        ((SS,), (), "docker", "auto: ready; local needs ss"),
        ((KAFKA,), (), "local", "auto: the first run fetches Kafka; the fastest"),
        ((KAFKA,), (IMAGES,), "local", "auto: the first run fetches Kafka; docker needs Docker"),
        ((KAFKA, SS), (IMAGES,), "docker", "auto: the first run fetches Docker; local needs Kafka, ss"),
        ((KAFKA, SS), (ENGINE,), "local", "auto: no back-end is ready; this one needs ss; the fastest"),
    ],
)
def test_what_is_ready_goes_before_what_is_quick(
    local: tuple[Prerequisite, ...], docker: tuple[Prerequisite, ...], name: str, why: str
) -> None:
    chosen = selection.pick([(LOCAL, local), (DOCKER, docker)])
    assert (str(chosen), chosen.why) == (name, why)


def test_who_names_a_back_end_gets_that() -> None:
    chosen = selection.backend("docker")
    assert isinstance(chosen, ManagedBackend)
    assert (str(chosen), chosen.why) == ("docker", "")


def test_auto_is_one_of_ours_and_takes_no_access() -> None:
    chosen = selection.backend(names.AUTO)
    assert str(chosen) in backends.OWN
    assert chosen.why.startswith("auto: ")
    with pytest.raises(ScenarioError, match="are for a cluster that exists, not for auto"):
        selection.backend(names.AUTO, Path("client.properties"))


def test_an_unknown_name_is_told_what_there_is() -> None:
    with pytest.raises(ScenarioError, match="no back-end 'podman'; use auto, local, docker, attach:HOST:PORT"):
        selection.backend("podman")
