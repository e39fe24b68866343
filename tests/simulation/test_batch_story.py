"""The story of one batch: what concerns it is told, in order, and the simulation is not changed by telling it."""

from __future__ import annotations

from tests.simulation.batch_story import Took, story, watched
from tests.simulation.story import tell

SEED = 5

EVENTS = """\
   0.000000 nemesis      moves kill:2
   0.100000 reader 1     reads t-0
   0.100000 reader 2     reads t-1
   0.200000 writer 4     sends 8+2
   0.200000 writer 4     sends 6+2
   0.300000 nemesis      kill 1
   0.400000 broker 2     partition-changed topic=t partition=0 leader=2
   0.400000 broker 2     partition-changed topic=t partition=1 leader=2
   0.500000 writer 4     8+2 #1 NONE 51
   0.600000 reader 1     read 50..51 of epoch 1, watermark 52
   0.600000 reader 2     read 50..51 of epoch 1, watermark 52
   0.600000 reader 1     read 53..60 of epoch 1, watermark 61
   0.900000 oracle       lost-write: t-0: b'writer 4/8.1..' was acknowledged at 52
   0.900000 oracle       lost-write: t-0: b'writer 5/8.1..' was acknowledged at 52
"""
TAKEN = Took(
    0.25,
    1,
    "t-0",
    "take",
    51,
    52,
    ("writer 4/8.0", "writer 4/8.1"),
    "t-0: appends 51..52, producer 7 epoch 0 sequence 8",
)
SEEN = [
    Took(0.22, 1, "t-0", "take", 49, 50, ("writer 4/6.0",), "t-0: appends 49..50, producer 7 epoch 0 sequence 6"),
    TAKEN,
    TAKEN._replace(at_s=0.45, broker_id=2),
    Took(0.7, 1, "t-1", "end", 3, text="t-1: is cut: it ends at 3, not at 60 any more"),
    Took(0.7, 2, "t-0", "end", 53, text="t-0: is cut: it ends at 53, not at 60 any more"),
    Took(0.7, 1, "t-0", "end", 52, text="t-0: is cut: it ends at 52, not at 60 any more"),
    Took(0.8, 1, "t-0", "begin", 51, text="t-0: begins at 51, not at 0 any more"),
    Took(0.8, 2, "t-0", "begin", 52, text="t-0: begins at 52, not at 0 any more"),
]
TOLD = """\
   0.200000 writer 4     sends 8+2
   0.250000 broker 1     t-0: appends 51..52, producer 7 epoch 0 sequence 8
   0.300000 nemesis      kill 1
   0.400000 broker 2     partition-changed topic=t partition=0 leader=2
   0.450000 broker 2     t-0: appends 51..52, producer 7 epoch 0 sequence 8
   0.500000 writer 4     8+2 #1 NONE 51
   0.600000 reader 1     read 50..51 of epoch 1, watermark 52
   0.700000 broker 1     t-0: is cut: it ends at 52, not at 60 any more
   0.800000 broker 2     t-0: begins at 52, not at 0 any more
   0.900000 oracle       lost-write: t-0: b'writer 4/8.1..' was acknowledged at 52
"""


def test_what_concerns_a_batch_is_told() -> None:
    """By its value or by its place: its sender, its logs, its readers, and what went wrong. Other batches are not."""
    assert story("writer 4/8.1....", SEEN, EVENTS) == TOLD
    assert story("t-0@51", SEEN, EVENTS) == story("writer 4/8.0", SEEN, EVENTS)


def test_what_no_log_took_has_no_story() -> None:
    """The story of a batch or offset that no log has says so."""
    assert story("writer 4/9.0", SEEN, EVENTS) == "no log took 'writer 4/9.0'\n"
    assert story("t-0@77", SEEN, EVENTS) == "no log took 't-0@77'\n"


def test_a_simulation_is_the_same_when_it_is_watched() -> None:
    """Byte for byte; and each replica of the first batch is seen to take it."""
    with watched() as seen:
        outcome = tell(SEED)
    assert outcome.text == tell(SEED).text
    first = story("t-0@0", seen, outcome.text)
    assert "t-0: appends 0.." in first
    assert first.count("t-0: copies 0..") >= 2
    assert " at 0\n" in first or "NONE 0\n" in first
