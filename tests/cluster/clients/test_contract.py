"""What members promise, asked of all four clients by each protocol and assignor that they can do: one contract.

The questions are in ``contract.py``; ``unit/tests/test_contract.py`` shows of each that it can be answered wrongly.
What adapters alone promise is in ``test_adapters.py``.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from cluster.contract import History, complaints
from cluster.plans import topic
from fencepost import Group, Scenario, at, past_session, runner
from fencepost.faults import Bounce, Pause
from fencepost.model.clients import KNOWN, LINES, Library
from fencepost.model.settings import STRATEGY
from fencepost.targets import member
from fencepost.workloads import PollLoop

TRIPLES = [
    (library, protocol, assignor)
    for library in KNOWN.values()
    for protocol, assignors in library.assignors.items()
    for assignor in assignors or [""]  # where the brokers assign
    if library.name != LINES and not library.silent  # those are no client
]


@pytest.mark.cluster
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "triple",
    TRIPLES,
    ids=[f"{library.name}-{'-'.join(rest)}".strip("-") for library, *rest in TRIPLES],
)
def test_members_of_every_client_keep_one_contract(tmp_path: Path, triple: tuple[Library, str, str]) -> None:
    library, protocol, assignor = triple
    reported = {STRATEGY: assignor} if assignor else {}
    asked = Scenario(
        f"contract, {library.name}, {protocol}",
        [topic("orders", 4)],
        Group(2, client=library.name, protocol=protocol, config={"session.timeout.ms": 6000, **reported}),
        PollLoop(rate_hz=200),
        brokers=1,
        schedule=[
            at(3, Pause(), member(1), heal_after=past_session(1.5), expect="fenced"),
            at(16, Bounce(), member(0), heal_after=1),  # it is back by then, and is asked to make room again
        ],
        min_records=6500,
        chaos_s=90,  # a ceiling that only a slow machine comes near
    )
    run = runner.run(asked, plan=asked.plan(1), runs=tmp_path)
    version = metadata.version(library.name) if library.imported else ""
    assert complaints(History.of(run, library.name, version, protocol, assignor)) == {}
