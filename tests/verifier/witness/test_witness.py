"""What the harness saw itself: between which looks an epoch began, and how far from that an election reaches."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.faults.catalogue import FAULTS
from chaos.faults.load_fault import LoadFault
from tests.support.settings import run_model, settings
from verifier.closing.closing import gather
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import TopicSpec
from verifier.explain.events import event_text
from verifier.witness.effectiveness import Injected
from verifier.witness.leaderships import Return, Sighting, leaderships, led_since, returns
from verifier.witness.witness import SLACK_NS, EpochStart, Span, Witness, sightings, spans, witness

SECOND = 1_000_000_000
SETTINGS = settings(replica_lag_time_max_ms=2000, session_timeout_ms=1000)
SEEN = {("t", 0): [Sighting(1, None, 0), Sighting(3, 99 * SECOND, 101 * SECOND)]}


def test_an_election_reaches_as_far_as_its_settings() -> None:
    """Back by the lag of a follower in sync and the time a dead leader goes unnoticed; forward by the slack alone."""
    found = Witness(SEEN).election("t", 0, EpochStart(3, 70, 80, None, None), SETTINGS)
    assert found is not None
    assert (found.epoch, found.start_offset, found.end_offset, found.about_ns) == (3, 70, 80, 101 * SECOND)
    assert (found.from_ns, found.until_ns) == (95 * SECOND - SLACK_NS, 101 * SECOND + SLACK_NS)


def test_records_tell_more_closely_than_looks_when_an_epoch_began() -> None:
    """Not before one that stands below it was sent, and not after one that stands in it was acknowledged."""
    found = Witness(SEEN).election("t", 0, EpochStart(2, 70, 80, 100 * SECOND, 100 * SECOND + 5), SETTINGS)
    assert found is not None
    assert (found.about_ns, found.until_ns) == (100 * SECOND + 5, 100 * SECOND + 5 + SLACK_NS)
    assert found.from_ns == 96 * SECOND - SLACK_NS


def test_acknowledgements_that_contradict_the_looks_do_not_move_an_election() -> None:
    """The last look that still saw epoch 1 was at 99 s: epoch 3 may have begun a little before, not long before."""
    for at_s, contradicts in ((96, False), (95, True)):
        start = EpochStart(3, 70, 80, None, at_s * SECOND)
        found = Witness(LED).election("t", 0, start, SETTINGS)
        assert Witness(LED).contradicts("t", 0, start) is contradicts
        assert found is not None and found.about_ns == (101 if contradicts else at_s) * SECOND
    assert not Witness(LED).contradicts("t", 0, EpochStart(1, 70, 80, None, 0))
    assert not Witness(LED).contradicts("t", 0, EpochStart(3, 70, 80, None, None))


@pytest.mark.parametrize(
    ("topic", "partition", "epoch"), [("t", 0, 1), ("t", 0, 0), ("t", 0, 4), ("t", 1, 3), ("u", 0, 3)]
)
def test_an_epoch_that_the_conductor_did_not_see_begin_is_no_election(topic: str, partition: int, epoch: int) -> None:
    """The first one was there at the first look; of a later one, another partition or topic it knows nothing."""
    assert Witness(SEEN).election(topic, partition, EpochStart(epoch, 70, 80, None, None), SETTINGS) is None


LED = {
    ("t", 0): [
        Sighting(1, None, 0, 4),
        Sighting(3, 99 * SECOND, 101 * SECOND, 5),
        Sighting(4, 130 * SECOND, 131 * SECOND, 4),
    ]
}


@pytest.mark.parametrize(
    ("fault", "broker", "start_s", "until_s"),
    [
        ("isolate-broker", 4, 98, 120), ("pause-leader", 4, 98, 120), ("cut-link", 4, 98, 120),
        ("isolate-broker", 4, 1, 101), ("isolate-broker", 5, 98, 101), ("isolate-broker", 6, 98, 101),
        ("kill-leader", 4, 98, 101), ("kill-controller", 4, 98, 101), ("rolling-restart", 4, 98, 101),
    ],
)  # fmt: skip
def test_only_a_fault_that_blinds_the_former_leader_makes_an_election_reach_further(
    fault: str, broker: int, start_s: int, until_s: int
) -> None:
    """It acknowledges until it is healed. One that is dead does not, nor need the new leader or a bystander."""
    found = Witness(LED, (span(start_s, 120 if start_s > 1 else 2, broker, fault=fault),)).election(
        "t", 0, EpochStart(3, 70, 80, None, None), SETTINGS
    )
    assert found is not None and found.until_ns == until_s * SECOND + SLACK_NS


@pytest.mark.parametrize("fault", FAULTS)
def test_only_a_fault_on_the_cluster_may_have_delayed_an_election(fault: str) -> None:
    """Whatever it hit: not that clients were killed or stopped meanwhile."""
    found = Witness(LED, (span(80, 120, fault=fault),)).election("t", 0, EpochStart(3, 70, 80, None, None), SETTINGS)
    assert found is not None
    assert (found.from_ns < 90 * SECOND) is not issubclass(FAULTS[fault], LoadFault)


def test_a_leader_that_is_not_recorded_may_be_whoever_a_fault_hit() -> None:
    """Where an entry lacks the leader, any broker that a fault hit may have been it."""
    for brokers, until_s in (((6,), 120), ((), 101)):
        found = Witness(SEEN, (span(98, 120, *brokers),)).election("t", 0, EpochStart(3, 7, 8, None, None), SETTINGS)
        assert found is not None and found.until_ns == until_s * SECOND + SLACK_NS


def span(start_s: int, end_s: int, *brokers: int, fault: str = "cut-link") -> Span:
    return Span(fault, "of these brokers", start_s * SECOND, end_s * SECOND, frozenset(brokers))


def test_the_brokers_between_which_and_producers_a_fault_stood_are_known_by_its_target() -> None:
    """The brokers that it names, or the links; links between brokers are none. What was skipped hit nothing."""

    def injected(target: str, end_ns: int | None = 9, skipped: bool = False) -> Injected:
        return Injected("a fault", target, 5, end_ns, effective=not skipped, skipped=skipped, probe={})

    happened = [
        injected("broker 12, leader of t-0, 7 links"), injected("brokers 1, 2, 3, one after the other"),
        injected("producers-b1, producers-b2, requests 50 ms later"), injected("6 links of broker 3", None),
        injected("b1-b2, b3-b2, requests only, lossy"), injected("ZooKeeper, pid 4"),
        injected("broker 1", skipped=True),
    ]  # fmt: skip
    assert [set(each.others) for each in spans(happened)] == [set()] * 4 + [{1, 2, 3}, set()]
    assert [(set(each.brokers), each.end_ns) for each in spans(happened)] == [
        ({12}, 9), ({1, 2, 3}, 9), ({1, 2}, 9), ({3}, 2**62), (set(), 9), (set(), 9),
    ]  # fmt: skip


def test_a_fault_counts_for_the_partitions_that_its_broker_led_meanwhile() -> None:
    """From the last look that saw another leader to the first that did again; without a leader, never."""
    seen = {
        ("t", 0): [Sighting(1, None, 0, 1), Sighting(2, 20 * SECOND, 30 * SECOND, 2)],
        ("t", 1): [Sighting(1, None, 0)],
    }
    first, second = span(29, 90, 1), span(10, 19, 2)
    both, neither = span(10, 20, 1, 2), span(31, 90, 1)
    found = Witness(seen, (first, second, both, neither))
    assert found.held("t", 0) == [first, both]
    assert found.held("t", 1) == found.held("u", 0) == []


def test_since_when_the_leader_of_an_epoch_can_have_led() -> None:
    """From the last look before its first epoch on. Who is not recorded may be any broker, and led for all we know."""
    assert led_since(Witness(LED).led("t", 0)) == {1: 0, 3: 99 * SECOND, 4: 0}
    assert led_since(leaderships([Sighting(1, None, 0), *LED["t", 0][1:]])) == {3: 0, 4: 0}
    assert led_since(Witness(LED).led("u", 0)) == {}


def test_which_leaders_came_back() -> None:
    """Until the first look that saw another at most, from the last one that did on at least; known leaders alone."""
    assert returns(Witness(LED).led("t", 0)) == [Return(4, 101 * SECOND, 130 * SECOND)]
    again = [*LED["t", 0], Sighting(5, 140 * SECOND, 141 * SECOND, 4)]
    both = [Return(4, 101 * SECOND, 130 * SECOND), Return(5, 101 * SECOND, 130 * SECOND)]
    assert returns(leaderships(again)) == both
    assert returns(leaderships([Sighting(1, None, 0), *LED["t", 0][1:]])) == []


@pytest.mark.parametrize("fault", ["reset", "drop-response", "kill-leader", "rolling-restart", "refuse", "flapping"])
def test_a_fault_that_ends_connections_holds_nothing_up(fault: str) -> None:
    """Nor does one that only responses wait for."""
    seen = {("t", 0): [Sighting(1, None, 0, 1)]}
    stalled = Span("slow-link", "producers-b1, responses 50 ms later", 0, SECOND, frozenset((1,)))
    assert Witness(seen, (span(0, 9, 1, fault=fault), stalled)).held("t", 0) == []


def test_only_the_first_look_at_an_epoch_counts() -> None:
    """A change of the ISR is no election."""
    looks = [(1, None, 0), (1, 5, 10), (2, 15, 20), (2, 25, 30)]
    entries = [{"partition": 4, "leader_epoch": e, "before_ns": before, "time_ns": at} for e, before, at in looks]
    first, second = Sighting(1, None, 0), Sighting(2, 15, 20)
    assert sightings(entries, ["t"]) == {("t", 4): [first, second]}


def test_only_the_first_look_at_a_partition_has_none_before_it() -> None:
    """An election without its earlier look would excuse nothing of what it cut off."""
    first = {"partition": 0, "leader_epoch": 1, "before_ns": None, "time_ns": 5}
    with pytest.raises(TypeError, match="only the first look"):
        sightings([first, {**first, "leader_epoch": 2}], ["t"])
    with pytest.raises(TypeError, match="only the first look"):
        sightings([{**first, "before_ns": "5"}], ["t"])


def test_a_record_of_leaders_that_cannot_be_is_none() -> None:
    """The conductor notes the newest epoch alone, and one has one leader; it may have none for a while."""
    first = {"partition": 0, "leader_epoch": 1, "before_ns": None, "time_ns": 5, "leader": 1}
    later = {**first, "leader_epoch": 3, "before_ns": 6, "time_ns": 7}
    with pytest.raises(ValueError, match="from leader epoch 3 back to 2"):
        sightings([first, later, {**later, "leader_epoch": 2}], ["t"])
    with pytest.raises(ValueError, match=r"leaders \[1, 2\] in epoch 3"):
        sightings([first, later, {**later, "leader": 2}], ["t"])
    assert len(sightings([first, later, {**later, "leader": -1}, {**later, "leader": None}], ["t"])["t", 0]) == 2


def test_looks_at_two_topics_are_told_apart() -> None:
    """Each line names its topic; one that does not is about the only topic of the run, and cannot be of several."""
    at = {"partition": 0, "before_ns": None, "time_ns": 5}
    entries = [{**at, "topic": "t", "leader_epoch": 1, "leader": 2}, {**at, "topic": "u", "leader_epoch": 1}]
    assert sightings(entries, ["t", "u"]) == {("t", 0): [Sighting(1, None, 5, 2)], ("u", 0): [Sighting(1, None, 5)]}
    with pytest.raises(KeyError):
        sightings([{**at, "leader_epoch": 1}], ["t", "u"])


@pytest.mark.parametrize("text", ["[]\n", "{}\n", "nonsense\n", '{"partition": 0, "leader_epoch": null}\n'])
def test_a_witness_that_cannot_be_read_excuses_nothing_and_says_so(tmp_path: Path, text: str) -> None:
    """Nor does one that is not there; that it is missing is seen by the seal."""
    directory = RunDirectory(tmp_path)
    assert witness(directory, ["t"]) == Witness()
    directory.leaders_jsonl.write_text(text)
    assert witness(directory, ["t"]) == Witness()
    unreadable = gather(directory, run_model(topics=[TopicSpec("t", 1, 3, "", {})])).unreadable
    assert [each.path for each in unreadable if each.path == "leaders.jsonl"] == ["leaders.jsonl"]


def test_events_are_told_with_their_time() -> None:
    """In UTC, to a tenth of a second."""
    run = run_model(started="2026-01-01T12:00:00+00:00", started_ns=50 * SECOND)
    event = {"at_ns": 53_150_000_000, "epoch": 3, "start_offset": 1200, "first": 4, "last": 9, "text": "told"}
    assert event_text("election", event, run) == "election of epoch 3 at offset 1200, about 12:00:03.1"
    assert event_text("retry", event, run) == "told of sequences 4 to 9, about 12:00:03.1"
    assert event_text("disconnect", event, run) == "connection lost about 12:00:03.1 (told)"
    back = "its leader was replaced, and led again from epoch 3 on, about 12:00:03.1"
    assert event_text("returned", {**event, "text": "3"}, run) == back
    refused = "told, and then sequences 4 to 9 were refused as out of order, about 12:00:03.1"
    assert event_text("refusal", event, run) == refused
    assert event_text("timeout", event, run) == "delivery timed out about 12:00:03.1 (told)"
