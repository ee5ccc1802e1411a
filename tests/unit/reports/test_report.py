"""The reports of made-up runs: right, complete, inert, bounded, and never stopped by what is missing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import report_runs as runs
from markupsafe import escape
from rich.console import Console

from fencepost.model import Finding, Severity, Validity
from fencepost.repeat import replay
from fencepost.reports import folder as folders
from fencepost.reports import html, junit, run_timeline, text, verdict_summary, view
from fencepost.reports.glossary import GLOSSARY
from fencepost.reports.timeline import intervals as timeline_intervals
from fencepost.reports.timeline import palette
from fencepost.reports.timeline.scale import Scale

HOSTILE = "</title></style></script><img src=http://evil.test/x onerror=alert(1)><script>alert(2)</script>"
HOSTILE += "{{7*7}}[red]\x00\x1b"


def page(run: Path) -> str:
    return html.render(run).read_text(encoding="utf-8")


def section(text_: str, name: str) -> str:
    return re.search(rf'<section id="{name}">.*?</section>', text_, re.DOTALL)[0]  # type: ignore[index]


def terminal(run: Path) -> str:
    console = Console(width=2000, record=True, file=Path("/dev/null").open("w"))  # noqa: SIM115
    console.print(text.summary(run))
    console.file.close()
    return console.export_text()


@pytest.fixture(scope="module")
def invalid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.invalid_run(tmp_path_factory.mktemp("runs") / "invalid")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    finding = replace(runs.lost(topic=HOSTILE, sentence=HOSTILE), kind=HOSTILE, reason=HOSTILE)
    reported = runs.verdict(HOSTILE, runs.checks("invalid", finding), faults=({"fault": HOSTILE},))
    path = tmp_path_factory.mktemp("runs") / "hostile"
    return runs.write_run(path, reported, runs.group_history(HOSTILE, HOSTILE), name=HOSTILE, topic=HOSTILE)


@pytest.fixture(scope="module")
def huge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.huge_run(tmp_path_factory.mktemp("runs") / "huge")


def copied(run: Path, to: Path) -> Path:
    return Path(shutil.copytree(run, to / "run"))


OF_LINES = {"client": "verifiable-consumer", "processed": "next-poll", "told_by": "lines"}
POLLED = "the program polled again or closed its consumer, or committed past it, and had not left it in a list"


@pytest.mark.parametrize(
    ("workload", "started", "reported"),
    [
        (
            {"processed": "effect"},
            {"processed": "effect"},
            "when its effect existed at the end, whichever member caused it",
        ),
        ({"processed": "next-poll"}, OF_LINES, f"when {POLLED}"),
        ({}, OF_LINES, f"with verifiable-consumer, when {POLLED}"),
        ({}, {"client": "confluent-kafka"}, ""),
    ],
)
def test_the_page_says_by_which_rule_a_record_is_processed(
    tmp_path: Path, workload: dict[str, str], started: dict[str, str], reported: str
) -> None:
    history = runs.group_history()
    history.add("started", "member-0.2", 9.5, detail={"member": 0, **started})
    history.add("started", "member-1.2", 9.5, detail={"member": 1, "client": "confluent-kafka"})
    run = runs.write_run(tmp_path / "run", runs.verdict("x", runs.checks("valid")), history)
    scenario = json.loads((run / "scenario.json").read_text())
    scenario["scenario"]["workload"].update(workload)
    (run / "scenario.json").write_text(json.dumps(scenario))
    rows = dict(view.judged(folders.read(run)))
    assert rows.get("a record counts as processed", "") == reported
    assert reported in page(run)


@pytest.mark.parametrize(
    ("members", "reported"),
    [
        (4, ">4<"),
        ([{"count": 2}, {"count": 1, "client": "kafka-python==2.2.9"}], ">2 confluent-kafka, 1 kafka-python==2.2.9<"),
        (
            [{"count": 2, "client": "", "static": True}, {"count": 1, "static": None}],
            ">2 confluent-kafka (static), 1 confluent-kafka<",
        ),
        ([7], ">1 confluent-kafka<"),
    ],
)
def test_members_that_are_not_alike_are_told_by_their_clients(
    invalid: Path, tmp_path: Path, members: object, reported: str
) -> None:
    run = shutil.copytree(invalid, tmp_path / "run")
    scenario = json.loads((run / "scenario.json").read_text())
    scenario["scenario"]["group"]["members"] = members
    (run / "scenario.json").write_text(json.dumps(scenario))
    assert reported in page(run).partition('id="promises"')[0].replace("\n", "")


ABOUT = "What is done with the group `on purpose`, and what it shows.\n"


def test_page_and_terminal_say_what_the_scenario_shows(tmp_path: Path) -> None:
    run = runs.valid_run(tmp_path / "run")
    assert 'class="note"' not in page(run).partition('id="verdict"')[0]
    scenario = json.loads((run / "scenario.json").read_text())
    for about in (ABOUT, HOSTILE):
        scenario["scenario"]["about"] = about
        (run / "scenario.json").write_text(json.dumps(scenario))
        reported = page(run)
        head = reported.partition('id="verdict"')[0].partition("<h1>")[2]
        assert f'<p class="note">{escape(about.replace(chr(0), ""))}' in head.replace(chr(0), "")
        assert reported.count(str(escape(about))) == 1
        assert about.split("{{")[0].strip() in terminal(run)


class TestThePage:
    def test_it_tells_the_worst_finding_before_everything_else(self, invalid: Path) -> None:
        reported = page(invalid)
        assert reported.index("past offset 4711 of orders-7, which") < reported.index('id="promises"')
        assert "1 promise broken: at-least-once; 13 violations in all." in reported

    def test_a_rebalance_tells_what_it_dealt_where_the_verdict_does(self, invalid: Path) -> None:
        table = re.search(r"6 rebalances</summary>.*?</table>", page(invalid), re.DOTALL)
        assert table
        dealt = re.findall(r"<td>generation \d</td><td>([^<]*)</td>", table[0])
        assert dealt == ["0 moved; 3 each"] * 2 + ["3 moved; 0 to 4 each"] + ["–"] * 3

    def test_the_worst_finding_is_the_most_alarming_one_not_the_most_frequent(self) -> None:
        frequent = Finding("redelivery", Severity.VIOLATION, 90_000)
        checks = runs.checks("invalid")
        reported = runs.verdict("x", (replace(checks[2], findings=(frequent,)), checks[0]))
        worst = verdict_summary.worst(reported)
        assert worst is not None
        assert worst.finding.kind == "unseen"

    def test_violations_stand_apart_from_what_is_permitted(self, invalid: Path) -> None:
        reported = section(page(invalid), "findings")
        folded = reported.index("Permitted by the promises")
        assert (
            reported.index('id="violation-1"')
            < folded
            < reported.index('id="permitted-1"')
            < reported.index('id="note-1"')
        )

    def test_a_valid_run_says_what_it_rests_on_and_shows_no_violation(self, tmp_path: Path) -> None:
        reported = page(runs.valid_run(tmp_path / "run"))
        assert "All 3 checks are valid, over up to 132,614 facts; faults proven: 4 of 4." in reported
        assert "No violation was found." in reported
        assert 'class="own' in reported
        assert 'class="accused"' not in section(reported, "timeline").partition('id="plot"')[2]

    def test_an_unknown_run_names_the_reason_and_marks_the_unproven_fault(self, tmp_path: Path) -> None:
        reported = page(runs.unknown_run(tmp_path / "run"))
        assert "412 facts judged, at least 1,000 are needed; 1 fault of 3 without proof" in reported
        row = re.search(r'<tr id="step-1" class="unproven">.*?</tr>', reported, re.DOTALL)
        assert row is not None
        assert "not proven" in row[0]
        assert "awaited T" in row[0]
        assert "not applicable" in section(reported, "faults")

    def test_it_says_what_could_be_done_to_the_network(self, invalid: Path) -> None:
        reported = re.sub(r"<[^>]*>|\s+", " ", page(invalid))
        assert re.search(r"network\.links +yes +network\.packets +no: iptables is missing", reported)

    def test_it_says_what_is_known_of_the_clocks_of_brokers_elsewhere(self, invalid: Path, tmp_path: Path) -> None:
        run, second = shutil.copytree(invalid, tmp_path / "run"), 10**9
        clock = run / "history/clock.json"
        told = json.loads(clock.read_text())
        at_ns, wall_ns = told["pairs"][-1] = [told["pairs"][-1][0], 1_795_259_580 * second]
        reading = [at_ns - 2_000_000, at_ns + 2_000_000, (wall_ns + 37_200_000_000) // 1_000_000]
        clock.write_text(json.dumps({**told, "brokers": {"2": [reading]}, "leaders": {}, "failure": ""}))
        assert "the clock of broker 2 is 37.200 s ahead, known within 3.0 ms" in page(run)
        for damaged in ({"2": [[1, 2]]}, {"2": [[1, 2, float("inf")]]}, {"x": []}, [7]):
            clock.write_text(json.dumps({**told, "brokers": damaged, "leaders": {}, "failure": ""}))
            assert "history/clock.json cannot be read" in page(run)

    def test_violations_of_a_run_that_cannot_be_judged_are_not_hidden(self, tmp_path: Path) -> None:
        doubtful = replace(runs.checks("invalid")[0], validity=Validity.UNKNOWN, reason="the audit is missing")
        run = runs.write_run(tmp_path / "run", runs.verdict("x", (doubtful,)), runs.group_history())
        reported = page(run)
        assert "the audit is missing. 13 violations were seen, but cannot be trusted yet." in reported
        assert 'id="worst"' in reported

    def test_a_consequence_that_was_not_seen_is_marked(self, tmp_path: Path) -> None:
        reported = runs.verdict("x", runs.checks("unknown"), faults=({"step": 1, "reached": False},))
        row = section(page(runs.write_run(tmp_path / "run", reported, runs.group_history())), "faults")
        assert re.search(r"Expected consequence: fenced</span> <span class=.stamp unknown.>. not seen", row)

    def test_a_required_step_that_found_no_target_counts_as_unproven(self, tmp_path: Path) -> None:
        history = runs.group_history()
        detail = {"step": 4, "fault": "kill", "reason": "nothing matched", "required": True}
        history.add("skipped", "harness", 40, 40, detail=detail)
        run = runs.write_run(tmp_path / "run", runs.verdict("x", runs.checks("unknown")), history)
        assert verdict_summary.count_faults(run_timeline.build(folders.read(run)).faults).due == 5

    def test_a_planned_step_without_a_trace_is_listed(self, invalid: Path, tmp_path: Path) -> None:
        run = copied(invalid, tmp_path)
        plan = json.loads((run / "plan.json").read_text())
        plan["steps"].append({"step": 4, "fault": {"type": "kill"}, "target": {"type": "one_member"}})
        (run / "plan.json").write_text(json.dumps(plan))
        assert "no trace of this step" in section(page(run), "faults")
        assert "4 of 5" in page(run)

    def test_times_count_from_the_start_of_the_run(self, invalid: Path) -> None:
        row = re.search(r'<tr id="step-1">.*?</tr>', page(invalid), re.DOTALL)
        assert row is not None
        assert "15.000 s" in row[0]
        assert "24.000 s" in row[0]
        assert "after 4.0 ms" in row[0]

    def test_counts_are_whole_where_examples_are_cut(self, tmp_path: Path) -> None:
        many = replace(runs.lost(), count=12_345, examples=runs.lost().examples * 50)
        run = runs.write_run(tmp_path / "run", runs.verdict("x", runs.checks("invalid", many)), runs.group_history())
        reported = section(page(run), "findings")
        assert "12,345 times" in reported
        assert "30 more examples in verdict.json" in reported

    def test_a_finding_without_a_sentence_is_told_by_its_kind_and_place(self) -> None:
        reported = verdict_summary.sentence(
            "unseen", {"topic": "orders", "partition": 3, "offset": 4711, "cause": "skipped"}
        )
        assert reported == f"{GLOSSARY['unseen']} Here it was never delivered to any member. At orders-3, offset 4711."

    def test_each_kind_links_to_its_entry_in_the_glossary(self, invalid: Path) -> None:
        reported = page(invalid)
        linked = set(re.findall(r'href="#(kind-[^"]+)"', reported))
        assert linked == {"kind-unseen", "kind-redelivery", "kind-assignment-overlap", "kind-redelivery-loop"}
        assert all(reported.count(f'id="{anchor}"') == 1 for anchor in linked)

    def test_a_member_has_one_colour_everywhere(self, invalid: Path) -> None:
        reported = page(invalid)
        styles = set(re.findall(r'class="who (c\d)[^"]*">member-2(?:\.1)?<', reported))
        drawn = set(re.findall(r'class="own (c\d)[^"]*"><title>[^<]*owned by member-2\.1,', reported))
        assert styles == drawn == {"c2"}

    def test_it_loads_nothing_and_admits_only_its_own_script(self, invalid: Path) -> None:
        reported = page(invalid)
        assert not re.findall(r"(?:https?:)?//[a-z0-9]|\bsrc=|@import|<link", re.sub(r"\s//\s.*", "", reported))
        script = re.findall(r"<script>(.*?)</script>", reported, re.DOTALL)
        assert len(script) == 1
        digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
        assert f"default-src &#39;none&#39;" in reported or "default-src 'none'" in reported  # noqa: F541
        assert f"script-src 'sha256-{digest}'" in reported


class TestHostileStrings:
    def test_the_page_holds_them_as_text(self, hostile: Path) -> None:
        tags: list[str] = []

        class Tags(HTMLParser):
            def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
                tags.append(tag)
                assert not any(name.startswith("on") for name, _ in attrs)

        reported = page(hostile)
        Tags().feed(reported)
        assert "img" not in tags
        assert tags.count("script") == 1
        assert "{{7*7}}" in reported

    def test_junit_stays_well_formed(self, hostile: Path) -> None:
        suite = ET.parse(junit.render(hostile)).getroot()[0]
        assert suite.get("name") == HOSTILE.replace("\x00", "\ufffd").replace("\x1b", "\ufffd")

    def test_the_terminal_shows_markup_as_it_is(self, hostile: Path) -> None:
        reported = terminal(hostile)
        assert reported.count("{{7*7}}[red]") == reported.count("onerror=alert(1)") >= 4


class TestMissingParts:
    @pytest.mark.parametrize(
        "part",
        ["verdict.json", "scenario.json", "plan.json", "history/events.parquet", "history/partitions.json"],
    )
    @pytest.mark.parametrize("damage", ["gone", "garbage", "another shape"])
    def test_a_missing_or_damaged_part_is_said_and_the_rest_is_drawn(
        self, invalid: Path, tmp_path: Path, part: str, damage: str
    ) -> None:
        run = copied(invalid, tmp_path)
        if damage == "gone":
            (run / part).unlink()
        else:
            (run / part).write_text("[1]" if damage == "another shape" else "{ half a fi")
        reported = page(run)
        assert f"{part} {'is missing' if damage == 'gone' else 'cannot be read'}" in reported
        assert part in terminal(run)
        ET.parse(junit.render(run))
        assert ('id="worst"' in reported) == (part != "verdict.json")
        assert ("pause on member-2" in reported) == (part != "history/events.parquet")

    def test_an_empty_folder_gives_a_page_that_claims_nothing(self, tmp_path: Path) -> None:
        reported = page(tmp_path)
        assert "UNKNOWN" in reported
        assert "The run was not judged: verdict.json is missing." in reported

    def test_without_events_the_faults_are_told_from_the_verdict(self, invalid: Path, tmp_path: Path) -> None:
        run = copied(invalid, tmp_path)
        reported = json.loads((run / "verdict.json").read_text())
        fault = {"fault": "pause", "target": "member-2", "begun_s": 15.0, "proven_s": 15.5, "healed_s": 24.0}
        reported["faults"] = [{**fault, "took_effect": True, "evidence": "process 4711 in state T"}]
        (run / "verdict.json").write_text(json.dumps(reported))
        (run / "history/events.parquet").unlink()
        rows = section(page(run), "faults")
        assert "after 500 ms" in rows
        assert "process 4711 in state T" in rows


class TestTheTimeline:
    def test_every_way_of_giving_up_ends_an_interval(self) -> None:
        h = runs.History()
        for n in range(4):
            h.add("assigned", "member-0.1", 1, 1.5, runs.orders(n), generation=1)
        h.add("revoked", "member-0.1", 2, 2.25, runs.orders(0))
        h.add("lost", "member-0.1", 3, 3.5, runs.orders(1))
        h.add("ended", "member-0.1", 5, 5, detail={"how": "killed"})
        reported = timeline_intervals.ownership(facts(h))
        assert [(i.partition, i.how) for i in reported] == [
            ("orders-0", "revoked"),
            ("orders-1", "lost"),
            ("orders-2", "died"),
            ("orders-3", "died"),
        ]
        first = reported[0]
        moments = (first.begin_ns, first.assigned_ns, first.given_up_ns, first.end_ns)
        assert moments == (runs.at(1), runs.at(1.5), runs.at(2), runs.at(2.25))

    def test_a_member_that_closes_gives_up_what_it_still_owns(self) -> None:
        h = runs.History()
        h.add("assigned", "member-0.1", 1, 1.1, runs.orders(0))
        h.add("closed", "member-0.1", 4, 4.5)
        h.add("ended", "member-0.1", 5, 5, detail={"how": "closed"})
        assert [(i.how, i.given_up_ns, i.end_ns) for i in timeline_intervals.ownership(facts(h))] == [
            ("closed", runs.at(4), runs.at(4.5))
        ]

    def test_consumers_beside_each_other_have_rows_and_colours_and_lives_after_each_other_share_them(self) -> None:
        h = runs.History()
        names = ("member-0.1", "member-0b.1", "member-0b.1-2", "member-1.1")
        for at, name in enumerate(names, start=1):
            h.add("started", name, at, at, detail={"member": int(name[7])})
        reported = timeline_intervals.lives(facts(h))
        assert [(life.incarnation, life.member) for life in reported] == [
            *zip(names, ("member-0", "member-0b", "member-0b", "member-1"), strict=True)
        ]
        colours = palette.Palette(names)
        assert [colours.style(name) for name in names] == ["c0", "c1", "c1 alt", "c2"]

    def test_two_owners_at_once_are_drawn_one_above_the_other(self) -> None:
        intervals = timeline_intervals.ownership(facts(runs.group_history()))
        lanes = timeline_intervals.overlaps(intervals)
        assert {lane for lane, _ in lanes["orders-7"]} == {0, 1}
        assert {lane for lane, _ in lanes["orders-0"]} == {0}

    def test_a_partition_that_is_gone_is_not_drawn_under_the_name_of_another(
        self, invalid: Path, tmp_path: Path
    ) -> None:
        run = Path(shutil.copytree(invalid, tmp_path / "run"))
        path, before = run / "history/partitions.json", folders.read(run).partitions
        known = json.loads(path.read_text())
        gone = {**known["partitions"][0], "tp": 99, "renewed": {"as": 0}}
        path.write_text(json.dumps({**known, "partitions": [*known["partitions"], gone]}))
        assert len(before) == len(known["partitions"]) == len(folders.read(run).partitions)

    def test_every_interval_has_a_bar(self, invalid: Path) -> None:
        intervals = run_timeline.build(folders.read(invalid)).intervals
        assert len(intervals) == 24
        assert page(invalid).count('<g class="own ') == 24

    def test_the_table_has_partitions_by_their_numbers_and_of_each_who_came_first(self, invalid: Path) -> None:
        rows = re.findall(
            r'<tr><td class="mono">orders-(\d+)</td>.*?<td class="num">([\d.]+) s<', page(invalid), re.DOTALL
        )
        reported = [(int(partition), float(begin)) for partition, begin in rows]
        assert reported == sorted(reported)
        assert {2, 10} <= {partition for partition, _ in reported}

    def test_a_violation_is_marked_on_its_partition(self, invalid: Path) -> None:
        dense = re.sub(r">\s+<", "><", page(invalid))
        assert dense.count('<a href="#violation-1"><g class="accused">') == 1

    def test_ticks_are_round_and_inside(self) -> None:
        scale = Scale(runs.at(3.1), runs.at(49), runs.ORIGIN_NS)
        reported = [tick.label for tick in scale.ticks() if tick.level == 0]
        assert reported == ["5 s", "10 s", "15 s", "20 s", "25 s", "30 s", "35 s", "40 s", "45 s"]
        assert all(0 <= float(tick.x.rstrip("%")) <= 100 for tick in scale.ticks())


@pytest.mark.slow
class TestAHugeRun:
    def test_the_page_is_bounded_and_says_what_it_aggregates(self, huge: Path) -> None:
        reported = page(huge)
        assert len(reported) < 4_000_000
        assert "36 of 100 partitions are not drawn" in reported
        assert "are merged into grey bars" in reported
        assert re.search(r"class=\"own merged\"><title>[^<]+, \d+ short intervals", reported)

    def test_the_counts_stay_whole(self, huge: Path) -> None:
        reported = page(huge)
        assert "59,900 assignment intervals" in reported
        assert "50,000, of which 0 not ok" in reported
        assert "1,000,000" in reported


class TestJUnit:
    def test_a_broken_promise_is_a_failure_with_its_sentence(self, invalid: Path) -> None:
        suite = ET.parse(junit.render(invalid)).getroot()[0]
        assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "1", "0")
        failure = suite.find("testcase/failure")
        assert failure is not None
        assert "offset 4711 of orders-7" in (failure.text or "")

    def test_what_could_not_be_judged_is_an_error_of_type_unknown(self, tmp_path: Path) -> None:
        suite = ET.parse(junit.render(runs.unknown_run(tmp_path / "run"))).getroot()[0]
        errors = {(case.get("name"), e.get("type")) for case in suite.iter("testcase") for e in case.iter("error")}
        assert errors == {("delivery: at-least-once", "unknown"), ("faults took effect", "unknown")}

    def test_it_carries_seed_folder_command_and_what_is_permitted(self, invalid: Path) -> None:
        suite = ET.parse(junit.render(invalid)).getroot()[0]
        reported = {p.get("name"): p.get("value") for p in suite.iter("property")}
        assert reported["seed"] == "20261121"
        assert reported["run"] == str(invalid)
        assert reported["command"] == f"fencepost replay {invalid}"
        assert "permitted: redelivery, 214 times" in "".join(o.text or "" for o in suite.iter("system-out"))

    def test_the_command_names_a_cluster_of_another_owner(self, invalid: Path, tmp_path: Path) -> None:
        run = copied(invalid, tmp_path)
        stored = json.loads((run / "scenario.json").read_text())
        for backend, more in (("container:kafka", " --cluster container:kafka"), ("local", "")):
            (run / "scenario.json").write_text(json.dumps({**stored, "backend": backend}))
            assert folders.read(run).command == f"fencepost replay {run}{more}"


class TestTheTerminal:
    def test_it_tells_verdict_checks_faults_and_the_worst_finding(self, invalid: Path) -> None:
        reported = terminal(invalid)
        assert reported.startswith("INVALID  coordinator moves while a member is a zombie, seed 20261121")
        assert re.search(r"at-least-once +invalid +132,614 +13 +214", reported)
        assert re.search(r"pause +member-2 +15\.000 s +after 4\.0 ms", reported)
        assert "unseen, 13 times, against at-least-once\n  member-2.1 committed offset 4712" in reported

    def test_it_repeats_the_run_from_where_the_reader_is(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        run = runs.invalid_run(tmp_path / "runs" / "it's mine")
        monkeypatch.chdir(tmp_path)
        command = re.search(r"repeat it: (.*\S)", terminal(run))[1]  # type: ignore[index]
        reported = shlex.split(command)
        assert reported == ["fencepost", "replay", "runs/it's mine"]
        assert replay.load(Path(reported[2]))[0].name == "coordinator moves while a member is a zombie"
        assert str(tmp_path) not in page(run) + junit.render(run).read_text() + terminal(run)

    def test_it_says_when_no_command_can_repeat_the_run(self, tmp_path: Path) -> None:
        run = runs.invalid_run(tmp_path / "run")
        stored = json.loads((run / "scenario.json").read_text())
        stored["scenario"]["workload"] = {"type": "my_own_loop"}
        (run / "scenario.json").write_text(json.dumps(stored))
        assert (
            "# only the test or script that started this run can repeat it, with the seed 20261121: there is no"
            in terminal(run)
        )

    def test_it_marks_what_is_not_proven(self, tmp_path: Path) -> None:
        assert "NOT PROVEN" in terminal(runs.unknown_run(tmp_path / "run"))


def facts(history: runs.History) -> list[folders.Fact]:
    rows = sorted(history.rows, key=lambda row: row["begin_ns"])
    return [
        folders.Fact(
            kind=row["kind"],
            actor=row["actor"],
            id=row["id"],
            begin_ns=row["begin_ns"],
            end_ns=row["end_ns"],
            topic=row["topic"] or "",
            partition=-1 if row["partition"] is None else row["partition"],
            generation=row.get("generation", -1),
            outcome=row.get("outcome", ""),
            detail=json.loads(row["detail"]),
        )
        for row in rows
        if row["kind"] != "commit"
    ]
