"""What has become of the topics of one request to the controller. Does not own how they are made, grown or deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from uuid import UUID

from cluster.broker.control.controller.epoch_fence import NOT_CONTROLLER_TEXT
from cluster.controller.topics import MAX_PARTITIONS_AT_ONCE, Assignment
from cluster.protocol.errors import ErrorCode

NO_TOPIC = UUID(int=0)
#: Shared by thousands of topics that fail.
_UNASSIGNED: Assignment = MappingProxyType({})
_UNCONFIGURED: Mapping[str, str] = MappingProxyType({})


@dataclass(slots=True)
class TopicOutcome:
    """What became of one topic of a request."""

    name: str
    error_code: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: UUID = NO_TOPIC
    assignment: Assignment = field(default_factory=lambda: _UNASSIGNED)
    config: Mapping[str, str] = field(default_factory=lambda: _UNCONFIGURED)

    def fail(self, error_code: ErrorCode, message: str | None) -> None:
        self.error_code = error_code
        self.message = message


@dataclass(slots=True)
class AdminOutcome:
    """What has become of a request so far, and the answers of the brokers that are to be waited for."""

    topics: list[TopicOutcome] = field(default_factory=list)
    answers: list[asyncio.Future[Any]] = field(default_factory=list)
    #: Whether what was made has partitions without a leader yet.
    is_placing: bool = False

    @property
    def room(self) -> int:
        """How many partitions the rest of the request may have."""
        return MAX_PARTITIONS_AT_ONCE - sum(len(topic.assignment) for topic in self.topics)

    def time_out(self) -> None:
        """The brokers have not all taken it over in time; the work continues (Kafka's KafkaApis)."""
        for topic in self.topics:
            if topic.error_code is ErrorCode.NONE:
                topic.fail(ErrorCode.REQUEST_TIMED_OUT, "The brokers have not all taken it over yet.")


def not_controller(names: Iterable[str]) -> list[TopicOutcome]:
    """Every topic refused: clients look for the controller in Metadata and go there."""
    return [TopicOutcome(name, ErrorCode.NOT_CONTROLLER, NOT_CONTROLLER_TEXT) for name in names]
