"""The README's first test, and a planted bug for each promise, on every kind of cluster that a team may have.

On a new cluster of this machine, ``test_planted_bugs`` performs all bugs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from examples.test_orders_survive_chaos import SCENARIO
from token_endpoint import SECRET

from cluster.attach.guarded import Authority, grant, guarded, make_scram_user, over_tls, scram
from cluster.attach.test_attach import address
from cluster.attach.test_attach_rights import USER, on_the_page
from cluster.docker.conftest import attached, container
from cluster.planted import BUGS
from cluster.programs.test_black_box import reasons
from cluster.runs.test_planted_bugs import CORE
from cluster.user_programs import broken
from fencepost import runner
from fencepost.checkers.spark.session import Spark
from fencepost.clusters.attach import handed_in
from fencepost.clusters.attach.backend import Attachment
from fencepost.clusters.backends import Backend
from fencepost.clusters.selection import backend
from fencepost.judging import judge
from fencepost.model import Validity
from fencepost.model.findings import FINDINGS
from fencepost.processes.owner import ProcessOwner

pytestmark = [pytest.mark.docker, pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(300)]

HIDDEN = {kind.name for kind in FINDINGS.values() if "requests" in kind.hidden_without}
# What a run is performed on -> the kinds of findings that are not judged there.
ENVIRONMENTS = {
    "local": set[str](),
    "docker": set[str](),
    "KafkaContainer": set[str](),
    "compose": set[str](),
    "SASL over TLS, limited user": HIDDEN,
}
# What plans of bugs need of the brokers: short sessions, and transactions although there is one broker.
FOR_BUGS = {
    "KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS": "1000",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
}
FAMILIES = dict.fromkeys(name for name, _ in CORE.values())


@contextmanager
def limited_user(owner: ProcessOwner, folder: Path) -> Iterator[Attachment]:
    """A cluster that is reached with SCRAM over TLS, as a user who has exactly the rights of the page."""
    authority = Authority(folder / "tls")
    with guarded(owner, over_tls(scram, authority), masters=("master",)) as running:
        make_scram_user(running, USER)
        grant(running, *on_the_page())
        settings = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": USER,
            "sasl.password": SECRET,
            "ssl.ca.location": authority.pem,
        }
        config = folder / "client.properties"
        config.write_text("\n".join(f"{name}={value}" for name, value in settings.items()))
        yield Attachment.of(address(running, 0), config)


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def environment(
    request: pytest.FixtureRequest, session_owner: ProcessOwner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Backend]]:
    """The name of an environment, and the back-end that performs runs there."""
    name = str(request.param)
    if name == "KafkaContainer":
        with container(request.getfixturevalue("image"), **FOR_BUGS) as kafka:
            yield name, backend(handed_in.name_of(kafka))
    elif name == "compose":
        yield name, attached(request.getfixturevalue("project"))
    elif name in ("local", "docker"):
        if name == "docker":
            request.getfixturevalue("base")  # its images are built from it
        yield name, backend(name)
    else:
        with limited_user(session_owner, tmp_path_factory.mktemp("user")) as attachment:
            yield name, attachment


def test_the_first_test_of_the_readme_is_valid(
    environment: tuple[str, Backend], chaos_spark: Spark, tmp_path: Path
) -> None:
    name, where = environment
    run = runner.run(SCENARIO, plan=SCENARIO.plan(1), runs=tmp_path, backend=where.for_another_run())
    verdict = judge(run, chaos_spark)
    assert verdict.validity is Validity.VALID, reasons(verdict)
    assert [fault["took_effect"] for fault in verdict.faults] == [True, True]
    assert set(verdict.unjudged) == ENVIRONMENTS[name]


@pytest.mark.slow
@pytest.mark.parametrize("bug", FAMILIES)
def test_a_planted_bug_is_never_valid(
    environment: tuple[str, Backend], chaos_spark: Spark, tmp_path: Path, bug: str
) -> None:
    name, where = environment
    planted = BUGS[bug]
    (protocol, *_) = [one for one in ("cooperative", "eager") if one in planted.protocols]
    wrong = replace(planted.scenario(protocol), broker_config={})  # a cluster of another owner keeps its own
    run = runner.run(wrong, plan=wrong.plan(2), runs=tmp_path, backend=where.for_another_run())
    verdict = judge(run, chaos_spark)
    found, kinds = broken(verdict), set(planted.kinds)
    assert found <= {*kinds, *planted.may_follow}
    if ENVIRONMENTS[name]:  # a finding that a hidden record may excuse is unknown
        assert verdict.validity is not Validity.VALID, reasons(verdict)
    else:
        assert verdict.validity is Validity.INVALID, reasons(verdict)
        assert kinds <= found
