"""What the harness saw itself: between which looks an epoch began, and how far from that an election reaches."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.settings import run_model, settings
from verifier.effectiveness import Injected
from verifier.evidence.run_directory import RunDirectory
from verifier.explain.events import event_text
from verifier.witness import SLACK_NS, EpochStart, Sighting, Span, Witness, sightings, spans, witness

SECOND = 1_000_000_000
SETTINGS = settings(replica_lag_time_max_ms=2000, session_timeout_ms=1000)
SEEN = {0: [Sighting(1, None, 0), Sighting(3, 99 * SECOND, 101 * SECOND)]}


def test_an_election_reaches_as_far_as_its_settings() -> None:
    """Back by the lag of a follower in sync and the time a dead leader goes unnoticed; forward by the slack alone."""
    found = Witness(SEEN).election(0, EpochStart(3, 70, None, None), SETTINGS)
    assert found is not None
    assert (found.epoch, found.start_offset, found.about_ns) == (3, 70, 101 * SECOND)
    assert (found.from_ns, found.until_ns) == (95 * SECOND - SLACK_NS, 101 * SECOND + SLACK_NS)


def test_records_tell_more_closely_than_looks_when_an_epoch_began() -> None:
    """Not before one that stands below it was sent, and not after one that stands in it was acknowledged."""
    found = Witness(SEEN).election(0, EpochStart(2, 70, 100 * SECOND, 100 * SECOND + 5), SETTINGS)
    assert found is not None
    assert (found.about_ns, found.until_ns) == (100 * SECOND + 5, 100 * SECOND + 5 + SLACK_NS)
    assert found.from_ns == 96 * SECOND - SLACK_NS


@pytest.mark.parametrize(("partition", "epoch"), [(0, 1), (0, 0), (0, 4), (1, 3)])
def test_an_epoch_that_the_conductor_did_not_see_begin_is_no_election(partition: int, epoch: int) -> None:
    """The first one was there at the first look; of a later one, or of another partition, it knows nothing."""
    assert Witness(SEEN).election(partition, EpochStart(epoch, 70, None, None), SETTINGS) is None


def test_a_fault_that_lasts_makes_an_election_reach_further() -> None:
    """A leader that is cut off acknowledges until it is healed; one that was over long before changes nothing."""
    lasting, over = Span("isolate-broker", 98 * SECOND, 120 * SECOND, True), Span("reset", 1, 2, True)
    found = Witness(SEEN, (over, lasting)).election(0, EpochStart(3, 70, None, None), SETTINGS)
    assert found is not None and found.until_ns == 120 * SECOND + SLACK_NS


def test_faults_that_break_connections_of_producers_are_told_from_others() -> None:
    """By their kind, or by the link; what was skipped broke nothing, and what was not healed lasts."""

    def injected(fault: str, target: str, end_ns: int | None = 9, skipped: bool = False) -> Injected:
        return Injected(fault, target, 5, end_ns, effective=not skipped, skipped=skipped, probe={})

    happened = [
        injected("kill-leader", "broker 1"), injected("reset", "producers-b2, at the next request"),
        injected("cut-link", "b1-b2, requests only, lossy"), injected("reset", "none", skipped=True),
        injected("pause-leader", "broker 3", None),
    ]  # fmt: skip
    assert [(each.connections, each.end_ns) for each in spans(happened)] == [
        (True, 9), (True, 9), (False, 9), (False, 2**62),
    ]  # fmt: skip


def test_only_the_first_look_at_an_epoch_counts() -> None:
    """A change of the ISR is no election."""
    looks = [(1, None, 0), (1, 5, 10), (2, 15, 20), (2, 25, 30)]
    entries = [{"partition": 4, "leader_epoch": e, "before_ns": before, "time_ns": at} for e, before, at in looks]
    assert sightings(entries) == {4: [Sighting(1, None, 0), Sighting(2, 15, 20)]}


@pytest.mark.parametrize("text", ["[]\n", "{}\n", "nonsense\n", '{"partition": 0, "leader_epoch": null}\n'])
def test_a_witness_that_cannot_be_read_excuses_nothing(tmp_path: Path, text: str) -> None:
    """Nor does one that is not there."""
    directory = RunDirectory(tmp_path)
    assert witness(directory) == Witness()
    directory.leaders_jsonl.write_text(text)
    assert witness(directory) == Witness()


def test_events_are_told_with_their_time() -> None:
    """In UTC, to a tenth of a second."""
    run = run_model(started="2026-01-01T12:00:00+00:00", started_ns=50 * SECOND)
    event = {"at_ns": 53_150_000_000, "epoch": 3, "start_offset": 1200, "first": 4, "last": 9, "text": "told"}
    assert event_text("election", event, run) == "election of epoch 3 at offset 1200, about 12:00:03.1"
    assert event_text("retry", event, run) == "told of sequences 4 to 9, about 12:00:03.1"
    assert event_text("disconnect", event, run) == "connection lost about 12:00:03.1 (told)"
    assert event_text("timeout", event, run) == "delivery timed out about 12:00:03.1 (told)"
