"""Rows that belong to no session or transaction are counted by no check: they take ``valid`` away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.stories import Story
from tests.verifier.planted import planted_story
from tests.verifier.planted.groups import PROCESS
from tests.verifier.test_verdict import closing_of, facts
from verifier.closing.closing import Closing
from verifier.completeness import belonging, load
from verifier.doubts import HISTORIES
from verifier.evidence.run_model import RunModel

BANK = "a bank whose transfers have both sides"
GROUP = "a group that begins below its committed offset"
COMMITTED = "what no client may see of transactions"


def doubts(story: Story) -> list[str]:
    found = list(belonging.doubts(story.model(), closing_of(story)))
    assert all(doubt.blinds == HISTORIES for doubt in found)
    return [doubt.reason for doubt in found]


def without(process: str, *functions: str) -> Callable[[Story], None]:
    """A process's rows of these functions are taken out, with their totals."""

    def change(story: Story) -> None:
        story.rows[process] = [row for row in story.rows[process] if row.f not in functions]

    return change


def outside(story: Story) -> None:
    """What was sent was sent in no transaction."""
    rows = story.rows["producer-1"]
    rows[:] = [row._replace(op=-1) if row.f == "send" else row for row in rows]


@pytest.mark.parametrize("name", [BANK, GROUP, COMMITTED])
def test_rows_that_belong_together_raise_no_doubt(name: str) -> None:
    """Whatever is wrong with what they say."""
    assert doubts(planted_story(name)) == []


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        (GROUP, without(PROCESS, "member"), "has rows of the sessions 1, 2, and no member row says whose they are"),
        (BANK, without("final-1", "isolation"), "does not say that its sessions 1 are handed only what is committed"),
        (BANK, without("reader-1", "isolation"), "does not say that its sessions 1 are handed only what is committed"),
        (BANK, outside, "has 8 rows of values that were sent outside of transactions"),
        (BANK, without("producer-1", "commit"), "has no end of the transactions 0"),
        (COMMITTED, without("producer-1", "abort"), "has no end of the transactions 1"),
        (COMMITTED, without("producer-1", "abort", "commit"), "has no end of the transactions 0 to 5"),
        (BANK, without("producer-1", "begin"), "were sent in the transactions 0, which were never begun"),
    ],
)
def test_what_belongs_to_nothing_is_doubted(name: str, change: Callable[[Story], None], says: str) -> None:
    """One reason, which names the history: of these rows no check would have found anything."""
    story = planted_story(name)
    change(story)
    (reason,) = doubts(story)
    assert says in reason


def test_a_process_that_was_killed_may_leave_a_transaction_open() -> None:
    """Its history has no proper end either."""
    story = planted_story(BANK)
    without("producer-1", "commit")(story)
    story.torn.add("producer-1")
    assert doubts(story) == []


@pytest.mark.parametrize(
    ("readers", "config", "says"),
    [
        (("native", "confluent"), {}, []),
        (("confluent", "native"), {}, ["reader-1"]),
        (("native", "confluent"), {"isolation.level": "read_committed"}, ["reader-1"]),
        (("native",), {"isolation.level": "read_uncommitted"}, []),
        (("native",), {"isolation.level": "read_committed"}, ["reader-1"]),
    ],
)
def test_the_first_of_several_clients_reads_everything(
    readers: tuple[str, ...], config: dict[str, str], says: list[str]
) -> None:
    """As do all readers, if the configuration says so."""
    story = planted_story(BANK)
    without("reader-1", "isolation")(story)
    run, closing = story.model(), closing_of(story)
    run = replace(run, settings=replace(run.settings, readers=readers))
    closing = replace(closing, load={**(closing.load or {}), "consumer_config": config})
    found = [doubt.reason for doubt in belonging.doubts(run, closing) if "which the run asked for" in doubt.reason]
    assert [name for name in ("reader-1", "final-1") if any(f"{name}.arrow" in reason for reason in found)] == says


@pytest.mark.parametrize(
    ("kind", "readers", "config", "says"),
    [
        ("bank", ("native",), {}, []),
        ("bank", ("confluent", "native"), {}, []),
        # its client is the one that reads everything
        ("bank", ("native", "confluent"), {}, ["reader-1"]),
        ("bank", ("native",), {"isolation.level": "read_uncommitted"}, ["reader-1", "final-1"]),
        ("bank", ("native", "confluent"), {"isolation.level": "read_committed"}, []),
        # nothing is aborted
        ("streams", ("native",), {"isolation.level": "read_uncommitted"}, []),
    ],
)
def test_a_reader_has_no_other_isolation_level_than_the_one_asked_for(
    kind: str, readers: tuple[str, ...], config: dict[str, str], says: list[str]
) -> None:
    """One that reads everything, and says that it does not, would be owed nothing that was aborted."""
    story = planted_story(BANK)
    run, closing = story.model(), closing_of(story)
    resolved = run.experiment["resolved"]
    resolved = {**resolved, "workload": {**resolved["workload"], "kind": kind}}
    run = replace(
        run,
        settings=replace(run.settings, readers=readers),
        experiment={**run.experiment, "resolved": resolved},
    )
    closing = replace(closing, load={**(closing.load or {}), "consumer_config": config})
    found = [doubt.reason for doubt in belonging.doubts(run, closing) if "did not ask for" in doubt.reason]
    assert [name for name in ("reader-1", "final-1") if any(f"{name}.arrow says" in reason for reason in found)] == says
    assert list(belonging.doubts(run, replace(closing, load=None))) == []


def loads(run: RunModel, closing: Closing) -> list[str]:
    return [doubt.reason for doubt in load.doubts(run, facts(), closing) if "transactions was" in doubt.reason]


def counted(closing: Closing, rows: dict[tuple[str, str], Any]) -> Closing:
    """The producer's history has only rows of these kinds, each as often as given."""
    own = (replace(each, rows=rows) if each.process == "producer-1" else each for each in closing.accounts)
    return replace(closing, accounts=tuple(own))


@pytest.mark.parametrize(
    ("commits", "aborts", "share", "says"),
    [
        (1, 9, None, []),
        (0, 9, None, ["none of 200 transactions was committed"]),
        (200, 0, None, ["none of 200 transactions was aborted, and about 20 were to be"]),
        (200, 0, 0.09, []),
        (199, 1, None, []),
    ],
)
def test_a_load_of_transactions_commits_and_aborts(
    commits: int, aborts: int, share: float | None, says: list[str]
) -> None:
    """Where all of them end alike, no reader shows that it tells them apart."""
    story = planted_story(BANK)
    run = story.model()
    resolved = run.experiment["resolved"]
    plan = {} if share is None else {"aborts": share}
    workload = {**resolved["workload"], "transactions": plan}
    run = replace(run, experiment={**run.experiment, "resolved": {**resolved, "workload": workload}})
    rows = {("begin", "ok"): (200, 0), ("commit", "ok"): (commits, 0), ("abort", "info"): (aborts, 0)}
    rows = {kind: number for kind, number in rows.items() if number[0]}
    assert loads(run, counted(closing_of(story), rows)) == says
