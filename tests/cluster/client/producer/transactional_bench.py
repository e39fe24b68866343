"""A producer with transactions that the test carries on, and a broker that coordinates them as it is told.

Owns the answers of a coordinator that agrees to everything; a test replaces the one that it is about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster.client.producer.invariants import validate_sender
from cluster.client.producer.transaction.invariants import validate
from cluster.client.producer.transaction.states import TxnProducerState
from cluster.client.producer.transaction.transaction_errors import TransactionTimeout
from cluster.protocol import messages
from cluster.protocol.apis import ApiKey
from cluster.protocol.batch import BatchHeader, parse_header
from cluster.protocol.errors import ErrorCode
from cluster.protocol.produce import ProduceRequest, ProduceResult
from tests.cluster.client.producer.test_producer import TURNS, Bench

ID, PRODUCER_ID = "id", 7
NODE = 1

FIND, INIT, ADD = ApiKey.FIND_COORDINATOR, ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN
ADD_OFFSETS, COMMIT_OFFSETS, END = ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN
TXN_APIS = (FIND, INIT, ADD, ADD_OFFSETS, COMMIT_OFFSETS, END)


def found(node: int = NODE, code: ErrorCode = ErrorCode.NONE) -> Callable[[Any, Any], Any]:
    """The coordinator is there, in every version of the answer."""
    response = messages.response_class(FIND)

    def answer(request: Any, header: Any) -> Any:
        where = {"error_code": code, "node_id": node, "host": f"b{node}", "port": node, "error_message": None}
        if header.api_version < 4:
            return response(**where)
        return response(coordinators=[response.Coordinator(key=key, **where) for key in request.coordinator_keys])

    return answer


def added(code: ErrorCode = ErrorCode.NONE) -> Callable[[Any, Any], Any]:
    topic_result = messages.response_class(ADD).AddPartitionsToTxnTopicResult

    def answer(request: Any, header: Any) -> Any:
        result = topic_result.AddPartitionsToTxnPartitionResult
        topics = [
            topic_result(
                name=topic.name,
                results_by_partition=[
                    result(partition_index=each, partition_error_code=code) for each in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ]
        return messages.response_class(ADD)(results_by_topic_v3_and_below=topics)

    return answer


def offsets_committed(code: ErrorCode = ErrorCode.NONE) -> Callable[[Any, Any], Any]:
    topic_result = messages.response_class(COMMIT_OFFSETS).TxnOffsetCommitResponseTopic

    def answer(request: Any, header: Any) -> Any:
        result = topic_result.TxnOffsetCommitResponsePartition
        topics = [
            topic_result(
                name=topic.name,
                partitions=[result(partition_index=each.partition_index, error_code=code) for each in topic.partitions],
            )
            for topic in request.topics
        ]
        return messages.response_class(COMMIT_OFFSETS)(topics=topics)

    return answer


def coded(api_key: ApiKey, code: ErrorCode = ErrorCode.NONE) -> Callable[[Any, Any], Any]:
    """An answer that is a code alone."""
    return lambda request, header: messages.response_class(api_key)(error_code=code)


class TransactionalBench(Bench):
    """Every question is answered well, and an epoch is raised when it is asked for."""

    def __init__(self, partitions: int = 1, **config: object) -> None:
        super().__init__(partitions, transactional_id=ID, **config)
        self.epoch = 0
        answers = self.selector.answers
        answers[FIND] = found()
        answers[INIT] = self.identify
        answers[ADD] = added()
        answers[COMMIT_OFFSETS] = offsets_committed()
        for api_key in (ADD_OFFSETS, END):
            answers[api_key] = coded(api_key)
        self._turn = self.producer._io._turn
        self.producer._io._turn = self.turn  # type: ignore[method-assign]

    def turn(self) -> bool:
        """A turn, after which everything holds that always does."""
        goes_on = self._turn()
        shared = self.producer._shared
        assert shared.transactions is not None
        with shared.lock:
            validate(shared.transactions)
            if shared.transactions.state is not TxnProducerState.FATAL_ERROR:
                validate_sender(shared.core)
        return goes_on

    def identify(self, request: Any, header: Any) -> Any:
        if getattr(request, "producer_id", -1) >= 0:
            self.epoch += 1
        return messages.response_class(INIT)(error_code=0, producer_id=PRODUCER_ID, producer_epoch=self.epoch)

    def finish(self, call: Callable[[], None]) -> None:
        """Make a call again and again, with a turn between, until it has its outcome."""
        for _ in range(TURNS):
            try:
                return call()
            except TransactionTimeout:
                self.producer._io._turn()
        return call()

    def start(self) -> TransactionalBench:
        """An id is there, topics are known, and a transaction has begun."""
        self.finish(self.producer.init_transactions)
        self.until(lambda: self.producer._shared.version)
        self.learn("t")
        self.producer.begin_transaction()
        return self

    def learn(self, topic: str) -> None:
        """No record is sent for it: it would fail, and its transaction with it."""
        with self.producer._lock:
            self.producer._shared.want(topic)
        self.until(lambda: topic in self.producer._topics)

    def asked(self, *api_keys: ApiKey) -> list[Any]:
        """The requests of these APIs so far."""
        return [request for _node, header, request in self.selector.requests if header.api_key in api_keys]

    def order(self) -> list[ApiKey]:
        """The APIs that were asked, but for metadata and versions."""
        known = (*TXN_APIS, ApiKey.PRODUCE)
        return [ApiKey(header.api_key) for _node, header, _ in self.selector.requests if header.api_key in known]

    def silence(self, api_key: ApiKey) -> None:
        """From now on nothing is answered to it."""
        self.selector.answers.pop(api_key, None)

    def accept(self, count: int, code: ErrorCode = ErrorCode.NONE) -> ProduceRequest:
        """The Produce request of that number, answered."""
        number, request = self.next_request(count)
        self.answer(number, *(ProduceResult(each.topic, each.partition, code, 0) for each in request.partitions))
        return request


def headers_of(request: ProduceRequest) -> list[BatchHeader]:
    return [parse_header(each.records or b"") for each in request.partitions]
