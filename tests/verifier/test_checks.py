"""Every check, by example and by oracle. All runs are judged in one audit (``conftest.judged``)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.verifier import oracle
from tests.verifier.agreement import expected, report, summed_up
from tests.verifier.conftest import Judged
from tests.verifier.planted import PLANTED
from verifier.anomalies import NAMES
from verifier.excuses.expectation import ELECTION, EXCUSES
from verifier.facts import Audit, Region, Untold

#: Values that were acknowledged and deleted on purpose, by planted example.
DELETED = {
    "clean": 0,
    "retention": 6,
    "deleted by request": 4,
    "deleted further than asked for": 3,
    "deleted by nobody": 0,
}

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_example_gives_exactly_that_anomaly(judged: dict[str, Judged], name: str) -> None:
    """What is planted is found, with the right example, and nothing else is."""
    found = {(each.check, each.cause): each for each in judged[f"planted: {name}"].audit.found}
    expected = PLANTED[name].expected
    assert set(found) == set(expected)
    for key, fields in expected.items():
        shown = {field: getattr(found[key], field) for field in fields}
        assert shown == dict(fields), key


def test_spark_and_the_oracle_agree(judged: dict[str, Judged], twins: dict[str, list[oracle.Anomaly]]) -> None:
    """In every planted and mutated run, 300 and more, every check finds exactly what its slow, obvious twin finds."""
    assert len(judged) >= 300
    wanted = {name: expected(found) for name, found in twins.items()}
    found = {name: summed_up(each.audit) for name, each in judged.items()}
    different = {name: (found[name], wanted[name]) for name in wanted if found[name] != wanted[name]}
    assert not different, report(different)
    assert {key[0] for each in wanted.values() for key in each} == set(NAMES), "a check was never put to use"


@pytest.mark.parametrize(
    ("name", "numbered", "unnumbered", "leader_epoch"),
    [
        ("clean", 8, 0, 1),
        ("epochs that grow", 8, 0, 5),
        ("repeated without an identity", 8, 1, 1),
        ("cut off by an election", 0, 7, 2),
    ],
)
def test_what_the_load_wrote_is_counted_by_whether_it_is_numbered(
    judged: dict[str, Judged], name: str, numbered: int, unnumbered: int, leader_epoch: int
) -> None:
    """The sentinel's batch is not counted, and of the values those of the final leader alone are read."""
    files = judged[f"planted: {name}"].audit.facts.replicas
    leader = judged[f"planted: {name}"].story.partitions[0].leader
    for each in files:
        counted = (numbered, unnumbered) if each.broker == leader else (0, 0)
        assert (each.numbered, each.unnumbered, each.leader_epoch) == (*counted, leader_epoch)


def test_no_check_failed(audits: dict[str, Audit]) -> None:
    """None of the runs makes a check raise, the doctored ones neither."""
    assert not {name: each.failures for name, each in audits.items() if each.failures}


def test_facts_are_counted(judged: dict[str, Judged]) -> None:
    """What the rules of evidence decide on: values told and read, files walked, readers and sentinels."""
    facts = judged["planted: clean"].audit.facts
    assert (facts.acked, facts.unknown, facts.failed, facts.malformed_rows) == (24, 0, 0, 0)
    assert (facts.read, facts.final_read) == (49, 25)
    assert [(each.broker, each.files, each.batches, each.next_offset) for each in facts.replicas] == [
        (1, 1, 9, 25), (2, 1, 9, 25), (3, 1, 9, 25),
    ]  # fmt: skip
    assert all(each.walked_bytes == each.size_bytes == each.batch_bytes for each in facts.replicas)
    assert [(each.process, each.last_offset, each.complete) for each in facts.readers] == [("final-1", 24, True)]
    assert facts.sentinels == {("t", 0)}
    assert judged["planted: clean"].audit.regions == (Region(True, True, True, 24),)
    assert {name: judged[f"planted: {name}"].audit.facts.deleted for name in DELETED} == DELETED
    assert judged["planted: rows that make no sense"].audit.facts.malformed_rows == 3
    assert judged["planted: lost at the tail"].audit.regions == (
        Region(True, True, True, 21), Region(True, False, False, 3),
    )  # fmt: skip


