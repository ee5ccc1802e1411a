"""Partition exclusivity in a database of others: the token keeps out who stood still, and the lease does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from postgres import schemas

from cluster.plans import CRITICAL, under
from cluster.planted import BUGS
from fencepost.checkers.tables import load
from fencepost.model import Validity
from fencepost.model.settings import PROTOCOLS

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.postgresql]


def kept_in(address, fence, protocol):
    """The critical section of a member that is slow, and its store there."""
    return under(protocol, replace(CRITICAL, workload=replace(CRITICAL.workload, store=address, fence=fence)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_with_a_token_each_record_has_one_effect(chaos, postgres, protocol):
    run = chaos.run(kept_in(postgres, "token", protocol))
    run.must_keep_its_promises()
    effects = load(run.folder).effects
    assert len(effects) >= CRITICAL.min_records
    assert len({effect.token for effect in effects}) > 1, "leases changed hands"
    assert schemas(postgres) == [], "nothing of the run stays"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_without_one_who_stood_still_writes_beside_the_next_holder(chaos, postgres, protocol):
    verdict = chaos.run(kept_in(postgres, "lease", protocol)).verdict
    assert verdict.validity is Validity.INVALID
    found = {finding.kind for check in verdict.checks for finding in check.findings if finding.severity == "violation"}
    assert found == BUGS["lock-without-token"].kinds
