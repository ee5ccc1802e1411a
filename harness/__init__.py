"""Fencepost: a chaos-testing harness for Kafka consumer groups.

The names that a test or a scenario needs are here; importing them needs only the standard library. The rest is in

* ``fencepost.faults``, ``.workloads``, ``.checkers`` and ``.targets``: the parts of a scenario;
* ``fencepost.runner`` (performs a scenario, leaves a run folder) and ``fencepost.judging`` (judges a run folder);
* ``fencepost.clusters``, ``.network``, ``.evidence``, ``.reports``: their machinery;
* ``fencepost_member``: the code that runs inside members, without this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.errors import BrokenPromises, FencepostError, UnknownVerdict
from fencepost.model import TopicPartition, Validity, Verdict, former_names
from fencepost.model.clients import MemberSpec
from fencepost.model.topic import Topic
from fencepost.scenario.loader import load
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.combinators import mix, rolling_bounce, rolling_deploy, sequence, together
from fencepost.schedule.entries import at, every, flap, past_session, until, when
from fencepost.schedule.planning import quiet
from fencepost.schedule.swarm import swarm

__all__ = [
    "BrokenPromises",
    "FencepostError",
    "Group",
    "MemberSpec",
    "Scenario",
    "Topic",
    "TopicPartition",
    "UnknownVerdict",
    "Validity",
    "Verdict",
    "at",
    "every",
    "flap",
    "load",
    "mix",
    "past_session",
    "quiet",
    "rolling_bounce",
    "rolling_deploy",
    "sequence",
    "swarm",
    "together",
    "until",
    "when",
]

if not TYPE_CHECKING:  # mypy would take every name for one that is exported
    __getattr__ = former_names.attribute(__name__)
