"""An administrator's requests to brokers, in kafka-python's classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
)
from kafka.protocol.consumer import (
    FetchRequest,
    LeaveGroupRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import EndTxnRequest, ProduceRequest
from kafka.record.memory_records import MemoryRecordsBuilder

from fencepost.clusters.admin.connections import ANSWER_MS
from fencepost.clusters.admin.schemas import ConsumerGroupDescribeRequest
from fencepost.model import TopicPartition
from fencepost.model.topic import Topic

PREFERRED, LATEST, EARLIEST, GROUP, TOPIC, BROKER, BROKER_LOGGER = 0, -1, -2, 0, 2, 4, 8
SET = 0  # the operation on a setting
OF_TOPIC = 1  # the source of a setting that is the topic's own
FETCH_BYTES = 1 << 20  # a single larger batch is returned all the same


def metadata(*topics: str) -> Any:
    """The metadata of some topics."""
    named = [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
    return MetadataRequest(topics=named, allow_auto_topic_creation=False)


def rights(topics: Iterable[str]) -> Any:
    """What this user may do to the cluster, and to topics of these names, whether they exist or not (KIP-430)."""
    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
        max_version=10,  # later versions say nothing about the cluster
    )


def group_rights(group: str) -> Any:
    """What this user may do to a group of this name. (Later versions say nothing about one that does not exist.)"""
    return DescribeGroupsRequest(groups=[group], include_authorized_operations=True, max_version=5)


def no_transaction(transactional_id: str) -> Any:
    """The end of a transaction that does not exist."""
    return EndTxnRequest(
        transactional_id=transactional_id, producer_id=0, producer_epoch=0, committed=False, max_version=3
    )


def offset_fetch(group: str, *, stable: bool = False) -> Any:
    """The committed offsets of a group; ``stable``: excluding offsets that an open transaction may still replace."""
    asked = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)]
    return OffsetFetchRequest(groups=asked, require_stable=stable, min_version=8, max_version=9)


def offset_commit(group: str, offsets: Mapping[TopicPartition, int]) -> Any:
    """New committed offsets of a group, from outside of the group. (Later versions name topics by id.)"""
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    one = topic.OffsetCommitRequestPartition
    places: dict[str, list[Any]] = {}
    for tp, offset in offsets.items():
        place = one(
            partition_index=tp.partition, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=""
        )
        places.setdefault(tp.topic, []).append(place)
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[topic(name=name, partitions=partitions) for name, partitions in places.items()],
        min_version=8,
        max_version=9,
    )


def classic_group(group: str) -> Any:
    """The members of a group of the classic protocol."""
    return DescribeGroupsRequest(groups=[group], include_authorized_operations=False)


def consumer_group(group: str) -> Any:
    """The members of a group of the consumer protocol."""
    return ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False, min_version=1)


def removal(group: str, member_id: str) -> Any:
    """The removal of a member, as when it leaves by itself."""
    who = LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=None, reason="removed by fencepost")
    return LeaveGroupRequest(group_id=group, members=[who], min_version=3)


def growth(topic: str, count: int) -> Any:
    """More partitions of a topic."""
    more = CreatePartitionsRequest.CreatePartitionsTopic(name=topic, count=count, assignments=None)
    return CreatePartitionsRequest(topics=[more], timeout_ms=ANSWER_MS, validate_only=False)


def deletion(topic: str, before: Mapping[int, int]) -> Any:
    """The deletion of the first records of some partitions."""
    shape = DeleteRecordsRequest.DeleteRecordsTopic
    partitions = [shape.DeleteRecordsPartition(partition_index=p, offset=offset) for p, offset in before.items()]
    return DeleteRecordsRequest(topics=[shape(name=topic, partitions=partitions)], timeout_ms=ANSWER_MS // 2)


def reassignment(tp: TopicPartition, replicas: list[int]) -> Any:
    """New replicas of a partition, or a new order of them."""
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    partition = topic.ReassignablePartition(partition_index=tp.partition, replicas=replicas)
    changes = [topic(name=tp.topic, partitions=[partition])]
    return AlterPartitionReassignmentsRequest(timeout_ms=ANSWER_MS, topics=changes)


def election(tp: TopicPartition) -> Any:
    """The election of a partition's preferred leader."""
    return ElectLeadersRequest(
        election_type=PREFERRED, topic_partitions=[(tp.topic, [tp.partition])], timeout_ms=ANSWER_MS, min_version=1
    )


