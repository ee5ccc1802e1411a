"""A correct group under plans drawn from many seeds is never accused: an alarm would be the checkers' own defect."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from fencepost.faults import BlackHole, Bounce, Kill, MoveCoordinator, Pause
from fencepost.model import Validity
from fencepost.scenario import PROTOCOLS, Group, Scenario, Topic
from fencepost.schedule import at, past_session
from fencepost.targets import coordinator, one_member
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow]


@dataclass(frozen=True)
class Variant:
    """What correct groups differ in.

    Attributes:
        commit: the policy; the promises are those that it may be expected to keep.
        static: members have names of their own.
        coordinator: it may move or stand still. There this library's client is not correct when it commits by itself
            (it tries a refused commit again after a later one, and the group goes back if it dies then), nor as a
            static member (it takes itself for evicted, gives up its member id and is fenced by its own name, while the
            new coordinator began to count its session anew).
    """

    commit: str = "after-processing"
    static: bool = False
    coordinator: bool = True

    def __str__(self) -> str:
        return f"{self.commit}{', static' if self.static else ''}"


VARIANTS = (  # the seeds take turns
    Variant(),
    Variant("auto", coordinator=False),
    Variant("before-processing"),
    Variant(static=True, coordinator=False),
)
SEEDS = range(20_261_121, 20_261_221)
STEPS = 3  # of a run, within so short a time that they meet each other
FIRST_S, LAST_S = 1.0, 7.0


def drawn(protocol, seed):
    """What the seed says: a variant, and what is done to it when; whom it hits is drawn by the plan."""
    rng, variant = random.Random(seed), VARIANTS[seed % len(VARIANTS)]
    # Until its session is over, nobody may come back under the name of a static member that was killed (KIP-848).
    reborn = past_session(1.2) if variant.static else 2
    members = [
        (BlackHole(), one_member(), 3),
        (Pause(), one_member(), past_session(1.2)),
        (Kill(), one_member(), reborn),
        (Bounce(), one_member(), 1),
    ]
    brokers = [(MoveCoordinator(), None, None), (Pause(), coordinator(), 2)]
    chosen = rng.choices([*members, *(brokers if variant.coordinator else ())], k=STEPS)
    return Scenario(
        name=f"no false alarm, {protocol}, {variant}",
        topics=[Topic("orders", partitions=8), Topic("refunds", partitions=3)],
        group=Group(members=4, protocol=protocol, static=variant.static, config={"session.timeout.ms": 6000}),
        workload=PollLoop(commit=variant.commit, rate_hz=2000, batch=200),
        schedule=[
            at(round(rng.uniform(FIRST_S, LAST_S), 3), fault, target, heal_after=heal_after, required=False)
            for fault, target, heal_after in chosen
        ],
        chaos_s=60,
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_correct_group_is_never_accused(chaos, protocol, seed):
    run = chaos.run(drawn(protocol, seed), seed=seed)
    assert run.verdict.validity is Validity.VALID, run.verdict
