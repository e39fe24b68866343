"""``drop-response``: what shows that a response was lost, and that its request came again."""

from __future__ import annotations

import pytest

from chaos.faults.drop_response import DUPLICATES, RETRIES, DropResponse
from chaos.schedules.model import Injection
from tests.chaos.conducted import conduct, conduct_with_little_patience, probe_of
from tests.chaos.fake_cluster import FakeCluster


def test_drop_response_needs_a_retry_to_have_bitten() -> None:
    """An answer that was lost and never asked for again proves nothing."""
    cluster = FakeCluster()
    cluster.retries_after_cut = False
    record = conduct_with_little_patience(cluster, Injection(0.0, "drop-response", 0.01, {"partition": 0}))
    assert record[0]["effective"] is True
    assert record[-1]["effective"] is False


def test_drop_response_bites_when_the_retry_comes_to_another_leader() -> None:
    """That broker did not see the batch before: to it, the retry is a duplicate by its sequence. The first leader was
    killed, and its counts begin again."""
    cluster = FakeCluster()
    counted = cluster.counter

    async def counter(broker_id: int, name: str) -> float | None:
        is_over = cluster.links.made > 0 and not cluster.links.holds_frames("producers-b1")
        if name == RETRIES:
            return 7.0 if broker_id == 1 and not is_over else 0.0
        if name == DUPLICATES:
            return 2.0 if broker_id == 2 and is_over else 0.0
        return await counted(broker_id, name)

    cluster.counter = counter  # type: ignore[method-assign]
    record = conduct_with_little_patience(cluster, Injection(0.0, "drop-response", 0.01, {"partition": 0}))
    assert record[-1]["effective"] is True and probe_of(record[-1])["retries"] == 2


def test_drop_response_bites_when_the_response_is_lost_after_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy broker answers later than the probe waits: what counts is what was lost until the heal."""
    cluster = FakeCluster()
    cluster.links.without_frames = {"producers-b1"}
    heal = DropResponse.heal

    async def answered_late(fault: DropResponse) -> None:
        cluster.links.without_frames.clear()
        await heal(fault)

    monkeypatch.setattr(DropResponse, "heal", answered_late)
    record = conduct_with_little_patience(cluster, Injection(0.0, "drop-response", 0.01, {"partition": 0}))
    assert [record[0]["effective"], record[-1]["effective"]] == [False, True]
    assert probe_of(record[-1])["responses_lost"] == 1


def test_drop_response_without_a_lost_response_did_not_bite() -> None:
    """What was resent then was resent for another reason."""
    cluster = FakeCluster()
    cluster.links.without_frames = {"producers-b1"}
    record = conduct_with_little_patience(cluster, Injection(0.0, "drop-response", 0.01, {"partition": 0}))
    assert probe_of(record[-1])["retries"]
    assert record[-1]["effective"] is False


def test_drop_response_needs_no_frames_with_an_external_toxiproxy() -> None:
    """It has no counters either: batches that came while all responses were dropped, and a retry, show it."""
    cluster = FakeCluster()

    async def uncounted(_link: str) -> None:
        return None

    cluster.links.stats = uncounted  # type: ignore[method-assign, assignment]
    record = conduct(cluster, Injection(0.0, "drop-response", 0.01, {"partition": 0}))
    assert [entry["effective"] for entry in record] == [True, True]
    assert "responses_lost" not in probe_of(record[-1])
