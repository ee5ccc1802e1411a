"""Topics that are made, grow, or are deleted and made again; and the ids by which brokers tell one from the next."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterable
from typing import Any

from kafka import errors as kafka_errors

from fencepost.clock import eventually
from fencepost.clusters.admin import requests
from fencepost.clusters.admin.connections import WITHIN_S, Connections, late, refuse
from fencepost.model.topic import Topic


def create(brokers: Connections, topics: Iterable[Topic]) -> None:
    """Create topics and return once every broker knows a leader for each partition.

    Raises:
        ClusterError: the controller refused one (it exists, or its settings are wrong).
        WaitTimeout: the leaders did not come.
    """
    wanted = {topic.name: topic for topic in topics}
    if not wanted:
        return
    _ordered(
        brokers, lambda: requests.creation(wanted.values()), "topics", kafka_errors.TopicAlreadyExistsError, "topic {}"
    )
    _led(brokers, {name: topic.partitions for name, topic in wanted.items()})


def recreate(brokers: Connections, topic: str) -> None:
    """Delete a topic and make it again: as many partitions, on the same brokers, with the same settings.

    Returns once every broker that answers knows the new one, and leaders for all of its partitions.

    Raises:
        ClusterError: the controller refused to delete it; it is as it was.
        WaitTimeout: it was not seen to go, or did not come back in time; it may be gone.
    """
    was = brokers.ask(lambda: requests.metadata(topic)).topics[0]
    refuse(was, f"looking at topic {topic}")
    replicas = {p.partition_index: list(p.replica_nodes) for p in was.partitions}
    told = brokers.ask(lambda: requests.topic_settings(topic)).results[0]
    config = {one.name: one.value for one in told.configs or () if one.config_source == requests.OF_TOPIC}
    unknown = kafka_errors.UnknownTopicOrPartitionError
    _ordered(brokers, lambda: requests.topic_deletion([topic]), "responses", unknown, "deleting topic {}")
    _everywhere(brokers, topic, lambda answer: answer.topics[0].topic_id != was.topic_id, "to be gone")
    last = ""

    def made() -> bool:
        nonlocal last
        (result,) = brokers.ask(lambda: requests.creation_on(topic, replicas, config)).topics
        error = kafka_errors.for_code(result.error_code)
        last = error.__name__
        return error in (kafka_errors.NoError, kafka_errors.TopicAlreadyExistsError)

    eventually(made, WITHIN_S, f"topic {topic} to be made again", state=lambda: last)
    _led(brokers, {topic: len(replicas)})


def grow(brokers: Connections, topic: str, count: int) -> None:
    """Have ``topic`` have ``count`` partitions, which are more.

    Raises:
        ClusterError: the controller refused (there are as many, or no such topic).
    """
    what = f"having {{}} have {count} partitions"
    _ordered(brokers, lambda: requests.growth(topic, count), "results", kafka_errors.InvalidPartitionsError, what)


def names_by_id(brokers: Connections, topics: Collection[str]) -> dict[str, str]:
    """These topics by their ids, as Kafka's tools write ids; those that there are."""
    found = [topic for topic in brokers.ask(lambda: requests.metadata(*topics)).topics if not topic.error_code]
    return {base64.urlsafe_b64encode(topic.topic_id.bytes).decode().rstrip("="): topic.name for topic in found}


def _ordered(brokers: Connections, request: Callable[[], Any], part: str, done: type[Exception], what: str) -> None:
    """Have something done with topics, of each of which ``part`` of the answer tells. A broker that did not answer in
    time may have done it: then the next one says that it is ``done``.

    Raises:
        ClusterError: ``what`` was refused, with the topic's name in it.
    """
    asked: list[Any] = []

    def once_more() -> Any:
        asked.append(request())
        return asked[-1]

    for result in getattr(brokers.ask(once_more), part):
        done_before = len(asked) > 1 and kafka_errors.for_code(result.error_code) is done
        if not done_before and not late(result):
            refuse(result, what.format(result.name))


def _led(brokers: Connections, wanted: dict[str, int]) -> None:
    """Wait until every broker that answers knows leaders for so many partitions of each topic."""

    def led(answer: Any) -> bool:
        leaders = {t.name: sum(p.leader_id >= 0 for p in t.partitions) for t in answer.topics}
        return all(leaders.get(name, 0) == count for name, count in wanted.items())

    _everywhere(brokers, ", ".join(wanted), led, "to have leaders for all partitions")


def _everywhere(brokers: Connections, topic: str, so: Callable[[Any], bool], what: str) -> None:
    def all_say() -> bool:
        answers = {b: brokers.ask_once(b, requests.metadata(*topic.split(", "))) for b in brokers.brokers}
        not_yet = [broker for broker, answer in answers.items() if answer and not so(answer)]
        brokers.told |= dict.fromkeys(not_yet, "does not say so yet")
        return any(answers.values()) and not not_yet

    brokers.wait(all_say, f"{topic} {what}")