def test_producer_ids_that_a_stream_was_never_told_of_are_facts(judged: dict[str, Judged]) -> None:
    """They excuse nothing and accuse nobody: the verdict doubts them. Not of an instance that never told its id."""
    names = (
        "clean",
        "a producer id that another stream was given",
        "a producer id that its client may never have told",
    )
    untold = [judged[f"planted: {name}"].audit.facts.untold for name in names]
    assert untold == [(), (Untold("t", 0, 1, 1002), Untold("t", 0, 2, 1001)), ()]


def test_epochs_that_acknowledgements_name_too_early_are_facts(judged: dict[str, Judged]) -> None:
    """Of elections that were asked for, those that the conductor saw begin long after."""
    names = ("in an epoch that was seen a little late", "in an epoch that was seen long after")
    assert [judged[f"planted: {name}"].audit.facts.contradicted for name in names] == [(), (("t", 0, 2),)]


def test_the_longest_gap_counts_beginnings_and_ends(judged: dict[str, Judged]) -> None:
    """A partition's gap reaches from the load's first acknowledgement to its last, whoever was told."""
    (gap,) = judged["planted: clean"].audit.gaps
    assert (gap.longest_ns, gap.end_ns - gap.start_ns) == (300_000_000, 300_000_000)
    unequal = judged["planted: acknowledged behind the sentinel"].audit.gaps
    assert [each.end_ns for each in unequal] == [2_200_000_000]


def test_examples_carry_what_surrounds_them(judged: dict[str, Judged]) -> None:
    """A lost value stands between its neighbors; a duplicate shows both copies with producer and base sequence."""
    lost = _of(judged["planted: lost in the middle"].audit, "lost-write")
    before, after = lost.context["stream_before"], lost.context["stream_after"]
    assert (before["last_sequence"], before["last_offset"], before["base_sequence"]) == (2, 2, 0)
    assert (after["first_sequence"], after["first_offset"], after["base_sequence"]) == (6, 9, 6)
    assert [ack["offset"] for ack in lost.context["acknowledged"]] == [6]
    assert "read" not in lost.context
    copies = _of(judged["planted: sent again"].audit, "log-duplicate").context["copies"]
    assert [(copy["offset"], copy["producer_id"], copy["base_sequence"]) for copy in copies] == [
        (0, 1001, 0), (25, 5000, 0),
    ]  # fmt: skip
    claimed = _of(judged["planted: read and then another"].audit, "inconsistent-offsets").context
    assert {(claim["stream"], claim["sequence"]) for claim in claimed["claimed"]} == {(1, 0), (1, 500)}
    assert [(value["stream"], value["sequence"]) for value in claimed["value_at"]] == [(1, 0)]


def test_every_row_knows_what_excuses_it(judged: dict[str, Judged]) -> None:
    """Summed up by excuse, and by election, the rows for the files are what the verdict is made of."""
    wanted: Counter[tuple[Any, ...]] = Counter()
    rows: Counter[tuple[Any, ...]] = Counter()
    for name, each in judged.items():
        for one in each.audit.found:
            if one.check in each.audit.anomalies:
                event = one.event if one.excuse == ELECTION else None
                wanted[name, one.check, one.cause, one.partition, one.excuse, event] += one.count
        for check, table in each.audit.anomalies.items():
            for row in table.to_pylist():
                event = row["event"] if row["excuse"] == ELECTION else None
                rows[name, check, row["cause"], row["partition"], row["excuse"], event] += row["count"]
    assert rows == wanted
    assert {key[4] for key in rows} == {None, *EXCUSES}


def _of(audit: Audit, check: str) -> Any:
    return next(each for each in audit.found if each.check == check)
