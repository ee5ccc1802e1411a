"""The command line: exit codes, sentences instead of stack traces, and what a run shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import stage
from rich.console import Console
from stage import Shell

from fencepost.console import progress_display
from fencepost.errors import ClusterError, ScenarioError
from fencepost.history.run_folder import RunFolder
from fencepost.model import Validity, serialization
from fencepost.model.topic import Topic
from fencepost.runner import RunProgress
from fencepost.runner.injector import Stage
from fencepost.scenario import loader
from fencepost.scenario.overrides import override
from fencepost.scenario.scenario import Group, Scenario
from fencepost.workloads import PollLoop

V = Validity


def test_help_names_the_commands_and_the_exit_codes(shell: Shell) -> None:
    code, out, _ = shell("--help")
    assert code == 0
    assert all(command in out for command in ("doctor", "list", "run", "check", "report"))
    assert "0 valid, 1 invalid, 2 bad usage, 3 unknown, 4 the harness" in " ".join(out.split())


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["dance"], "No such command"),
        (["run"], "Missing argument"),
        (["run", "nowhere"], "there is no built-in scenario 'nowhere'; fencepost list scenarios shows all of them"),
        (
            ["run", "migration"],
            "'migration'; the nearest are migration_to_the_classic_protocol, migration_to_the_consumer_protocol",
        ),
        (["run", "three-client"], "there is no built-in scenario 'three-client'; the nearest are three_clients"),
        (["run", "demmo"], "'demmo'; the nearest are demo"),
        (["run", "nowhere.toml"], "there is no file nowhere.toml"),
        (["run", "demo", "--cluster", "mars"], "there is no back-end 'mars'"),
        (["run", "demo", "--cluster", "attach:mars"], "'attach:mars' does not name a cluster: use attach:HOST:PORT"),
        (["run", "demo", "--yes"], "--cluster-config and --yes are for a cluster that exists, not for auto"),
        (["run", "demo", "--repeat", "0"], "--repeat"),
        (["run", "demo", "--set", "group.members"], "--set needs path=value"),
        (["run", "demo", "--set", "group.size=3"], "the group has no option 'size'"),
        (["run", "demo", "--set", "schedule.2.heal_after=1"], "lasts only 1 s under a session.timeout.ms of 6 s"),
        (["run", "demo", "--set", "schedule.0.at=9"], "has both at and at_s, which mean the same: keep at_s"),
        (["check", "nowhere"], "there is no run folder nowhere"),
        (["report", "nowhere"], "there is no run folder nowhere"),
        (["list", "fault"], "Error: Invalid value: there is no list of 'fault'; use one of faults, targets, workloads"),
        (
            ["run", "demo", "--set", "group.members=2.5"],
            "the group: members must be a whole number or a list, but found 2.5",
        ),
        (["run", "demo", "--set", "chaos_s=20"], "over only after 24.8 s, but the chaos phase ends after chaos_s = 20"),
    ],
)
def test_bad_usage_is_a_sentence_and_exit_code_2(shell: Shell, args: list[str], sentence: str) -> None:
    code, _, err = shell(*args)
    assert code == 2
    assert sentence in err
    assert "Traceback" not in err


@pytest.mark.parametrize("command", ["check", "report"])
def test_what_only_looks_like_a_run_folder_is_left_alone(shell: Shell, tmp_path: Path, command: str) -> None:
    (tmp_path / "mine" / "history").mkdir(parents=True)
    code, _, err = shell(command, "mine")
    assert (code, "mine is not a run folder" in err) == (2, True)
    assert [*(tmp_path / "mine").rglob("*")] == [tmp_path / "mine" / "history"]


def test_a_scenario_file_with_an_error_of_its_own_is_bad_usage(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import shop_that_is_not_there")
    code, _, err = shell("run", "mine.py")
    assert code == 2
    assert "mine.py cannot be run: ModuleNotFoundError: No module named 'shop_that_is_not_there'" in err


def test_what_a_scenario_shows_is_said_when_it_is_listed_and_when_it_begins(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = loader.load("demo").about
    assert about
    assert about in " ".join(shell("list", "scenarios")[1].split())
    stage.set_up(monkeypatch, V.VALID, V.VALID)
    said = shell("run", "demo", "--seed", "7")[1]
    assert said.startswith(f"demo, seed 7\n{about}\n")
    assert about not in shell("run", "demo", "--seed", "7", "--set", "about=")[1]


def test_an_interrupted_run_leaves_with_130(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.set_up(monkeypatch, KeyboardInterrupt())
    assert shell("run", "demo")[0] == 130


def test_a_report_is_drawn_again_and_its_place_said(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = RunFolder.create(tmp_path, "demo", 1).path
    opened: list[str] = []
    monkeypatch.setattr("fencepost.judging.render", lambda run: run / "report.html")
    monkeypatch.setattr("webbrowser.open", opened.append)
    code, out, _ = shell("report", folder)
    assert (code, out) == (0, f"{folder.name}/report.html\n")
    assert opened == []
    shell("report", folder, "--open")
    assert opened == [(folder / "report.html").as_uri()]


def test_a_report_that_cannot_be_drawn_is_a_failure_and_the_other_one_is_drawn(shell: Shell, tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "demo", 1).path
    (folder / "report.html").mkdir()
    code, out, err = shell("report", folder)
    assert (code, out) == (4, "")
    assert "report.html could not be drawn: IsADirectoryError" in err
    assert (folder / "junit.xml").is_file()


def test_a_list_says_what_there_is_and_its_options(shell: Shell) -> None:
    faults = shell("list", "faults")[1]
    assert "black_hole" in faults
    assert "Attributes:" not in faults
    for reported, why in {"Seen: ": "what brokers and members see of it", "Witness: ": "what proves it"}.items():
        assert faults.count(reported) == len(serialization.registry("fault")), f"every fault says {why}"
    assert "index" in shell("list", "targets")[1]
    assert "librdkafka" in shell("list", "clients")[1]
    assert "pause partitions and resume them" in shell("list", "clients")[1]
    assert "``" not in shell("list", "checks")[1]


def test_a_check_of_some_promises_says_so_and_points_to_no_report(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    acted = stage.set_up(monkeypatch, V.VALID, V.INVALID)
    folder = RunFolder.create(tmp_path, "demo", 1).path
    code, out, _ = shell("check", folder, "--only", "delivery, order")
    assert code == 0
    assert acted.only == ("delivery", "order")
    assert "report" not in out
    code, out, _ = shell("check", folder)
    assert code == 1
    assert acted.processed == ""
    assert f"fencepost report {folder.name}" in out


def test_a_check_by_another_rule_says_so_and_points_to_no_report(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    acted = stage.set_up(monkeypatch, V.INVALID)
    folder = RunFolder.create(tmp_path, "demo", 1).path
    code, out, _ = shell("check", folder, "--processed", "commit")
    assert (code, acted.processed) == (1, "commit")
    assert "a record counts as processed by the rule commit; this verdict is not stored" in out
    assert "report" not in out


@pytest.mark.parametrize(("validity", "code"), [(V.VALID, 0), (V.INVALID, 1), (V.UNKNOWN, 3)])
def test_the_verdict_is_the_exit_code(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, validity: Validity, code: int
) -> None:
    stage.set_up(monkeypatch, validity)
    left, out, _ = shell("run", "demo", "--seed", "7")
    assert left == code
    assert validity.upper() in out
    assert re.search(r"fencepost report runs/demo-7-", out)
    assert (stage.SENTENCE in out) == (validity is V.INVALID)


def test_the_plan_is_printed_before_the_run(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.set_up(monkeypatch, ClusterError("broker 1 did not start"))
    code, out, err = shell("run", "demo", "--seed", "7")
    assert code == 4
    assert "demo, seed 7" in out
    assert "at  17.0 s  pause on one_member for 7.8 s expecting fenced" in out
    assert err == "fencepost: broker 1 did not start\n"


def test_repeated_runs_take_consecutive_seeds_and_the_worst_verdict_wins(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    acted = stage.set_up(monkeypatch, V.VALID, V.UNKNOWN, V.VALID)
    code, out, _ = shell("run", "demo", "--seed", "10", "--repeat", "3")
    assert code == 3
    assert acted.seeds == [10, 11, 12]
    assert "3 runs: 2 valid, 1 unknown, 0 invalid" in out
    assert (len(acted.sparks), acted.stopped) == (1, 1)  # it is there already for all but the first


@pytest.mark.parametrize("command", ["run", "check"])
def test_spark_runs_where_it_is_told(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    acted = stage.set_up(monkeypatch, V.VALID, V.VALID)
    what = "demo" if command == "run" else RunFolder.create(tmp_path, "demo", 1).path
    shell(command, what, "--spark-master", "spark://host:7077")
    shell(command, what, "--spark-remote", "sc://host")
    assert acted.sparks == [("spark://host:7077", None), ("local[*]", "sc://host")]


def test_spark_starts_before_what_judges_is_imported(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "demo", 1).path
    script = f"""
