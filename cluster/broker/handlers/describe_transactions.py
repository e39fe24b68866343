"""DescribeTransactions (65): what the coordinator knows of transactional ids (KIP-664)."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.portions import Steps, chunks
from cluster.broker.services import Services
from cluster.coordinator.transaction.describing import STATE_NAMES, describe
from cluster.protocol.by_topic import by_topic
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import DescribeTransactionsRequest, DescribeTransactionsResponse

#: Partitions that are told before others have their turn.
AT_ONCE = 100


def handle(
    services: Services, request: DescribeTransactionsRequest, _exchange: Exchange
) -> Steps[DescribeTransactionsResponse]:
    state_class = DescribeTransactionsResponse.TransactionState
    owned = services.transactions.coordinator.owned
    states = []
    for transactional_id in dict.fromkeys(request.transactional_ids):
        found = describe(owned, transactional_id)
        if isinstance(found, ErrorCode):
            states.append(state_class(error_code=found, transactional_id=transactional_id, topics=[]))
            yield None
            continue
        topics = []
        for some in chunks([*by_topic(sorted(found.topic_partitions)).items()], AT_ONCE):
            topics += [state_class.TopicData(topic=topic, partitions=numbers) for topic, numbers in some]
            yield None
        states.append(
            state_class(
                error_code=ErrorCode.NONE,
                transactional_id=transactional_id,
                transaction_state=STATE_NAMES[found.state],
                transaction_timeout_ms=found.timeout_ms,
                transaction_start_time_ms=found.start_timestamp_ms,
                producer_id=found.producer_id,
                producer_epoch=found.producer_epoch,
                topics=topics,
            )
        )
        yield None
    return DescribeTransactionsResponse(transaction_states=states)
