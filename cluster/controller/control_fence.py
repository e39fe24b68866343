"""What stops a controller that has been succeeded: brokers refuse its requests, and its writes miss. Pure.

Owns the checks of LeaderAndIsr, UpdateMetadata and StopReplica as a whole, which the receiving broker makes before
anything else (Kafka's KafkaZkClient; docs/reference/kafka.md "Controller requests"), and the version that a
controller's writes insist on. The checks of each partition belong to replication (``replication.leader_epochs``).
"""

from __future__ import annotations

from cluster.protocol.errors import ErrorCode


def required_version(known: int) -> int | None:
    """The version that a node must have for a controller to write on the strength of it: the one it knows.

    For /controller_epoch, of which each election makes a new version, and for every node that is overwritten
    (Kafka's KafkaZkClient). None would be any version: then two controllers overwrite each other.
    """
    return known


def control_request_error(
    controller_epoch: int, broker_epoch: int, *, known_controller_epoch: int, own_broker_epoch: int
) -> ErrorCode:
    """STALE_CONTROLLER_EPOCH for a controller that has been succeeded, STALE_BROKER_EPOCH for a former life of ours.

    A broker that has not registered in this life (own epoch negative) obeys no one: what reaches it was meant for its
    former life; the controller tries again. A broker epoch above ours is legal: the controller may learn of a new
    registration before we have read back its number. One of -1 is refused: Kafka's senders before 2.2 used it when they
    knew no epoch, but our controllers always know one.
    """
    if controller_epoch < known_controller_epoch:
        return ErrorCode.STALE_CONTROLLER_EPOCH
    if own_broker_epoch < 0 or broker_epoch < own_broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE
