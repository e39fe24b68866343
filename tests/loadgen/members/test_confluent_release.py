"""How a librdkafka consumer that was abandoned is released: what hung two runs of ten."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from cluster.seams.clock import SystemClock
from loadgen.members import confluent
from loadgen.members.confluent import ConfluentMember


class LateConsumer:
    """Has rebalances waiting that no one polled for. Once it is closing, an answer to them is never answered."""

    def __init__(self, _config: Any, logger: Any) -> None:
        self.calls: list[str] = []
        self._waiting = 2

    def subscribe(self, _topics: list[str], **callbacks: Any) -> None:
        self._callbacks = callbacks

    def unsubscribe(self) -> None:
        self.calls.append("unsubscribe")

    def poll(self, _timeout_s: float) -> object | None:
        self.calls.append("poll")
        if not self._waiting:
            return None
        self._waiting -= 1
        self._callbacks["on_revoke"](self, [])
        return object()

    def close(self) -> None:
        self.calls.append("close")
        assert not self._waiting, "a rebalance is served while librdkafka ends: it may wait forever, with the GIL"


def test_what_waits_for_an_abandoned_consumer_is_taken_before_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves its topics first, so that it does not join again; what it is told then is no event."""
    monkeypatch.setattr(confluent, "Consumer", LateConsumer)
    member = ConfluentMember("t", {}, SystemClock())
    assert member.abandon() == []
    member.release()
    assert member.consumer.calls == ["unsubscribe", "poll", "poll", "poll", "close"]
    assert member.commit() == []


def test_a_static_member_that_was_fenced_is_released_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka refuses everything then; an error that no one takes would be one of the load's."""

    class Fenced(LateConsumer):
        def unsubscribe(self) -> None:
            super().unsubscribe()
            raise KafkaException(KafkaError(KafkaError._FATAL))

    monkeypatch.setattr(confluent, "Consumer", Fenced)
    member = ConfluentMember("t", {}, SystemClock())
    member.abandon()
    member.release()
    assert member.consumer.calls == ["unsubscribe", "poll", "poll", "poll", "close"]