def creation(topics: Iterable[Topic], tried: bool = False) -> Any:
    """The creation of topics; ``tried``: brokers only say whether they would."""
    new = CreateTopicsRequest.CreatableTopic
    created = [
        new(
            name=topic.name,
            num_partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            assignments=[],
            configs=[new.CreatableTopicConfig(name=name, value=str(value)) for name, value in topic.config.items()],
        )
        for topic in topics
    ]
    return CreateTopicsRequest(topics=created, timeout_ms=ANSWER_MS, validate_only=tried)


def creation_on(name: str, replicas: Mapping[int, list[int]], config: Mapping[str, str]) -> Any:
    """The creation of a topic with given brokers for its replicas."""
    new = CreateTopicsRequest.CreatableTopic
    places = [new.CreatableReplicaAssignment(partition_index=p, broker_ids=ids) for p, ids in replicas.items()]
    settled = [new.CreatableTopicConfig(name=key, value=value) for key, value in config.items()]
    topic = new(name=name, num_partitions=-1, replication_factor=-1, assignments=places, configs=settled)
    return CreateTopicsRequest(topics=[topic], timeout_ms=ANSWER_MS)


def list_offsets(topic: str, partitions: Iterable[int], which: int) -> Any:
    """Where some partitions begin (EARLIEST) or end (LATEST)."""
    shape = ListOffsetsRequest.ListOffsetsTopic
    asked = [shape.ListOffsetsPartition(partition_index=partition, timestamp=which) for partition in partitions]
    return ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[shape(name=topic, partitions=asked)])


def coordinator(group: str) -> Any:
    """The broker that coordinates a group."""
    return FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[group], min_version=4)


def everything() -> Any:
    """All brokers and topics that the client may see."""
    return MetadataRequest(topics=None, allow_auto_topic_creation=False)


def groups() -> Any:
    """The groups that a broker coordinates."""
    return ListGroupsRequest(states_filter=[], types_filter=[])


def topic_deletion(names: Iterable[str]) -> Any:
    """The deletion of topics."""
    return DeleteTopicsRequest(topic_names=list(names), timeout_ms=ANSWER_MS, max_version=5)


def group_deletion(group: str) -> Any:
    """The deletion of a group."""
    return DeleteGroupsRequest(groups_names=[group])


def append(tp: TopicPartition, value: bytes) -> Any:
    """A new record, which the leader alone acknowledges. (Later versions name topics by id.)"""
    batch = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=FETCH_BYTES)
    batch.append(timestamp=None, key=None, value=value)
    batch.close()
    topic = ProduceRequest.TopicProduceData
    partition = topic.PartitionProduceData(index=tp.partition, records=batch.buffer())
    return ProduceRequest(
        transactional_id=None,
        acks=1,
        timeout_ms=ANSWER_MS,
        topic_data=[topic(name=tp.topic, partition_data=[partition])],
        max_version=12,
    )


def fetch(tp: TopicPartition, offset: int) -> Any:
    """The batches of a partition from an offset on, at once. (Later versions name topics by id.)"""
    topic = FetchRequest.FetchTopic
    partition = topic.FetchPartition(partition=tp.partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=FETCH_BYTES,
        isolation_level=0,
        topics=[topic(topic=tp.topic, partitions=[partition])],
        max_version=12,
    )


def settings(broker: int, names: Iterable[str]) -> Any:
    """Some settings of a broker, which it answers itself."""
    resource = DescribeConfigsRequest.DescribeConfigsResource
    asked = resource(resource_type=BROKER, resource_name=str(broker), configuration_keys=list(names))
    return DescribeConfigsRequest(resources=[asked], include_synonyms=False, include_documentation=False)


def topic_settings(topic: str) -> Any:
    """The settings of a topic; its own ones have ``OF_TOPIC`` as their source."""
    resource = DescribeConfigsRequest.DescribeConfigsResource
    asked = resource(resource_type=TOPIC, resource_name=topic, configuration_keys=None)
    return DescribeConfigsRequest(resources=[asked], include_synonyms=False, include_documentation=False)


def log_levels(broker: int, loggers: Iterable[str]) -> Any:
    """The levels of some loggers of a broker, which it answers itself."""
    resource = DescribeConfigsRequest.DescribeConfigsResource
    asked = resource(resource_type=BROKER_LOGGER, resource_name=str(broker), configuration_keys=list(loggers))
    return DescribeConfigsRequest(resources=[asked], include_synonyms=False, include_documentation=False)


def log_level(broker: int, logger: str, level: str) -> Any:
    """A new level of a logger of a broker, until that ends."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = resource.AlterableConfig(name=logger, config_operation=SET, value=level)
    asked = resource(resource_type=BROKER_LOGGER, resource_name=str(broker), configs=[change])
    return IncrementalAlterConfigsRequest(resources=[asked], validate_only=False)