import sys
from fencepost.cli import commands
from fencepost.checkers.spark.session import Spark

def start(*_, **__):
    sys.exit(", ".join({{"numpy", "pyarrow", "pyspark", "fencepost.judging"}} & set(sys.modules)) or "nothing")

Spark.start = start
commands.app(["check", {str(folder)!r}])
"""
    left = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert left.stderr.strip() == "nothing"


def test_without_a_check_nothing_is_judged_and_spark_stays_away(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    acted = stage.set_up(monkeypatch)
    code, out, _ = shell("run", "demo", "--no-check", "--runs", "there")
    assert code == 0
    assert acted.sparks == []
    assert re.search(r"history: there/demo-", out)


def test_settings_reach_the_scenario(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    acted = stage.set_up(monkeypatch, V.VALID)
    shell("run", "demo", "--set", "group.members=7", "--set", "group.protocol=eager")
    assert acted.scenarios[0].group.members == 7
    assert acted.scenarios[0].group.protocol == "eager"


def test_what_a_run_does_to_a_cluster_of_others_is_said_under_the_names_of_that_run(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    acted = stage.set_up(monkeypatch, V.VALID, V.VALID)
    _, out, _ = shell("run", "commit-each-batch", "--cluster", "attach:127.0.0.1:9092", "--repeat", "2")
    reported = " ".join(out.split())
    first, second = (backend.prefix for backend in acted.backends)
    assert first != second
    assert all(f"create the topics {prefix}orders" in reported for prefix in (first, second))


def test_a_machine_that_cannot_run_says_so_before_it_starts(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    acted = stage.set_up(monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = shell("run", "demo", "--cluster", "local")  # `auto` is decided once a process
    assert code == 4
    assert "a run with the back-end local is not possible on this machine" in err
    assert "iproute2" in err
    assert acted.seeds == []


def test_a_defect_is_a_sentence_and_a_trace_only_for_those_who_ask(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr("fencepost.scenario.loader.load", broken)
    code, _, err = shell("run", "demo")
    assert code == 4
    assert "a defect of Fencepost itself: ZeroDivisionError: of ours" in err
    assert "Traceback" not in err
    assert "Traceback" in shell("run", "demo", "--debug")[2]
    assert "Traceback" in shell("--debug", "run", "demo")[2]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("faults", {"move_coordinator", "black_hole", "pause", "bounce", "kill", "hold", "cut_connections"}),
        ("workloads", {"poll_loop", "worker_pool"}),
        ("checks", {"delivery", "ownership", "progress"}),
        ("clients", {"confluent-kafka", "kafka-python", "aiokafka"}),
        ("scenarios", {"demo", "three_clients"}),
    ],
)
def test_everything_that_a_scenario_may_name_is_listed(shell: Shell, kind: str, names: set[str]) -> None:
    code, out, _ = shell("list", kind)
    assert code == 0
    assert names <= {line.split()[0] for line in out.splitlines()}


# --- --set ---


def scenario() -> Scenario:
    return Scenario("orders", (Topic("orders"),), Group(config={"session.timeout.ms": 6000}), PollLoop())


def test_names_below_a_config_may_have_dots() -> None:
    changed = override(scenario(), ["group.config.session.timeout.ms=9000", "broker_config.num.io.threads=2"])
    assert changed.group.config == {"session.timeout.ms": 9000}
    assert changed.broker_config == {"num.io.threads": 2}


def test_an_entry_of_a_list_is_named_by_its_index() -> None:
    assert override(scenario(), ["topics.0.partitions=3"]).topics[0].partitions == 3
    with pytest.raises(ScenarioError, match="there are 1 items, counted from 0"):
        override(scenario(), ["topics.1.partitions=3"])


def test_a_changed_workload_brings_its_own_promises() -> None:
    changed = override(scenario(), ['workload.commit="before-processing"'])
    assert changed.judged_by() == PollLoop(commit="before-processing").promises()


def test_a_version_is_no_number() -> None:
    changed = override(scenario(), ["group.python=3.10", "group.client=confluent-kafka==2.3.0", "kafka=3.9.1"])
    assert (changed.group.python, changed.group.client, changed.kafka) == ("3.10", "confluent-kafka==2.3.0", "3.9.1")
    assert override(scenario(), ['group.python="3.10"']).group.python == "3.10"


def test_no_setting_changes_nothing() -> None:
    assert override(scenario(), []).to_json() == scenario().to_json()


# --- what a run shows ---

EARLY = RunProgress("warm-up", 3.0, members=(("member-0.1", True, 0),), faults=((0, "pause", "", "pending", ""),))
LATE = RunProgress(
    "chaos",
    9.5,
    produced=20_000,
    delivered=19_000,
    processed=18_500,
    lag=1_500,
    members=(("member-0.1", True, 4), ("member-1.1", False, 0)),
    faults=((0, "pause", "member-0", "in-effect", "process 4711 in state T"),),
)


def test_a_log_gets_a_line_for_every_change_and_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_display.view(Console(force_terminal=False, width=40)) as watcher:
        for moment in (EARLY, EARLY, LATE, LATE):
            watcher(moment)
    assert capsys.readouterr().out.splitlines() == [
        "   3.0 s  phase warm-up",
        "   9.5 s  phase chaos",
        "   9.5 s  step 0: pause on member-0 in-effect (process 4711 in state T)",
        "   9.5 s  20,000 produced, 19,000 delivered, 18,500 processed, lag 1,500, "
        "member-0.1 owns 4, member-1.1 is down",
    ]


def test_a_terminal_gets_a_picture_of_phase_counts_members_and_faults(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(force_terminal=True, width=120)
    with progress_display.view(console) as watcher:
        watcher(EARLY)
        watcher(LATE)
    shown = capsys.readouterr().out
    for text in (
        "chaos",
        "18,500 processed",
        "lag 1,500",
        "member-1.1",
        "down",
        "in-effect",
        "process 4711 in state T",
    ):
        assert text in shown


def test_a_picture_has_a_style_for_every_stage_of_a_step() -> None:
    assert set(progress_display.STATE_STYLES) == set(get_args(Stage))


def test_the_watcher_of_a_run_is_told_while_it_runs(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    acted = stage.set_up(monkeypatch, V.VALID)
    acted.progress = (EARLY, LATE)
    _, out, _ = shell("run", "demo")
    assert out.index("phase warm-up") < out.index("phase chaos") < out.index("VALID")
