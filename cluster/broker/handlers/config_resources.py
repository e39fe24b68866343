"""What DescribeConfigs and the two AlterConfigs are about: topics, this broker, and all brokers.

Owns which of a request's resources are served here, and the errors of those that are not.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from cluster.broker.control.config_store import ALL_BROKERS, BROKERS, TOPICS, NoSuchTopic
from cluster.broker.services import Services
from cluster.config.broker_keys import BROKER_KEYS
from cluster.config.errors import ConfigError
from cluster.config.keys import KeyTable
from cluster.config.topic import TOPIC_KEYS
from cluster.metadata.store import StoreError, TooLargeError
from cluster.metadata.znodes import MalformedZnode
from cluster.protocol.errors import ErrorCode


class ResourceType(IntEnum):
    """``resource_type`` of the three requests."""

    TOPIC = 2
    BROKER = 4


class ResourceRefused(Exception):
    """A resource that is not there, or not here. Carries the code to answer and a text for people."""

    def __init__(self, error_code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code


#: What a resource of a request may end with; ``refusal`` has the answer to each.
REFUSALS = (ResourceRefused, NoSuchTopic, ConfigError, MalformedZnode, TimeoutError, StoreError)


def refusal(error: Exception, name: str) -> tuple[ErrorCode, str]:
    """The code and the text to answer for the resource ``name``, which ended with one of ``REFUSALS``."""
    if isinstance(error, ResourceRefused):
        return error.error_code, str(error)
    if isinstance(error, NoSuchTopic):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name!r}"
    if isinstance(error, (ConfigError, MalformedZnode, TooLargeError)):
        return ErrorCode.INVALID_CONFIG, str(error)
    # A change may have happened all the same; doing it again does no harm.
    return ErrorCode.REQUEST_TIMED_OUT, "ZooKeeper, where configurations are, does not answer"


class Resource(NamedTuple):
    """Something with a configuration: where it is stored, and which keys it may have."""

    kind: str
    name: str
    table: KeyTable

    @property
    def is_topic(self) -> bool:
        return self.kind == TOPICS


def find(services: Services, resource_type: int, name: str) -> Resource:
    """Raises ResourceRefused."""
    if resource_type == ResourceType.TOPIC:
        if services.metadata.topic(name) is None:
            raise ResourceRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name!r}")
        return Resource(TOPICS, name, TOPIC_KEYS)
    if resource_type == ResourceType.BROKER:
        own = str(services.config.broker_id)
        if name not in ("", own):
            raise ResourceRefused(
                ErrorCode.INVALID_REQUEST, f"this is broker {own}, not {name!r}; ask that one, or all by the empty name"
            )
        return Resource(BROKERS, name or ALL_BROKERS, BROKER_KEYS)
    raise ResourceRefused(
        ErrorCode.INVALID_REQUEST, f"resource type {resource_type} has no configuration here: topics are 2, brokers 4"
    )
