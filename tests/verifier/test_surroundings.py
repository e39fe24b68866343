"""What is gathered around anomalies from a run's files: bytes, claims, log lines, leaders; damage is told of."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.support.histories import write_beyond_its_buffer
from tests.support.settings import settings
from tests.support.stories import SECOND, Story, clean, row
from tests.verifier.test_verdict import audit, closing_of, found
from verifier.evidence.run_directory import RunDirectory, append_json_line
from verifier.excuses.expectation import ELECTION
from verifier.facts import Found
from verifier.report.groups import Cards
from verifier.report.pictures import OffsetCell, picture
from verifier.surroundings import gather
from verifier.surroundings.clients import MOST_TOLD, WantedAnomalies, listen
from verifier.surroundings.gather import IN_ALL, PER_CHECK, spot_of
from verifier.surroundings.journals import MOST_LINES, changes
from verifier.surroundings.links import links
from verifier.surroundings.model import SpotView, Surroundings
from verifier.verdict import Verdict, decide


def judged(story: Story, *anomalies: Found) -> Verdict:
    return decide(story.model(), audit(*anomalies), closing_of(story))


def around(path: Path, story: Story, *anomalies: Found) -> Surroundings:
    return gather(story.write(path), story.model(), judged(story, *anomalies))


def lost(offset: int | None = 3, stream: int = 1, sequence: int = 3) -> Found:
    return replace(found("lost-write"), offset=offset, stream=stream, sequence=sequence)


def cells(place: SpotView, offset: int) -> dict[str, OffsetCell]:
    drawn = picture(place)
    row = next(row for row in drawn["rows"] if row.offset == offset)
    return {column.title: cell for column, cell in zip(drawn["columns"], row.cells, strict=True)}


def said(place: SpotView, offset: int) -> dict[str, list[str]]:
    return {title: [name for name, _ in cell.values] for title, cell in cells(place, offset).items()}


def test_a_place_shows_what_each_party_says(tmp_path: Path) -> None:
    """Acknowledgements, all replicas and all readers of an offset, the leader first among the brokers."""
    story = clean(streams=1)
    place = around(tmp_path / "run", story, lost()).place_of(lost())
    assert place is not None
    assert said(place, 3) == {
        "acknowledged": ["s1/3"], "broker 1": ["s1/3"], "broker 2": ["s1/3"], "broker 3": ["s1/3"],
        "reader-1": ["s1/3"], "final-1": ["s1/3"],
    }  # fmt: skip
    drawn = picture(place)
    assert [column.kind for column in drawn["columns"]] == ["told", "leader", "replica", "replica", "reader", "reader"]
    begins = cells(place, 3)["broker 1"]
    assert begins.begins
    assert begins.note == "e1"
    assert "nodes/1/data/t-0/00000000000000000000.log" in begins.title


def test_what_disagrees_has_colors_and_what_agrees_has_none(tmp_path: Path) -> None:
    """A replica that holds another value, and a reader that was handed it, share a color of their own."""
    story = clean(streams=1)
    batches = story.partitions[0].replicas[2]
    batches[1] = replace(batches[1], values=((1, 9), (1, 4), (1, 5)))
    diverged = Found("log-divergence", "different", "t", 0, 1, 1, None, None, 3, 1, {"broker": 2})
    place = around(tmp_path / "run", story, diverged).place_of(diverged)
    assert place is not None
    here = cells(place, 3)
    assert here["broker 2"].kind != here["broker 1"].kind
    assert "" not in (here["broker 1"].kind, here["broker 2"].kind)
    assert here["acknowledged"].kind == here["broker 1"].kind == here["final-1"].kind
    assert {cell.kind for cell in cells(place, 4).values()} == {""}
    headers = picture(place)["headers"]
    assert [column["title"] for column in headers["columns"]] == ["brokers 1, 3", "broker 2"]
    assert [name for name, _, differs in headers["rows"] if differs] == ["CRC-32C"]
    assert [name for name, _, differs in headers["values"] if differs] == [
        "sequence",
        "send time (ns)",
        "header CRC-32",
    ]
    (difference,) = picture(place)["differences"]
    assert (difference["left"], difference["right"]) == ("broker 1", "broker 2")
    assert any(differs for line in difference["lines"] for _, differs in line["left"])


def test_a_replica_that_lacks_an_offset_shows_it(tmp_path: Path) -> None:
    """Nothing where others have something, and nothing from an end on, are told apart; so is a bad CRC."""
    story = clean(streams=1)
    story.partitions[0].replicas[2] = story.partitions[0].replicas[2][:1]
    del story.partitions[0].replicas[3][1]
    story.partitions[0].replicas[1][2] = replace(
        story.partitions[0].replicas[1][2], spoil=lambda data: data[:-1] + bytes([data[-1] ^ 1])
    )
    place = around(tmp_path / "run", story, lost()).place_of(lost())
    assert place is not None
    here = cells(place, 3)
    assert (here["broker 2"].kind, here["broker 3"].kind) == ("past", "none")
    assert here["broker 1"].kind != ""
    assert cells(place, 6)["broker 1"].note == "bad CRC"


def test_copies_share_one_picture_with_a_break(tmp_path: Path) -> None:
    """A value at two far offsets: both windows, a row for what is between, and one color for the value."""
    story = clean(streams=1, batches=12)
    copy = replace(story.leader_log(0)[1], base_offset=37)
    story.everywhere(0, lambda batches: batches.append(copy))
    twice = Found("log-duplicate", "broker", "t", 0, 3, 6, 1, 3, 3, 2, {"first_log": 3, "last_log": 37, "copies": 2})
    place = around(tmp_path / "run", story, twice).place_of(twice)
    assert place is not None
    rows = picture(place)["rows"]
    assert [row.offset for row in rows].count(None) == 1
    assert [row.offset for row in rows if row.place] == [3, 37]
    assert cells(place, 3)["broker 1"].kind == cells(place, 37)["broker 1"].kind != ""


def test_a_lost_value_without_an_offset_is_looked_for_between_its_neighbors() -> None:
    """Its place is behind the one before it; without neighbors there is nothing to show."""
    nowhere = replace(lost(offset=None), context={"stream_before": {"last_offset": 11}})
    spot = spot_of(nowhere)
    assert spot is not None
    assert spot.places == (12,)
    assert spot_of(lost(offset=None)) is None


def test_places_are_bounded(tmp_path: Path) -> None:
    """So many for each check, and no more than a page can hold in all."""
    story = clean(partitions=6, streams=6)
    many = [replace(lost(), partition=partition, offset=at) for partition in range(6) for at in range(3)]
    surroundings = around(tmp_path / "run", story, *many)
    assert len(surroundings.places) == PER_CHECK <= IN_ALL


def test_log_lines_around_an_anomaly(tmp_path: Path) -> None:
    """Lines near its time, those that name the partition first when not all fit; nothing from elsewhere."""
    story = clean(streams=1)
    directory = story.write(tmp_path / "run")
    lines = ["2026-01-01 00:00:09,000 INFO x: too early", *["2026-01-01 00:00:01,400 INFO x: noise"] * 40]
    lines += [
        "2026-01-01 00:00:01,500 INFO x: t-0 <b>lost</b> its leader",
        "2026-01-01 00:00:01,600 INFO x: t-01 other",
    ]
    (directory.node(1) / "broker.log").write_text("\n".join(lines) + "\n no time here\n", encoding="utf-8")
    gathered = gather(directory, replace(story.model(), started="2026-01-01T00:00:00"), judged(story, lost()))
    place = gathered.place_of(lost())
    assert place is not None
    assert place.at_ns == 13 * SECOND // 10
    (log,) = place.logs
    assert (log.broker, len(log.lines), log.left_out) == (1, MOST_LINES, 42 - MOST_LINES)
    assert any("t-0 <b>lost</b>" in line for line in log.lines)
    assert not any("too early" in line for line in log.lines)


def test_leaders_come_from_the_conductor_or_from_the_journals(tmp_path: Path) -> None:
    """The journals of all brokers in the order of time; the conductor's own file before them; damage ends a file."""
    directory = RunDirectory(tmp_path).prepare()
    for broker, at, leader in ((1, 30, 2), (2, 10, 1)):
        directory.node(broker).mkdir()
        change = {"event": "partition-changed", "monotonic_ns": at, "topic": "t", "partition": 0, "leader": leader,
                  "leader_epoch": at // 10, "isr": [1, 2], "reason": "r"}  # fmt: skip
        append_json_line(directory.control_jsonl(broker), {"event": "registered", "monotonic_ns": 5})
        append_json_line(directory.control_jsonl(broker), change)
        append_json_line(directory.control_jsonl(broker), {**change, "isr": "x"})
        with directory.control_jsonl(broker).open("a") as file:
            file.write("damage\n")
    found, where = changes(directory)
    assert [(each.time_ns, each.leader, each.leader_epoch, each.isr) for each in found] == [
        (10, 1, 1, (1, 2)), (30, 2, 3, (1, 2)),
    ]  # fmt: skip
    assert where == "nodes/*/control.jsonl"
    line = {"time_ns": 7, "topic": "t", "partition": 1, "leader": None, "leader_epoch": 4, "isr": []}
    (tmp_path / "leaders.jsonl").write_text(json.dumps(line) + "\n")
    found, where = changes(directory)
    assert [(each.time_ns, each.name, each.leader) for each in found] == [(7, ("t", 1), -1)]
    assert where == "leaders.jsonl"


def test_times_of_anomalies_come_from_acknowledgements(tmp_path: Path) -> None:
    """By value, or by offset where there is none; the first answer counts, and what nobody told has no time."""
    story = clean(streams=1)
    directory = story.write(tmp_path / "run")
    one = np.ones(3, dtype=np.int64)
    by_value = WantedAnomalies("lost-write", ("t", 0), 1, np.array([0, 4, 99]), one, allowed=False)
    by_offset = WantedAnomalies("log-gap", ("t", 0), None, np.array([0, 9, 50]), one, allowed=False)
    listen(sorted(directory.history_dir.glob("*.arrow")), wanted=[by_value, by_offset])
    assert by_value.times_ns.tolist() == [SECOND, 13 * SECOND // 10, -1]
    assert by_offset.times_ns.tolist() == [SECOND, 19 * SECOND // 10, -1]


def test_never_sent_is_told_from_failed(tmp_path: Path) -> None:
    """What was reserved and never handed to a client is no failure of the cluster, and is counted apart."""
    story = clean(streams=1)
    never = row("unsent", "fail", 0, 1, 20, 29, -1)
    story.rows["producer-1"] += [never, row("send", "fail", 0, 1, 30, 31, -1)._replace(error="MESSAGE_TOO_LARGE")]
    story.rows["producer-1"].append(row("send", "info", 0, 1, 32, 34, -1))
    outcomes = around(tmp_path / "run", story).outcomes
    assert outcomes is not None
    assert (outcomes.never_sent, outcomes.failed, outcomes.unknown) == (10, 2, 3)


def test_damage_is_told_and_nothing_is_raised(tmp_path: Path) -> None:
    """Histories, segments and run directories that cannot be read leave notes, and the rest is shown."""
    story = clean(streams=1)
    directory = story.write(tmp_path / "run")
    (directory.history_dir / "broken.arrow").write_bytes(b"no arrow at all")
    write_beyond_its_buffer(directory.history("final-1"))
    torn = directory.history("reader-1")
    torn.write_bytes(torn.read_bytes()[:-20])
    for path in directory.node(2).rglob("*.log"):
        path.write_bytes(b"\xff" * 100)
    for path in directory.node(3).rglob("*.log"):
        path.unlink()
    gathered = gather(directory, story.model(), judged(story, lost()))
    place = gathered.place_of(lost())
    assert place is not None
    for damaged in ("broken.arrow", "final-1.arrow"):
        assert any(damaged in note for note in gathered.notes), damaged
    assert "s1/3" in said(place, 3)["broker 1"]
    drawn = picture(place)
    assert any("garbage" in tail for tail in drawn["tails"])
    assert any("no segment was left" in note for note in drawn["notes"])


def test_claims_around_a_place_are_bounded(tmp_path: Path) -> None:
    """However often an offset was handed out."""
    story = clean(streams=1)
    story.rows["reader-1"] *= 1000
    place = around(tmp_path / "run", story, lost()).place_of(lost())
    assert place is not None
    assert len(place.told) == MOST_TOLD


def test_one_place_is_drawn_once(tmp_path: Path) -> None:
    """A consequence at the same place links to the picture of its cause."""
    story = clean(streams=1)
    gap = Found("log-gap", "sequences", "t", 0, 1, 1, 1, 3, 3, 1, {"last_sequence": 3})
    verdict = judged(story, lost(), gap)
    gathered = gather(story.write(tmp_path / "run"), story.model(), verdict)
    (group,) = Cards(verdict, gathered).groups()
    assert group["shown"][0]["picture"] is not None
    assert group["followers"][0]["shown"] == [
        {**group["followers"][0]["shown"][0], "id": group["shown"][0]["id"], "picture": None}
    ]


def test_each_election_has_its_own_picture(tmp_path: Path) -> None:
    """Of two elections in one partition each card shows its own offset; a consequence goes with its own, too."""
    story = clean(streams=1)
    story.settings = settings(acks="1", idempotence=False, rate=0.0)
    elections = {3: "election of epoch 1", 17: "election of epoch 2"}
    losses = [replace(lost(at, sequence=at), count=at, excuse=ELECTION, event=each) for at, each in elections.items()]
    gaps = [
        replace(found("log-gap", "sequences"), offset=each.offset, sequence=each.sequence, excuse=ELECTION,
                event=each.event)
        for each in losses
    ]  # fmt: skip
    gathered = around(tmp_path / "run", story, *losses, *gaps)
    for each in (*losses, *gaps):
        place = gathered.place_of(each)
        assert place is not None
        assert place.spot.places == (each.offset,)


def test_the_largest_of_many_is_drawn(tmp_path: Path) -> None:
    """Where not all examples of a check can be drawn, those that stand for most are, and the first one."""
    story = clean(streams=1)
    story.settings = settings(acks="1", idempotence=False, rate=0.0)
    losses = [
        replace(lost(at, sequence=at), count=at, excuse=ELECTION, event=f"election of epoch {at}")
        for at in range(1, PER_CHECK + 3)
    ]
    gathered = around(tmp_path / "run", story, *losses)
    drawn = [each.offset for each in losses if gathered.place_of(each) is not None]
    assert drawn == [1, *range(4, PER_CHECK + 3)]


def test_the_seal_is_linked(tmp_path: Path) -> None:
    """Whoever wants to know what the evidence was finds it on the page."""
    directory = clean(streams=1).write(tmp_path / "run")
    directory.seal_json.write_text("{}")
    assert [link.text for link in links(directory)].count("seal.json") == 1
