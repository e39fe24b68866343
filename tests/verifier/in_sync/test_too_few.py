"""When too few were in sync: the leader's notes, cut to the times at which no other broker can have led."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from cluster.broker.loading import LOADED
from cluster.broker.replicas.under_min_isr import UnderMinIsr
from tests.support.stories import SECOND
from tests.verifier.oracle import in_sync as oracle
from tests.verifier.oracle.reading import read
from tests.verifier.planted import planted_story
from tests.verifier.planted.in_sync import PLANTED
from verifier import explain
from verifier.checks.under_min_isr import Acknowledged, under_min_isr
from verifier.in_sync.in_sync_checks import of_in_sync
from verifier.in_sync.too_few import NEW_LIFE, IsrChange, TooFew, alone, noted_times
from verifier.witness.leaderships import Sighting
from verifier.witness.witness import Span, Witness

PLACE = ("t", 0)
#: Broker 1 is alone in epoch 3, from 4 s on.
NOTED = TooFew(PLACE, 1, 3, (1,), 2, 4 * SECOND, 2**62)


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_found_and_nothing_else(name: str, tmp_path: Path) -> None:
    """Without Spark: the check, its twin, and the sentence for people."""
    story = planted_story(name)
    directory = story.write(tmp_path / "run")
    found = of_in_sync(directory, story.model())
    wanted = PLANTED[name].expected.get(("under-min-isr", None))
    assert [(each.count, each.partition, each.offset) for each in found] == (
        [] if wanted is None else [(wanted["count"], 0, wanted["offset"])]
    )
    run, rows = read(directory)
    assert len(list(oracle.find_all(directory, run, rows))) == sum(each.count for each in found)
    for each in found:
        assert "after broker 1 had noted that in leader epoch 1 only 1 is in sync, of 2" in explain.sentence(each)


def line(event: str, time_s: int, partition: int = 0, epoch: int = 3) -> dict[str, object]:
    place = {"topic": "t", "partition": partition, "leader_epoch": epoch, "isr": [1], "min_insync_replicas": 2}
    return {"event": event, "monotonic_ns": time_s * SECOND, **(place if event != "logs-loaded" else {})}


def test_a_leaders_own_notes() -> None:
    """A time ends with the next line of the same partition, or with the leader's life; else never."""
    entries = [
        *(line("under-min-isr", 1), line("under-min-isr", 2, 1), line("under-min-isr", 3, epoch=4)),
        *(line("under-min-isr-over", 4), line("under-min-isr-over", 5), line("registered", 5), line("logs-loaded", 6)),
        line("under-min-isr", 7),
    ]
    found = sorted((each.start_ns // SECOND, each.end_ns // SECOND, each.place[1]) for each in noted_times(1, entries))
    assert found == [(1, 3, 0), (2, 6, 1), (3, 4, 0), (7, 2**62 // SECOND, 0)]


def test_a_brokers_own_words_are_understood() -> None:
    """Its journal and this reader, which share no name in the code, mean the same events."""
    entries: list[dict[str, object]] = []
    told = UnderMinIsr(PLACE, lambda event, details: entries.append({"event": event, "monotonic_ns": 5, **details}))
    leader = SimpleNamespace(
        leader_epoch=3,
        epoch_start_offset=50,
        isr=SimpleNamespace(committed=frozenset({1})),
        followers={2: None, 3: None},
    )
    for each in (leader, None):
        told.look(each, 2, 40)  # type: ignore[arg-type]
    assert list(noted_times(1, entries)) == [NOTED._replace(start_ns=5, end_ns=5, told=50)]
    assert NEW_LIFE == LOADED


def looks(*seen: tuple[int, float, int | None]) -> Witness:
    """Epochs, when each was first seen in s, and who led; the look before was half a second earlier."""
    sightings = [
        Sighting(epoch, None if not number else int((at_s - 0.5) * SECOND), int(at_s * SECOND), leader)
        for number, (epoch, at_s, leader) in enumerate(seen)
    ]
    return Witness({PLACE: sightings})


def fault(start_s: int, end_s: int, name: str = "pause") -> Span:
    return Span(name, "broker 2", start_s * SECOND, end_s * SECOND, frozenset({2}))


NEVER_S = 2**62 / SECOND
FOREVER = (4, NEVER_S)


@pytest.mark.parametrize(
    ("seen", "spans", "wanted"),
    [
        # it led from the start, or at least nobody else did
        (((3, 0, 1),), (), FOREVER),
        (((3, 0, None),), (fault(1, 9),), FOREVER),
        (((2, 0, 1), (3, 2, 1)), (fault(1, 9),), FOREVER),
        # another one did, or may have, in an epoch that nobody saw
        (((2, 0, 2), (3, 2, 1)), (), (5, NEVER_S)),
        (((1, 0, 1), (3, 2, 1)), (), (5, NEVER_S)),
        (((2, 0, 2), (3, 2, 1)), (fault(1, 9),), (12, NEVER_S)),
        (((2, 0, 2), (3, 2, 1)), (fault(1, 9, "pause-producers"),), (5, NEVER_S)),
        (((2, 0, 2), (3, 2, 1)), (fault(6, 9),), (5, NEVER_S)),
        # a later one was seen, and the look before it saw none
        (((3, 0, 1), (4, 12, 2)), (), (4, 8.5)),
        (((3, 0, 1), (4, 7, 2)), (), None),
        # nobody saw this leader
        ((), (), None),
        (((2, 0, 1), (4, 20, 1)), (), None),
        (((3, 0, 2),), (), None),
    ],
)
def test_nobody_else_leads(
    seen: tuple[tuple[int, float, int | None], ...], spans: tuple[Span, ...], wanted: tuple[float, float] | None
) -> None:
    """The time begins when each former leader must know, and ends before there may be a later one."""
    found = list(alone([NOTED], [], Witness(looks(*seen).sightings, spans)))
    assert [(each.start_ns / SECOND, each.end_ns / SECOND) for each in found] == ([] if wanted is None else [wanted])


@pytest.mark.parametrize(
    ("epoch", "members", "time_s", "end_s"),
    [(3, 2, 6, 6), (3, 1, 6, NEVER_S), (4, 1, 6, 6), (2, 3, 6, NEVER_S), (3, 2, 3, NEVER_S)],
)
def test_what_a_controller_wrote_ends_it(epoch: int, members: int, time_s: int, end_s: float) -> None:
    """A larger ISR in this epoch, or any later epoch; nothing that is older."""
    changes = [IsrChange(PLACE, 1, epoch, members, time_s * SECOND), IsrChange(("t", 1), 1, 9, 3, 5 * SECOND)]
    [found] = alone([NOTED], changes, looks((3, 0, 1)))
    assert found.end_ns / SECOND == end_s


@pytest.mark.parametrize(("leader", "start_s"), [(1, 4), (2, 5)])
def test_a_controller_knows_who_led_between_two_looks(leader: int, start_s: int) -> None:
    """An epoch that was over before the conductor looked is no doubt if it was of the same leader."""
    [found] = alone([NOTED], [IsrChange(PLACE, leader, 2, 2, SECOND)], looks((1, 0, 1), (3, 2, 1)))
    assert found.start_ns == start_s * SECOND


@pytest.mark.parametrize(
    ("place", "offset", "sent_ns", "told_ns", "is_found"),
    [
        (PLACE, 7, 101, 199, True),
        (PLACE, -1, 101, 199, True),
        (PLACE, 7, 100, 199, False),
        (PLACE, 7, 101, 200, False),
        (("t", 1), 7, 101, 199, False),
    ],
)
def test_what_touches_is_legal(place: tuple[str, int], offset: int, sent_ns: int, told_ns: int, is_found: bool) -> None:
    """Sent after the time begins, and acknowledged before it ends; where it is stored need not be known."""
    time = NOTED._replace(start_ns=100, end_ns=200)
    found = list(under_min_isr([time], [Acknowledged(place, 1, 4, offset, sent_ns, told_ns)]))
    assert [each.offset for each in found] == [7 if offset == 7 else None] * is_found


def test_a_journal_that_cannot_be_read_shows_nothing(tmp_path: Path) -> None:
    """Nor do the others then: one of them may have had the line that ends it."""
    story = planted_story("acknowledged before the ISR has grown")
    directory = story.write(tmp_path / "run")
    assert of_in_sync(directory, story.model())
    directory.control_jsonl(2).write_text("{\n{}\n")
    assert of_in_sync(directory, story.model()) == ()
    directory.control_jsonl(2).unlink()
    directory.leaders_jsonl.unlink()
    assert of_in_sync(directory, story.model()) == ()
