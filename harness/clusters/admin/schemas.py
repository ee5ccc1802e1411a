"""A request of Kafka's protocol for which kafka-python has no schema: ConsumerGroupDescribe (KIP-848), version 1."""

from __future__ import annotations

from typing import Any

from kafka.protocol.api_message import ApiMessage

_KEY = {"apiKey": 69, "validVersions": "0-1", "flexibleVersions": "0+"}


def _field(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": "0+", **more}


_NULLABLE = {"nullableVersions": "0+", "default": "null"}
_PARTITIONS = [_field("TopicId", "uuid"), _field("TopicName", "string"), _field("Partitions", "[]int32")]
_ASSIGNMENT = [_field("TopicPartitions", "[]TopicPartitions", fields=_PARTITIONS)]
_MEMBER = [
    _field("MemberId", "string"),
    _field("InstanceId", "string", **_NULLABLE),
    _field("RackId", "string", **_NULLABLE),
    _field("MemberEpoch", "int32"),
    _field("ClientId", "string"),
    _field("ClientHost", "string"),
    _field("SubscribedTopicNames", "[]string"),
    _field("SubscribedTopicRegex", "string", **_NULLABLE),
    _field("Assignment", "Assignment", fields=_ASSIGNMENT),
    _field("TargetAssignment", "Assignment", fields=_ASSIGNMENT),
    _field("MemberType", "int8", versions="1+", default="-1"),
]
_GROUP = [
    _field("ErrorCode", "int16"),
    _field("ErrorMessage", "string", **_NULLABLE),
    _field("GroupId", "string"),
    _field("GroupState", "string"),
    _field("GroupEpoch", "int32"),
    _field("AssignmentEpoch", "int32"),
    _field("AssignorName", "string"),
    _field("Members", "[]Member", fields=_MEMBER),
    _field("AuthorizedOperations", "int32", default="-2147483648"),
]
_REQUEST = [_field("GroupIds", "[]string"), _field("IncludeAuthorizedOperations", "bool")]
_ANSWER = [_field("ThrottleTimeMs", "int32"), _field("Groups", "[]DescribedGroup", fields=_GROUP)]


def _message(like: str, kind: str, fields: list[dict[str, Any]]) -> Any:
    """A message class. The library finds a schema by the name of the class, and the class may patch it."""
    json = {**_KEY, "type": kind, "name": like.replace("DescribeGroups", "ConsumerGroupDescribe"), "fields": fields}
    return type(ApiMessage)(like, (ApiMessage,), {"json_patch": classmethod(lambda cls, _: json)})


ConsumerGroupDescribeRequest = _message("DescribeGroupsRequest", "request", _REQUEST)
ConsumerGroupDescribeResponse = _message("DescribeGroupsResponse", "response", _ANSWER)  # found by its key
