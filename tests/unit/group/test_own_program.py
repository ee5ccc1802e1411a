"""A group of a user's own programs in a scenario: what goes with it, and what is refused before anything starts."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers import Effects
from fencepost.clusters import backends, local
from fencepost.clusters.attach.backend import ABILITIES
from fencepost.clusters.docker import host
from fencepost.errors import PlanError, ScenarioError
from fencepost.faults import ChangeAssignor, ChangeSubscription, Kill, Pause, Stall
from fencepost.model.clients import BLACK_BOX, LINES, MemberSpec
from fencepost.model.topic import Topic
from fencepost.runner.preflight import check_command, isolating_option
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at
from fencepost.targets import one_member
from fencepost.workloads import OwnProgram, PollLoop
from fencepost_member import config, user_functions

COMMAND = (sys.executable, "-m", "shop.consumer")
GROUP = Group(command=COMMAND, config={"session.timeout.ms": 6000})
SCENARIO = Scenario("shop", [Topic("orders"), Topic("payments")], GROUP, OwnProgram(payload="shop.fakes:order"))


def test_it_survives_the_way_through_json() -> None:
    again = Scenario.from_json(SCENARIO.to_json())
    assert again.to_json() == SCENARIO.to_json()
    assert again.group.command == COMMAND


def test_its_settings_stay_but_for_those_that_are_given() -> None:
    assert GROUP.client_configs[0] == {"session.timeout.ms": 6000}
    assert replace(GROUP, config={}).client_configs[0] == {}
    assert "heartbeat.interval.ms" in replace(GROUP, command=()).client_configs[0]


def test_members_and_producers_are_told_what_they_know() -> None:
    workload = OwnProgram(rate_hz=900, producers=3)
    assert set(workload.member_config(0)) < {f.name for f in fields(config.LoopConfig)}
    reported = workload.producer_config()
    assert reported["rate_hz"] * reported.pop("producers") == 900
    assert set(reported) < {f.name for f in fields(config.ProducerConfig)}


@pytest.mark.parametrize("fault", [Stall(), ChangeSubscription(), ChangeAssignor()])
def test_faults_that_tell_our_loop_something_are_refused(fault: Any) -> None:
    def asked(group: Group, workload: Any) -> Scenario:
        step = at(1, fault, one_member(), heal_after=1)
        return replace(SCENARIO, group=group, workload=workload, schedule=[step])

    with pytest.raises(PlanError, match="run a program of the user's, which cannot be reconfigured"):
        asked(GROUP, OwnProgram()).plan(1)
    asked(replace(GROUP, command=()), PollLoop()).plan(1)


def test_what_hits_processes_is_not() -> None:
    steps = [at(1, Kill(), one_member(), heal_after=1), at(3, Pause(), one_member(), heal_after=1)]
    assert len(replace(SCENARIO, schedule=steps).plan(1).steps) == 2


@pytest.mark.parametrize(
    ("group", "workload", "sentence"),
    [
        (GROUP, PollLoop(), "use the workload own_program"),
        (replace(GROUP, command=()), OwnProgram(), "own_program needs a group with a command"),
    ],
)
def test_the_workload_and_the_group_go_together(group: Group, workload: Any, sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        replace(SCENARIO, group=group, workload=workload)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"processed": "always"}, "processed is 'always'; known rules are next-poll, commit"),
        ({"payload": "shop.fakes"}, "payload is 'shop.fakes'; it must be of the form module:function"),
        ({"processed": "effect"}, "processed='effect' and effects, the function that lists them, need each other"),
        (
            {"effects": "shop.fakes:written"},
            "processed='effect' and effects, the function that lists them, need each other",
        ),
        ({"processed": "effect", "effects": "shop.fakes"}, "effects is 'shop.fakes'; it must be of the form"),
        ({"effects_in_order": True}, "effects_in_order needs effects, the function that lists them in their order"),
        ({"rate_hz": 0}, "rate_hz is 0, it must be above 0"),
        ({"keys": 0}, "keys is 0, it must be at least 1"),
        ({"producers": 0}, "producers is 0, it must be at least 1"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        OwnProgram(**options)


def test_it_consumes_with_one_client_by_a_protocol_that_this_has() -> None:
    for client in ("kafka-python", "aiokafka"):
        assert str(Group(command=COMMAND, client=client, protocol="eager").clients[0]) == client
    with pytest.raises(ScenarioError, match="client aiokafka cannot be in a group with protocol 'cooperative'"):
        Group(command=COMMAND, client="aiokafka", protocol="cooperative")
    for wrong in ({"client": "kafka-python==2.2.8"}, {"python": "3.9"}):
        with pytest.raises(
            ScenarioError, match="must not set python or the client's release: the program brings its own"
        ):
            Group(command=COMMAND, protocol="eager", **wrong)  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match="a group with a command must have one client, found"):
        Group(command=COMMAND, protocol="eager", members=(MemberSpec(1), MemberSpec(1, "aiokafka")))


@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python", "aiokafka", LINES])
def test_it_may_say_itself_when_a_record_is_processed(client: str) -> None:
    group = replace(GROUP, client=client, protocol="eager")
    replace(SCENARIO, group=group, workload=OwnProgram("told")).plan(1)


def test_where_effects_tell_what_is_processed_they_are_promised_too() -> None:
    workload = OwnProgram("effect", "shop.fakes:written")
    assert [promise for promise in workload.promises() if promise not in OwnProgram().promises()] == [
        Effects("at-least-once")
    ]
    with pytest.raises(ScenarioError, match="the members are black boxes, which do not report what they do: use"):
        replace(SCENARIO, group=replace(GROUP, client=BLACK_BOX), workload=workload)


def test_a_program_that_is_not_there_is_refused() -> None:
    with pytest.raises(PlanError, match="begins with 'no-such-program', but no such program was found"):
        check_command(replace(GROUP, command=["no-such-program"]), local.ABILITIES, "local")


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("-I",), "-I"),
        (("-u", "-Es"), "-Es"),
        (("-X", "dev", "-bS"), "-bS"),
        (("-Wignore", "-W", "error", "--check-hash-based-pycs", "never", "-sI", "-m", "shop"), "-sI"),
        (("-X", "-I", "shop.py"), ""),
        (("-WE", "-uX", "importtime", "shop.py", "-I"), ""),
        (("-mSEI",), ""),
        (("-uc", "pass", "-S"), ""),
        (("-", "-I"), ""),
        (("-uP", "--", "-I"), ""),
        ((), ""),
    ],
)
def test_an_option_that_keeps_python_from_being_instrumented_is_found(options: tuple[str, ...], found: str) -> None:
    for interpreter in ("python", "/usr/bin/python3.13", "pypy3"):
        assert isolating_option((interpreter, *options)) == found
    assert isolating_option(("./consumer", *options)) == isolating_option(("python-shop", *options)) == ""


def test_a_program_that_nothing_would_redirect_is_refused_before_it_starts() -> None:
    apart = replace(GROUP, command=[sys.executable, "-Im", "shop.consumer"])
    with pytest.raises(
        PlanError, match="runs Python with the option -Im: with -I, -E or -S it does not import the module"
    ):
        check_command(apart, local.ABILITIES, "local")
    check_command(replace(apart, client=BLACK_BOX), local.ABILITIES, "local")  # it finds its brokers in its command


def test_a_backend_that_does_not_have_the_program_refuses_it() -> None:
    for abilities in (local.ABILITIES, ABILITIES):
        check_command(GROUP, abilities, "x")
    check_command(Group(), host.ABILITIES, "docker")
    with pytest.raises(
        PlanError, match="our image does not contain the program; use local or attach, or give the group"
    ):
        check_command(GROUP, backends.docker().abilities, "docker")


def test_an_image_is_for_containers_and_holds_its_program_itself() -> None:
    boxed = Group(command=["no-such-program-here"], client=BLACK_BOX, image="shop:1")
    check_command(boxed, host.ABILITIES, "docker")
    for abilities in (local.ABILITIES, ABILITIES):
        with pytest.raises(PlanError, match="cannot run the group's program: it has no containers; use docker"):
            check_command(boxed, abilities, "x")


@pytest.mark.parametrize(
    ("body", "value"), [("b'x'", b"x"), ("'ü'", "ü".encode()), ("{'key': key, 'seq': seq}", b'{"key": 3, "seq": 4}')]
)
def test_a_payload_gives_bytes_text_or_json(tmp_path: Path, monkeypatch: Any, body: str, value: bytes) -> None:
    name = f"fakes_{abs(hash(body))}"
    (tmp_path / f"{name}.py").write_text(f"def order(key, seq): return {body}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert user_functions.values_of(f"{name}:order")(3, 4) == value


@pytest.mark.parametrize(
    ("payload", "sentence"),
    [
        ("no_such_module:order", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("json:no_such_function", "AttributeError"),
        ("operator:add", "it must return bytes, str or a dict, not int"),
    ],
)
def test_a_payload_that_gives_none_is_refused_before_the_producer_connects(payload: str, sentence: str) -> None:
    with pytest.raises(
        config.ConfigError, match=f"the payload {payload} returns no value for key 0, seq 0: .*{sentence}"
    ):
        user_functions.values_of(payload)


def test_a_handler_that_is_not_there_is_refused_before_the_member_connects() -> None:
    with pytest.raises(
        config.ConfigError, match=r"the handler shop:write cannot be imported: ModuleNotFoundError: .*shop"
    ):
        user_functions.handler_of("shop:write")


def test_our_own_loop_has_no_planted_bug_beside_a_handler() -> None:
    with pytest.raises(ScenarioError, match="handler is 'write'; it must be of the form module:function"):
        PollLoop(handler="write")
    with pytest.raises(ScenarioError, match="planted bug 'seek-back' needs the built-in handler"):
        PollLoop(handler="shop.handler:write", planted_bug="seek-back")
