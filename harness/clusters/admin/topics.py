"""Creating, growing and recreating topics; and topic ids, which distinguish a topic from its successor."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterable, Mapping
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
        WaitTimeout: there were no leaders in time.
    """
    named = {topic.name: topic for topic in topics}
    if not named:
        return
    _ordered(
        brokers, lambda: requests.creation(named.values()), "topics", kafka_errors.TopicAlreadyExistsError, "topic {}"
    )
    _led(brokers, {name: topic.partitions for name, topic in named.items()})


def create_on(brokers: Connections, topic: str, replicas: Mapping[int, list[int]], config: Mapping[str, str]) -> None:
    """Create a topic with given brokers for the replicas of each partition, and return as ``create`` does.

    Raises:
        ClusterError, WaitTimeout: see ``create``.
    """
    exists = kafka_errors.TopicAlreadyExistsError
    _ordered(brokers, lambda: requests.creation_on(topic, replicas, config), "topics", exists, "topic {}")
    _led(brokers, {topic: len(replicas)})


def recreate(brokers: Connections, topic: str) -> None:
    """Delete a topic and create it again: as many partitions, on the same brokers, with the same settings.

    Returns once every broker that answers knows the new one, and leaders for all of its partitions.

    Raises:
        ClusterError: the controller refused to delete it; it is unchanged.
        WaitTimeout: it did not disappear, or was not back in time; it may be gone.
    """
    was = brokers.request(lambda: requests.metadata(topic)).topics[0]
    refuse(was, f"reading topic {topic}")
    replicas = {p.partition_index: list(p.replica_nodes) for p in was.partitions}
    settings = brokers.request(lambda: requests.topic_settings(topic)).results[0]
    refuse(settings, f"reading the settings of {topic}")
    config = {one.name: one.value for one in settings.configs or () if one.config_source == requests.OF_TOPIC}
    unknown = kafka_errors.UnknownTopicOrPartitionError
    _ordered(brokers, lambda: requests.topic_deletion([topic]), "responses", unknown, "deleting topic {}")
    _everywhere(brokers, topic, lambda answer: answer.topics[0].topic_id != was.topic_id, "to be gone")
    last = ""

    def made() -> bool:
        nonlocal last
        (result,) = brokers.request(lambda: requests.creation_on(topic, replicas, config)).topics
        error = kafka_errors.for_code(result.error_code)
        last = error.__name__
        return error in (kafka_errors.NoError, kafka_errors.TopicAlreadyExistsError)

    eventually(made, WITHIN_S, f"topic {topic} to be created again", state=lambda: last)
    _led(brokers, {topic: len(replicas)})


def grow(brokers: Connections, topic: str, count: int) -> None:
    """Raise the number of partitions of ``topic`` to ``count``.

    Raises:
        ClusterError: the controller refused (there are as many, or no such topic).
    """
    what = f"raising {{}} to {count} partitions"
    _ordered(brokers, lambda: requests.growth(topic, count), "results", kafka_errors.InvalidPartitionsError, what)


def names_by_id(brokers: Connections, topics: Collection[str]) -> dict[str, str]:
    """Names of these topics by topic id, in the format of Kafka's tools; without missing topics."""
    found = [topic for topic in brokers.request(lambda: requests.metadata(*topics)).topics if not topic.error_code]
    return {base64.urlsafe_b64encode(topic.topic_id.bytes).decode().rstrip("="): topic.name for topic in found}


def _ordered(brokers: Connections, request: Callable[[], Any], part: str, done: type[Exception], what: str) -> None:
    """Send a request about topics; ``part`` of the answer has a result for each. A broker that did not answer in time
    may have executed it: then the next broker returns the error ``done``.

    Raises:
        ClusterError: ``what`` was refused, with the topic's name in it.
    """
    asked: list[Any] = []

    def once_more() -> Any:
        asked.append(request())
        return asked[-1]

    for result in getattr(brokers.request(once_more), part):
        done_before = len(asked) > 1 and kafka_errors.for_code(result.error_code) is done
        if not done_before and not late(result):
            refuse(result, what.format(result.name))


def _led(brokers: Connections, counts: dict[str, int]) -> None:
    """Wait until every broker that answers knows leaders for the given number of partitions of each topic."""

    def led(answer: Any) -> bool:
        leaders = {t.name: sum(p.leader_id >= 0 for p in t.partitions) for t in answer.topics}
        return all(leaders.get(name, 0) == count for name, count in counts.items())

    _everywhere(brokers, ", ".join(counts), led, "to have leaders for all partitions")


def _everywhere(brokers: Connections, topic: str, so: Callable[[Any], bool], what: str) -> None:
    def all_say() -> bool:
        answers = {b: brokers.request_once(b, requests.metadata(*topic.split(", "))) for b in brokers.brokers}
        not_yet = [broker for broker, answer in answers.items() if answer and not so(answer)]
        brokers.refusals |= dict.fromkeys(not_yet, "does not confirm it yet")
        return any(answers.values()) and not not_yet

    brokers.wait(all_say, f"{topic} {what}")
