"""What of the tests on real clusters is performed today; the nightly run performs all of it.

Files take turns, each on one day of as many as there are turns. Within files values take turns, too
(``cluster.plans.one_in``).
"""

from __future__ import annotations

from datetime import date

import pytest

DAY = date.today().toordinal()
FOLDERS = ("cluster", "examples")  # below ``tests``
# Those that take about as long as each other; what is in none is performed each day.
TURNS = (
    {
        "test_adapters.py",
        "test_assignors.py",
        "test_attach.py",
        "test_delay_revoke.py",
        "test_docker_members.py",
        "test_effects_survive_chaos.py",
        "test_polled_by_forks.py",
        "test_schedules.py",
        "test_slow_records.py",
        "test_stale_answers.py",
        "test_state_triggers.py",
        "test_supervisor.py",
    },
    {
        "test_aio_consumer.py",
        "test_any_language_survives_chaos.py",
        "test_attach_ends.py",
        "test_change_assignor.py",
        "test_defects.py",
        "test_docker_programs.py",
        "test_hot_partition.py",
        "test_lines.py",
        "test_outputs.py",
        "test_own_program_in_python.py",
        "test_packet_faults.py",
        "test_redirects.py",
        "test_releases.py",
        "test_say.py",
        "test_services_survive_chaos.py",
        "test_warm_up.py",
    },
    {
        "test_added_partitions.py",
        "test_attach_access.py",
        "test_black_box.py",
        "test_change_protocol.py",
        "test_compacted_topics.py",
        "test_commits_nobody_waits_for.py",
        "test_docker_cluster.py",
        "test_duplicate_instance.py",
        "test_faust.py",
        "test_link_faults.py",
        "test_load.py",
        "test_own_program_in_transactions.py",
        "test_own_program_survives_chaos.py",
        "test_pauses_of_programs.py",
        "test_sabotage.py",
        "test_static_members.py",
    },
    {
        "test_admin_faults.py",
        "test_attach_packets.py",
        "test_change_subscription.py",
        "test_docker_runs.py",
        "test_group.py",
        "test_handler_survives_chaos.py",
        "test_long_polls.py",
        "test_moved_positions.py",
        "test_own_program_that_commits_automatically.py",
        "test_partition_brokers.py",
        "test_replays.py",
        "test_several_consumers.py",
        "test_several_consumers_survive_chaos.py",
        "test_store_in_postgresql.py",
        "test_unseen_reads.py",
        "test_written_in_transactions.py",
    },
)


class Rotation:
    """A pytest plugin: files that have no turn today are for the nightly run."""

    @pytest.hookimpl(tryfirst=True)  # before pytest looks which are slow
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        others = set().union(*TURNS) - TURNS[DAY % len(TURNS)]
        for item in items:
            if item.path.parent.name in FOLDERS and item.path.name in others:
                item.add_marker(pytest.mark.slow)
