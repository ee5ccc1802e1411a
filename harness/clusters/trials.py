"""Checks before the start that clients accept a group's settings: each client tries them where its members will run.

There is one short process for each client and release, and for each set of settings. It connects to no broker; accepted
settings are not tried again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

from fencepost.clusters import environments
from fencepost.clusters.cache import ProgressCallback
from fencepost.clusters.capabilities import Abilities
from fencepost.errors import Complaints, ProvisionError, ScenarioError, WaitTimeout
from fencepost.group.incarnation import member_side
from fencepost.interfaces.process import Environment
from fencepost.processes.owner import ProcessOwner, wait_ended
from fencepost.scenario.group import Group
from fencepost_member.process import BAD_CONFIG

SLOW_S, TRIAL_S = 2.0, 60.0
_accepted: set[tuple[str, str]] = set()  # interpreters, each with settings that its client accepts


def try_settings(group: Group, abilities: Abilities, progress: ProgressCallback) -> None:
    """Refuse settings that a client of the group does not have, in the release that its members use.

    A user's program is not tried, because it has its own client. A member with a separate environment is not tried if
    the back-end supports none; the back-end refuses it itself.

    Raises:
        ScenarioError: names each such client, its release, and its error.
        ProvisionError: see ``environments.interpreter``; or the trial itself failed.
    """
    complaints = Complaints()
    each = zip(group.environments, group.client_configs, strict=True)
    different = {(environment, json.dumps(config, sort_keys=True)): config for environment, config in each}
    for (environment, _), config in different.items():
        elsewhere = "command" not in abilities or abilities["command"]()
        if not group.runs_programs and environment.client.library.imported and not (environment.own and elsewhere):
            with complaints.gather(ScenarioError, ProvisionError):
                _try(group, environment, config, progress)
    complaints.refuse()


def _try(group: Group, environment: Environment, client_config: Mapping[str, Any], progress: ProgressCallback) -> None:
    client = environment.client
    python = environments.interpreter(environment, progress).python
    release = f"{client.name} {client.version or metadata.version(client.name)}"
    config = {
        "actor": "trial",
        "member": 0,
        "slot": 0,
        "run": "",
        "group": "trial",
        "topics": {},
        "bootstrap": "",
        "client": client.name,
        "protocol": group.protocol,
        "client_config": client_config,
    }
    key = (python, json.dumps(config))
    if key in _accepted:
        return
    code, output = _tried(python, config, lambda: progress(f"checking the group's settings with {release}"))
    if code == BAD_CONFIG:
        raise ScenarioError(f"{release} rejects the group's config: {output}")
    if code:
        raise ProvisionError(f"the group's settings could not be checked with {release}: {output}")
    _accepted.add(key)


def _tried(python: str, config: Mapping[str, Any], slow: Callable[[], None]) -> tuple[int, str]:
    """The exit code of a trial, and the last line of its output; ``slow`` is called if it takes long."""
    with ProcessOwner.open() as owner:
        file, log = owner.directory / "trial.json", owner.directory / "log"
        file.write_text(json.dumps(config), encoding="utf-8")
        env = {"PYTHONPATH": str(member_side(owner.directory))}
        process = owner.spawn([python, "-m", "fencepost_member.check_settings", file], log=log, env=env)
        try:
            code = wait_ended(process, SLOW_S)
        except WaitTimeout:
            slow()
            try:
                code = wait_ended(process, TRIAL_S)
            except WaitTimeout as late:
                return -1, str(late)
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return code, lines[-1] if lines else "it printed nothing"
