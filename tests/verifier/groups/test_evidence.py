"""The evidence of a run with a consumer group: members are declared, and leave rows that only they can write."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.verifier.planted import planted_story
from tests.verifier.planted.groups import PROCESS
from tests.verifier.test_verdict import closing_of, facts
from verifier.accounts.account import HistoryAccount
from verifier.completeness import declared, load
from verifier.completeness.rows import strange
from verifier.evidence.declared import DeclaredProcess
from verifier.evidence.history import HistoryRow
from verifier.evidence.output import OUTPUT_TOPIC
from verifier.evidence.run_model import RunModel

LEGAL = "a group that hands over, and delivers three records twice"


def run_with(members: dict[str, Any] | None, *, processes: tuple[str, ...], output: int = 0) -> RunModel:
    """A run whose workload has these members, and which declares a process for each of these clients, and an output."""
    run = planted_story(LEGAL).model()
    others = [each for each in run.evidence.processes if each.role != "members"]
    own = [DeclaredProcess(f"members-{client}", "members", client) for client in processes]
    replicas = run.evidence.replicas | {f"{OUTPUT_TOPIC}-{number}": [1, 2, 3] for number in range(output)}
    resolved = run.experiment["resolved"]
    workload = {**resolved["workload"], "members": members}
    return replace(
        run,
        evidence=replace(run.evidence, processes=[*others, *own], replicas=replicas),
        experiment={**run.experiment, "resolved": {**resolved, "workload": workload}},
    )


@pytest.mark.parametrize(
    ("members", "processes", "output", "says"),
    [
        (None, (), 0, None),
        ({}, (), 0, None),
        ({"native": 2}, ("native", "confluent"), 0, None),
        ({"native": 2, "confluent": 0}, ("native",), 0, None),
        ({"native": 2, "transform": True}, ("native", "confluent"), 1, None),
        ({"native": 2}, ("native",), 0, "declares the members native, but the run asked for confluent, native"),
        (None, ("native",), 0, "declares the members native, but the run asked for none"),
        (
            {"native": 2, "transform": True},
            ("native", "confluent"),
            0,
            f"the replicas of 0 partitions of {OUTPUT_TOPIC}, not of 1",
        ),
        ({"native": 2}, ("native", "confluent"), 1, f"the replicas of 1 partitions of {OUTPUT_TOPIC}, not of 0"),
    ],
)
def test_a_run_declares_the_members_that_it_was_asked_for(
    members: dict[str, Any] | None, processes: tuple[str, ...], output: int, says: str | None
) -> None:
    """One process for each client, and the topic that they write to, if they do; no more, and no less."""
    told = [doubt.reason for doubt in declared.doubts(run_with(members, processes=processes, output=output))]
    assert [each for each in told if "members" in each or "replicas of" in each] == (
        [] if says is None else [f"run.json declares {says.removeprefix('declares ')}"]
    )


def account_with(*rows: HistoryRow, process: str = PROCESS) -> tuple[HistoryAccount, DeclaredProcess]:
    story = planted_story(LEGAL)
    story.rows[process] = [*story.rows[process], *rows]
    closing = closing_of(story)
    (account,) = (each for each in closing.accounts if each.process == process)
    found = story.evidence().process(process)
    assert found is not None
    return account, found


def test_what_members_do_is_legal() -> None:
    """A legal group's rows raise no doubt: they begin anywhere, and were assigned what they were handed."""
    assert list(strange(*account_with())) == []


@pytest.mark.parametrize(
    ("row", "process", "says"),
    [
        (HistoryRow("member", "fail", session=1), PROCESS, "member is always ok"),
        (
            HistoryRow("offset-commit", "invoke", "t", 0, session=1),
            PROCESS,
            "offset-commit is always fail or info or ok",
        ),
        (HistoryRow("offset-commit", "ok", "t", 0, session=1), "reader-1", "reader-1 cannot have (readers)"),
        (
            HistoryRow("assign", "ok", "t", 0, first_offset=0, last_offset=0, session=1),
            PROCESS,
            "cannot have (members)",
        ),
        (HistoryRow("send", "ok", "t", 0, session=1), PROCESS, "cannot have (members)"),
        (
            HistoryRow("poll", "ok", "t", 0, 1, 0, 0, 0, 0, 1, 2, session=99, high_watermark=9),
            PROCESS,
            "polls of t-0 in session 99, which was not assigned it",
        ),
        (HistoryRow("resume", "ok", "t", 0, session=1, invoke_ns=5, complete_ns=4), PROCESS, "impossible times"),
        (
            HistoryRow("resume", "ok", "t", 0, session=1, invoke_ns=5, complete_ns=6, phase="final"),
            PROCESS,
            "members do that in load",
        ),
    ],
)
def test_a_row_that_no_member_can_have_written_is_doubted(row: HistoryRow, process: str, says: str) -> None:
    """By its outcome, its role, its session, its times or its phase."""
    assert any(says in each for each in strange(*account_with(row, process=process)))


@pytest.mark.parametrize(
    ("left_out", "says"),
    [
        ((), []),
        (("offset-commit",), ["the members of the group committed no offset"]),
        (
            ("poll",),
            ["the members of the group were handed 0 records, less than 10% of the 24 that were acknowledged"],
        ),
    ],
)
def test_a_group_that_hardly_did_anything_shows_nothing(left_out: tuple[str, ...], says: list[str]) -> None:
    """The checks of groups judge what was delivered and committed; a load without either is none."""
    story = planted_story(LEGAL)
    story.rows[PROCESS] = [row for row in story.rows[PROCESS] if row.f not in left_out]
    told = [doubt.reason for doubt in load.doubts(story.model(), facts(), closing_of(story))]
    assert [each for each in told if "the members of the group" in each] == says


def test_a_group_reads_every_partition() -> None:
    """A partition that was written to and that no member was handed anything of was never judged."""
    closing = closing_of(planted_story(LEGAL))
    accounts = [
        replace(each, acked={("t", 0): 24, ("t", 1): 24}) if each.process == "producer-1" else each
        for each in closing.accounts
    ]
    run = planted_story(LEGAL).model()
    told = [doubt.reason for doubt in load.doubts(run, facts(), replace(closing, accounts=tuple(accounts)))]
    assert [each for each in told if "member of the group" in each] == [
        "no member of the group was handed anything of t-1"
    ]
