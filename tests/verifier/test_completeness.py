"""When evidence suffices: each rule alone takes ``valid`` away, and names what it makes blind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError

from cluster.client.producer.outcomes import recorded_outcome
from cluster.protocol.errors import ErrorCode
from loadgen.clients.confluent import failure_of
from tests.support.closed import agreeing
from tests.support.settings import experiment_of, settings, topic_config_of
from tests.support.stories import Story, clean
from tests.verifier.test_verdict import a_run, closing, closing_of, facts
from verifier import completeness
from verifier.closing.closing import Closing, LogAlarm, Unreadable, gather
from verifier.closing.wall_clock import ClockShift
from verifier.doubts import ALL, CLOCK, EXCUSES, FINAL, HISTORIES, NOTHING, Doubt, Evidence
from verifier.evidence.history import HistoryRow
from verifier.evidence.run_model import ChildProcess, HarnessHealth, RunModel, TopicSpec
from verifier.evidence.seal import Difference
from verifier.facts import Facts, ReaderReach, Untold
from verifier.outcomes import may_fail
from verifier.witness.effectiveness import Injected
from verifier.witness.leaderships import Sighting

SECOND = 1_000_000_000


def incomplete(run: RunModel, facts: Facts, closing: Closing) -> list[Doubt]:
    """Why the evidence does not suffice of a run whose evidence agrees with its settings."""
    return completeness.incomplete(run, facts, agreeing(run, closing))


def final(**changes: Any) -> RunModel:
    """A run whose one partition ended otherwise."""
    run = a_run()
    return replace(run, final=[replace(run.final[0], **changes)])


def account(whose: str, **changes: Any) -> Closing:
    """Evidence in which one history is otherwise."""
    known = closing().accounts
    return closing(accounts=tuple(replace(e, **changes) if e.process == whose else e for e in known))


def rows_of(process: str) -> dict[tuple[str, str], tuple[int, int]]:
    return dict(next(each for each in closing().accounts if each.process == process).rows)


def without(process: str) -> Closing:
    """Evidence without one history."""
    return closing(accounts=tuple(each for each in closing().accounts if each.process != process))


def children(**ends: int | None) -> list[ChildProcess]:
    """The run's processes, of which some ended otherwise (``broker_2=1``)."""
    changed = {name.replace("_", "-"): code for name, code in ends.items()}
    return [replace(e, exit_code=changed[e.name]) if e.name in changed else e for e in a_run().children]


def series(whose: str, **changes: Any) -> Mapping[str, Any]:
    known = closing().series
    return {**known, whose: replace(known[whose], **changes)}


@pytest.mark.parametrize("changes", [{}, {"healed": False, "late": True, "again_ns": 49 * SECOND}])
def test_a_fault_that_was_over_in_the_end_raises_no_doubt(changes: dict[str, Any]) -> None:
    """Also one that was slow to pass, and was seen to be over only when all was healed."""
    slow = closing(replace(KILL, **changes))
    assert not [each for each in incomplete(BITTEN, FACTS, slow) if "kill-leader" in each.reason]


def test_complete_evidence_has_no_gap() -> None:
    """Complete evidence raises no doubt: the base of all cases below."""
    assert incomplete(a_run(), facts(), closing()) == []


def test_a_clock_that_moved_within_the_margin_is_no_gap() -> None:
    """The span of the run was widened by it."""
    assert incomplete(a_run(), facts(), closing(clock=ClockShift(20_000, 40_000))) == []


def test_samples_of_the_clock_are_gathered() -> None:
    """From the run directory, as the conductor left them."""
    assert closing_of(Story(**{**vars(clean()), "clock_ms": [0, 5, 600_000]})).clock == ClockShift(0, 600_000)


def beside(**changes: Any) -> Closing:
    """Evidence in which the producer left something else beside its series."""
    left = closing().beside
    return closing(beside={**left, "producer-1": replace(left["producer-1"], **changes)})


READER = ReaderReach("run", "final-1", "t", 0, 1, 20, False)
COMPACT = topic_config_of(a_run().settings, {"cleanup.policy": "compact,delete"})
COMPACTED = TopicSpec("t", 1, 3, closing().topic_ids[1, "t", 0] or "", config=COMPACT)
KILL = Injected(
    "kill-leader", "b1", 20 * SECOND, 30 * SECOND, True, False, {"pid": 102, "dead": True}, 0, 25 * SECOND, True
)
RUN, FACTS, CLOSING = a_run(), facts(), closing()
BITTEN = a_run(faults_requested=["kill-leader"])
FAULTY = a_run(faults_requested=["kill-leader"], settings=settings(rate=100.0))


def a_run_of(**changes: Any) -> RunModel:
    """A run that was asked for something else than it declared."""
    asked = replace(RUN.settings, **changes)
    return replace(RUN, settings=asked, experiment=experiment_of(asked))


def told(process: str, f: str, index: int, **changes: Any) -> Story:
    """A row of a function, the ``index``-th of its process, says something else."""
    story = clean()
    rows = story.rows[process]
    at = [number for number, row in enumerate(rows) if row.f == f][index]
    rows[at] = rows[at]._replace(**changes)
    return story


def said_by(process: str, row: HistoryRow) -> Story:
    """A process says something besides."""
    story = clean()
    story.rows[process].append(row)
    return story


def starved(polls: int) -> Closing:
    """The live reader is handed the first polls alone; its history ends in order."""
    story = clean()
    del story.rows["reader-1"][1 + polls :]
    return closing_of(story)


STARVED = starved(5)


def test_what_was_acknowledged_just_before_the_recovery_is_not_due() -> None:
    """A reader is granted a few seconds to catch up; what was acknowledged before them it must have come to."""
    story = clean()
    row = next(each for each in reversed(story.rows["producer-1"]) if each.f == "send")
    rows = story.rows["producer-1"]
    del story.rows["reader-1"][-1]
    for complete_ns, is_due in ((46 * SECOND, True), (46 * SECOND + 1, False)):
        rows[rows.index(row)] = row = row._replace(complete_ns=complete_ns)
        reasons = [each.reason for each in incomplete(RUN, FACTS, closing_of(story))]
        assert any("came to offset 20 live, of 23" in reason for reason in reasons) is is_due


def test_a_fault_may_be_over_when_everything_is_healed() -> None:
    """The phase ``heal`` ends at 51 s."""
    killed = replace(KILL, end_ns=51 * SECOND)
    assert [each.reason for each in incomplete(BITTEN, FACTS, closing(killed)) if "injection" in each.reason] == []


CASES: list[tuple[str, frozenset[Evidence], RunModel, Facts, Closing]] = [
    ("declares 1 load processes, but the run asked for 2", NOTHING,
     a_run_of(load_processes=2), FACTS, CLOSING),
    ("declares the final readers native, but the run asked for confluent, native", NOTHING,
     a_run_of(final_readers=("confluent", "native")), FACTS, CLOSING),
    ("declares the readers native, but the run asked for none", NOTHING, a_run_of(readers=()), FACTS, CLOSING),
    ("t has 1 partitions, but should have 2", NOTHING, a_run_of(partitions=2), FACTS, CLOSING),
    ("declares 3 brokers, but the run asked for 5", NOTHING, a_run_of(brokers=5), FACTS, CLOSING),
    ("run.json declares the replicas of 1 partitions, not of 2", NOTHING, a_run_of(partitions=2), FACTS, CLOSING),
    ("producer-1.arrow mentions x-0, which the run does not have", HISTORIES, RUN, FACTS,
     closing_of(told("producer-1", "send", 0, topic="x"))),
    ("producer-1.arrow mentions t-9, which the run does not have", HISTORIES, RUN, FACTS,
     closing_of(told("producer-1", "send", 0, partition=9))),
    ("sentinel.arrow has delete rows, which sentinel cannot have", HISTORIES, RUN, FACTS,
     closing_of(said_by("sentinel", HistoryRow("delete", "ok", "t", 0, first_offset=6, last_offset=6)))),
    ("reader-1.arrow has reserve rows, which reader-1 cannot have", HISTORIES, RUN, FACTS,
     closing_of(said_by("reader-1", HistoryRow("reserve", "invoke", "t", 0, 7, 0, 2)))),
    ("sentinel.arrow has rows of streams that do not belong to a sentinel", HISTORIES, RUN, FACTS,
     closing_of(said_by("sentinel", HistoryRow("reserve", "invoke", "t", 0, 7, 0, 2)))),
    ("reader-1.arrow has polls of t-0 in session 2, which was not assigned it", HISTORIES, RUN, FACTS,
     closing_of(told("reader-1", "poll", 2, session=2))),
    ("t-0: reader-1 came to offset 14 live, of 23 acknowledged before recovery", NOTHING, RUN, FACTS, STARVED),
    ("the wall clock moved by 600.0 s", CLOCK, RUN, FACTS, closing(clock=ClockShift(0, 600_000))),
    ("the wall clock moved by 60.1 s", CLOCK, RUN, FACTS, closing(clock=ClockShift(30_050, 30_050))),
    ("resources.jsonl cannot be read", CLOCK, RUN, FACTS,
     closing(unreadable=(Unreadable("resources.jsonl", "Expecting value"),))),
    ("resources.jsonl: changed since", CLOCK, RUN, FACTS,
     closing(differences=(Difference("resources.jsonl", "changed"),))),
    ("the run was interrupted", NOTHING, a_run(interrupted=True), FACTS, CLOSING),
    ("the load did not stop", NOTHING, a_run(problems=["the load did not stop"]), FACTS, CLOSING),
    ("run.json names no topic", FINAL, a_run(topics=[]), FACTS, CLOSING),
    ("t-0: its final state is unknown", NOTHING, a_run(final=[]), FACTS, CLOSING),
    ("t is compacted (cleanup.policy=compact,delete)", NOTHING, a_run(topics=[COMPACTED]), FACTS, CLOSING),
    ("t-0: unavailable: it has no leader", NOTHING, final(status="unavailable: it has no leader"), FACTS, CLOSING),
    ("did not settle", NOTHING, final(log_end_offsets={1: 25, 2: 25, 3: 24}), FACTS, CLOSING),
    ("did not settle", NOTHING, final(high_watermark=24, sentinel_offset=23), FACTS, CLOSING),
    ("2 of its 3 replicas are known", NOTHING, final(log_end_offsets={1: 25, 2: 25}), FACTS, CLOSING),
    ("it has no acknowledged sentinel", NOTHING, final(sentinel_offset=None), FACTS, CLOSING),
    ("is not below the high watermark", NOTHING, final(sentinel_offset=25), FACTS, CLOSING),
    # All replicas' bytes end there: the cluster went back.
    ("told of a high watermark 26, and the last one is 25", NOTHING, RUN, FACTS,
     account("reader-1", watermarks={("t", 0): 26})),
    ("told of a high watermark 26, and the last one is 25", FINAL, RUN,
     facts(replicas=(replace(FACTS.replicas[0], next_offset=26), *FACTS.replicas[1:])),
     account("reader-1", watermarks={("t", 0): 26})),
    ("not on those of its declared replicas", FINAL, final(log_end_offsets={1: 25, 2: 25, 4: 25}), FACTS, CLOSING),
    ("its final state is recorded twice", FINAL, a_run(final=[*RUN.final, *RUN.final]), FACTS, CLOSING),
    ("its topic id 8f56e1f3", FINAL, a_run(final_topic_ids={"t": "another"}), FACTS, CLOSING),
    ("t-0 on broker 3: its partition.metadata has topic id unknown", FINAL, RUN, FACTS,
     closing(topic_ids={key: each for key, each in CLOSING.topic_ids.items() if key[0] != 3})),
    ("does not declare which processes", HISTORIES,
     a_run(evidence=replace(RUN.evidence, processes=[])), FACTS, CLOSING),
    ("there is no history", HISTORIES, RUN, FACTS, closing(accounts=())),
    ("the history of producer-1 is missing", HISTORIES, RUN, FACTS, without("producer-1")),
    ("which was not declared", HISTORIES, RUN, FACTS,
     account("producer-1", process="stranger", writers=frozenset(("stranger",)))),
    ("is of another process", HISTORIES, RUN, FACTS, account("producer-1", file="another.arrow")),
    ("sentinel has several histories", HISTORIES, RUN, FACTS,
     closing(accounts=(*CLOSING.accounts, *(e for e in CLOSING.accounts if e.process == "sentinel")))),
    ("cannot be read: no Arrow message", HISTORIES, RUN, FACTS,
     account("producer-1", state="damaged", error="no Arrow message")),
    ("has no proper end", HISTORIES, RUN, FACTS, account("producer-1", state="torn")),
    ("has no totals", HISTORIES, RUN, FACTS, account("producer-1", totals={})),
    ("and says that it has 8 with 24", HISTORIES, RUN, FACTS,
     account("producer-1", rows={**rows_of("producer-1"), ("send", "ok"): (7, 24)})),
    ("sequences s1/3 without an outcome", HISTORIES, RUN, FACTS,
     account("producer-1", unanswered=("s1/3 without an outcome",))),
    ("mentions streams 9", HISTORIES, RUN, FACTS, account("producer-1", streams=frozenset((1, 2, 9)))),
    ("does not mention streams 2", HISTORIES, RUN, FACTS, account("producer-1", streams=frozenset((1,)))),
    ("but after REQUEST_TIMED_OUT no one can know that", HISTORIES, RUN, FACTS,
     account("producer-1", errors={("fail", "REQUEST_TIMED_OUT"): 3})),
    ("but after INVALID_RECORD no one can know that", HISTORIES, RUN, FACTS,
     account("producer-1", errors={("fail", "INVALID_RECORD"): 3})),
    ("says that 3 records were acknowledged with X", HISTORIES, RUN, FACTS,
     account("producer-1", errors={("ok", "X"): 3})),
    ("producer-1 left no series", HISTORIES, RUN, FACTS, closing(series={"reader-1": CLOSING.series["reader-1"]})),
    ("its process's live series 23", HISTORIES, RUN, FACTS, closing(series=series("producer-1", total_acked=23))),
    ("its process's live series 1", HISTORIES, RUN, FACTS, closing(series=series("reader-1", total_read=1))),
    ("no segment was found on any broker", NOTHING, RUN, facts(replicas=(), segments_listed=0), CLOSING),
    ("t-0: no segment was found on broker 3", NOTHING, RUN,
     facts(replicas=FACTS.replicas[:2], segments_listed=2), CLOSING),
    ("4 segment files were found, 3 were read", NOTHING, RUN, facts(segments_listed=4), CLOSING),
    ("800 of 900 bytes on broker 1", NOTHING, RUN,
     facts(replicas=(replace(FACTS.replicas[0], batch_bytes=800), *FACTS.replicas[1:])), CLOSING),
    ("its log on broker 1 ends at 28, and ended at 25", NOTHING, RUN,
     facts(replicas=(replace(FACTS.replicas[0], next_offset=28), *FACTS.replicas[1:])), CLOSING),
    ("t-0: broker 1 has a batch of leader epoch 2, and the last one is 1", NOTHING, RUN,
     facts(replicas=(replace(FACTS.replicas[0], leader_epoch=2), *FACTS.replicas[1:])), CLOSING),
    ("t-0: its log has batches without a producer id or a sequence, and the producers are idempotent", NOTHING, RUN,
     facts(replicas=(replace(FACTS.replicas[0], numbered=7, unnumbered=1), *FACTS.replicas[1:])), CLOSING),
    ("t-0: its log has batches with producer ids and sequences, and the producers are not idempotent", NOTHING,
     a_run_of(idempotence=False),
     facts(replicas=(replace(FACTS.replicas[0], numbered=1, unnumbered=7), *FACTS.replicas[1:])), CLOSING),
    ("t-0: values of stream 1 are under the producer id 1002, which its history does not mention", NOTHING, RUN,
     facts(untold=(Untold("t", 0, 1, 1002),)), CLOSING),
    ("t-0: its log has records of leader epoch 2 that were acknowledged long before leaders.jsonl saw it begin",
     EXCUSES, RUN, facts(contradicted=(("t", 0, 2),)), CLOSING),
    ("t-1: broker 1 has a log of it but is not one of its replicas", NOTHING, RUN,
     facts(replicas=(*FACTS.replicas, replace(FACTS.replicas[0], partition=1)), segments_listed=4), CLOSING),
    ("t-0: its sentinel is not in the final leader's log", NOTHING, RUN, facts(sentinels=frozenset()), CLOSING),
    ("t-0: the final reader final-1 read nothing of it", NOTHING, RUN, facts(readers=()), CLOSING),
    ("stopped at offset 20, before the sentinel", NOTHING, RUN, facts(readers=(READER,)), CLOSING),
    ("nothing was acknowledged", NOTHING, RUN, facts(acked=0), CLOSING),
    ("nothing was read in the final phase", NOTHING, RUN, facts(final_read=0), CLOSING),
    ("do not match in 2 rows of the histories", NOTHING, RUN, facts(malformed_rows=2), CLOSING),
    ("24 records were acknowledged in 40 s of load, less than 10% of the 4,000", NOTHING,
     a_run(settings=settings(rate=100.0)), FACTS, CLOSING),
    ("t-0: 0 records were acknowledged, of about", NOTHING, RUN, FACTS, account("producer-1", acked={("t", 1): 24})),
    ("t-0: reader-1 read 11 of 24 acknowledged records live", NOTHING, RUN, FACTS,
     account("reader-1", read={("t", 0): 11})),
    ("the run has no phase recovery", NOTHING,
     a_run(phases=[each for each in RUN.phases if each.name != "recovery"]), FACTS, CLOSING),
    ("says that the run began at 'soon', which is not a time", NOTHING, a_run(started="soon"), FACTS, CLOSING),
    ("are not in their order", NOTHING, a_run(phases=RUN.phases[::-1]), FACTS, CLOSING),
    ("phase stop has no end", NOTHING,
     a_run(phases=[*RUN.phases[:-1], replace(RUN.phases[-1], end_ns=None)]), FACTS, CLOSING),
    ("phase stop begins before final read has ended", NOTHING,
     a_run(phases=[*RUN.phases[:-1], replace(RUN.phases[-1], start_ns=1)]), FACTS, CLOSING),
    ("run.json has no process of broker 2", NOTHING,
     a_run(children=[each for each in RUN.children if each.name != "broker-2"]), FACTS, CLOSING),
    ("run.json names a process readers-native, which the run did not declare", NOTHING,
     a_run(children=[*RUN.children, ChildProcess("readers-native", 300, 2.0, 0)]), FACTS, CLOSING),
    ("run.json names a process broker-9, which the run did not declare", NOTHING,
     a_run(children=[*RUN.children, ChildProcess("broker-9", 300, 2.0, 0)]), FACTS, CLOSING),
    ("broker-2 (pid 102) ended with exit status 1 instead of 0", NOTHING,
     a_run(children=children(broker_2=1)), FACTS, CLOSING),
    ("ended with exit status -9, and no fault had killed it", NOTHING,
     a_run(children=[*children(broker_2=-9), ChildProcess("broker-2", 300, 2.0, 0)]), FACTS, CLOSING),
    ("nodes/1/broker.log has an error (2 such lines): Traceback", NOTHING, RUN, FACTS,
     closing(alarms=(LogAlarm("nodes/1/broker.log", 2, "Traceback (most recent call last):"),))),
    ("harness overloaded: the event loop of proxy stood still for 1.20 s", NOTHING,
     a_run(harness=HarnessHealth({"conductor": 0.1, "proxy": 1.2, "broker-1": 9.0})), FACTS, CLOSING),
    ("harness overloaded: the event loop of producer-1 stood still for 5.10 s", NOTHING, RUN, FACTS,
     closing(lag_ms={"producer-1": 5100.0, "reader-1": 3.0})),
    ("no event-loop lag of conductor was recorded", NOTHING,
     a_run(harness=HarnessHealth({"proxy": 0.1})), FACTS, CLOSING),
    ("no event-loop lag of reader-1 was recorded", NOTHING, RUN, FACTS, closing(lag_ms={"producer-1": 1.0})),
    ("the run was not sealed", NOTHING, RUN, FACTS, closing(seal=None, seal_problem="the run was not sealed")),
    ("history/a.arrow, history/b.arrow: changed since the run was sealed", HISTORIES, RUN, FACTS,
     closing(differences=(Difference("history/a.arrow", "changed"), Difference("history/b.arrow", "changed")))),
    ("run.json: changed since", ALL, RUN, FACTS, closing(differences=(Difference("run.json", "changed"),))),
    ("faults.jsonl: missing since", EXCUSES, RUN, FACTS, closing(differences=(Difference("faults.jsonl", "missing"),))),
    ("nodes/9/x: not there when", NOTHING, RUN, FACTS, closing(differences=(Difference("nodes/9/x", "new"),))),
    ("faults.jsonl cannot be read", EXCUSES, RUN, FACTS, closing(unreadable=(Unreadable("faults.jsonl", "x"),))),
    ("t-0: it ended in leader epoch 3, but leaders.jsonl has none after 2", EXCUSES, final(leader_epoch=3), FACTS,
     closing(looks={("t", 0): [Sighting(2, None, 0)]})),
    ("t-0: it ended in leader epoch 1 led by 1, and by 3 in leaders.jsonl", EXCUSES, RUN, FACTS,
     closing(looks={("t", 0): [Sighting(1, None, 0, 3)]})),
    ("t-0: leaders.jsonl does not mention it", EXCUSES, RUN, FACTS, closing(looks={})),
    ("leaders.jsonl has times that lie outside the phases", EXCUSES, RUN, FACTS, closing(looks_ns=(0, 57 * SECOND))),
    ("leaders.jsonl has times that lie outside the phases", EXCUSES, RUN, FACTS, closing(looks_ns=(-2 * SECOND, 0))),
    ("injection 0 (kill-leader) has times that lie outside the phases", EXCUSES, BITTEN, FACTS,
     closing(replace(KILL, end_ns=57 * SECOND))),
    ("injection 0 (kill-leader) has times that lie outside the phases", EXCUSES, BITTEN, FACTS,
     closing(replace(KILL, start_ns=-2 * SECOND))),
    ("injection 0 (kill-leader) ended 0.5 s after the phase heal had ended", EXCUSES, BITTEN, FACTS,
     closing(replace(KILL, end_ns=51 * SECOND + SECOND // 2))),
    ("injection 0 (kill-leader) ended 26.0 s after the phase heal had ended", EXCUSES,
     replace(BITTEN, phases=[
         replace(each, start_ns=4 * SECOND, end_ns=4 * SECOND) if each.name in ("chaos", "heal") else each
         for each in BITTEN.phases
     ]), FACTS, closing(KILL)),
    ("run.json does not say which producer ids were handed out", NOTHING, a_run(producer_ids_below=None), FACTS,
     CLOSING),
    ("and that its phases continued after that", CLOCK, a_run(started="2023-11-14T22:16:00Z"), FACTS, CLOSING),
    ("the run ended at 'soon', which is not a time", CLOCK, a_run(ended="soon"), FACTS, CLOSING),
    ("and Locust noted another time for producer-1", CLOCK, RUN, FACTS, beside(wall_s=(1_699_990_000, 1_699_990_050))),
    ("and Locust noted another time for producer-1", CLOCK, RUN, FACTS, beside(wall_s=(1_700_000_000, 1_700_007_200))),
    ("producer-1 left no status", HISTORIES, RUN, FACTS, beside(status=None)),
    ("producer-1 says total_acked 27 in its status, and 24 in its last series point", HISTORIES, RUN, FACTS,
     beside(status=replace(CLOSING.series["producer-1"], total_acked=27))),
    ("producer-1 had 25 records acknowledged by Locust's count, and 24 by its history", HISTORIES, RUN, FACTS,
     beside(counted=25)),
    ("t-0: the phase recovery ended before the bound, and nothing was acknowledged", NOTHING, RUN, FACTS,
     account("producer-1", last_tried_ns={("t", 0): 52 * SECOND})),
    ("injection 0 (kill-leader on b1) was not seen to be over by the end", EXCUSES, BITTEN, FACTS,
     closing(replace(KILL, healed=False))),
    ("injection 0 (kill-leader) has times that lie outside the phases", EXCUSES, BITTEN, FACTS,
     closing(replace(KILL, healed=False, late=True, again_ns=900 * SECOND))),
    ("injection 0 is kill-leader, which was not asked for", EXCUSES, RUN, FACTS, closing(KILL)),
    ("nothing was sent while kill-leader on b1 lasted (10.0 s)", NOTHING, FAULTY, facts(acked=4000), closing(KILL)),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "blinds", "run", "known", "closed"), CASES, ids=[case[0] for case in CASES])
def test_each_gap_in_the_evidence_is_named(
    reason: str, blinds: frozenset[Evidence], run: RunModel, known: Facts, closed: Closing
) -> None:
    """One thing is missing, one reason says so, and what can no longer be believed is named."""
    doubts = incomplete(run, known, closed)
    (doubt,) = [each for each in doubts if reason in each.reason] or [None]
    assert doubt is not None, doubts
    assert doubt.blinds == blinds
    assert len(doubts) <= 3, doubts


def test_a_final_state_without_replicas_has_no_disks_that_agree_with_it() -> None:
    """Then nothing says that the cluster went back, and not its final state."""
    closed = account("reader-1", watermarks={("t", 0): 26})
    (doubt,) = [each for each in incomplete(final(log_end_offsets={}), FACTS, closed) if "was told of" in each.reason]
    assert doubt.blinds == FINAL


@pytest.mark.parametrize("steps", [None, 7, {"pid": 102}, [7, None, {"pid": 102}]])
def test_a_probe_that_makes_no_sense_raises_nothing(steps: object) -> None:
    """The steps of a fault are what its record says: a damaged one names no process, or fewer."""
    killed = replace(KILL, probe={"steps": steps})
    run = a_run(
        children=[*children(broker_2=-9), ChildProcess("broker-2", 300, 2.0, 0)], faults_requested=["kill-leader"]
    )
    assert any("no fault had killed it" in each.reason for each in incomplete(run, FACTS, closing(killed)))


@pytest.mark.parametrize("change", [{}, {"time_ns": 51 * SECOND, "total_acked": 3}, {"time_ns": 1}])
def test_a_series_goes_on(tmp_path: Path, change: dict[str, int]) -> None:
    """A line that is there twice, a total that falls and a time that goes back are no series."""
    directory = clean().write(tmp_path / "run")
    run = RunModel.from_json(directory.read_run())
    assert gather(directory, run).unreadable == ()
    path = directory.series_jsonl("producer-1")
    line = path.read_text(encoding="utf-8")
    path.write_text(line + json.dumps(json.loads(line) | change) + "\n", encoding="utf-8")
    assert any("does not follow" in each.error for each in gather(directory, run).unreadable)
    assert gather(directory, run).before_last == {}
    path.write_text(line + json.dumps(json.loads(line) | {"time_ns": 51 * SECOND}) + "\n", encoding="utf-8")
    whole = gather(directory, run)
    assert whole.unreadable == ()
    times = [each["producer-1"].time_ns for each in (whole.before_last, whole.series)]
    assert times == [json.loads(line)["time_ns"], 51 * SECOND]


def test_partition_metadata_of_another_version_tells_no_topic_id(tmp_path: Path) -> None:
    """Nobody knows what another version means by its lines."""
    directory = clean().write(tmp_path / "run")
    path = directory.node(1) / "data" / "t-0" / "partition.metadata"
    path.write_text(path.read_text(encoding="utf-8").replace("version: 0", "version: 7"), encoding="utf-8")
    assert gather(directory, RunModel.from_json(directory.read_run())).topic_ids[1, "t", 0] is None


def test_what_the_run_says_itself_comes_first() -> None:
    """The cause stands above what follows from it, and says that it was one; not in a run that came to its end."""
    broken = a_run(problems=["the disk is full", "and another"], phases=RUN.phases[:2], final=[], topics=[])
    reasons = [each.reason for each in incomplete(broken, FACTS, closing(clock=ClockShift(0, 600_000)))]
    assert reasons[0] == "the disk is full; the run ended early, which may be the only reason for what is missing below"
    assert reasons[1] == "and another"
    assert len(reasons) > 5
    ended = [each.reason for each in incomplete(a_run(problems=["the load did not stop"]), FACTS, CLOSING)]
    assert ended == ["the load did not stop"]


def test_an_overloaded_harness_says_what_helps() -> None:
    """Whoever meets it knows what to do."""
    (doubt,) = incomplete(RUN, FACTS, closing(lag_ms={"producer-1": 5100.0, "reader-1": 3.0}))
    assert doubt.reason.endswith("(5.00 s); repeat the run on an idle machine, or with a lower --rate")


def test_a_loaded_broker_is_not_an_overloaded_harness() -> None:
    """The brokers' own lag is part of what is under test; so is a lag below half a session."""
    lags = HarnessHealth(event_loop_lag_s={"conductor": 0.1, "proxy": 0.9, "broker-1": 9.0})
    assert incomplete(a_run(harness=lags), facts(), closing()) == []


@pytest.mark.parametrize(
    ("acks", "lag_ms", "doubted"),
    [("0", 1900.0, False), ("0", 2100.0, True), ("1", 2900.0, False), ("1", 3100.0, True), ("all", 4900.0, False)],
)
def test_a_client_that_stood_still_cannot_say_what_excuses_it(acks: Any, lag_ms: float, doubted: bool) -> None:
    """It notes a lost connection, or a late acknowledgement, too late for what the excuses allow for."""
    run = a_run(settings=settings(acks=acks, idempotence=acks == "all"))
    found = incomplete(run, facts(), closing(lag_ms={"producer-1": lag_ms, "reader-1": 9000.0}))
    late = [doubt for doubt in found if "is noted more than" in doubt.reason]
    assert [doubt.blinds for doubt in late] == ([EXCUSES] if doubted else [])


def test_the_same_reason_is_given_once_for_all_partitions() -> None:
    """A run that ended early has one line for what all partitions lack."""
    topic = replace(a_run().topics[0], partitions=3)
    reasons = [doubt.reason for doubt in incomplete(a_run(topics=[topic], final=[]), facts(), closing())]
    assert "t-0, t-1, t-2: its final state is unknown" in reasons


@pytest.mark.parametrize("code", list(ErrorCode), ids=lambda code: code.name)
def test_the_verifier_s_table_of_outcomes_is_the_client_s(code: ErrorCode) -> None:
    """Which error means that a record certainly failed is decided twice, and both agree; for librdkafka none does."""
    assert may_fail("native", code.name) is (recorded_outcome(code) == "fail")
    assert not may_fail("confluent", code.name)
    if code.value > 0:
        assert recorded_outcome(failure_of(KafkaError(code.value)).code) != "fail"


def test_errors_in_logs_are_the_clusters_and_the_harnesss(tmp_path: Path) -> None:
    """A traceback anywhere, an error of a process of ours; not what kafka-python says of a connection that broke."""
    story = clean()
    directory = story.write(tmp_path)
    lines = {
        "nodes/1/broker.log": "2026-01-01 00:00:00,000 ERROR cluster.log: the disk is full\n",
        "loadgen/final.log": "2026-01-01 00:00:00,000 ERROR kafka.net.transport: Error receiving network data\n",
        "loadgen/producers.log": "2026-01-01 INFO x: y\nTraceback (most recent call last):\n",
    }
    for name, text in lines.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    alarms = {alarm.path: alarm.count for alarm in gather(directory, story.model()).alarms}
    assert alarms == {"nodes/1/broker.log": 1, "loadgen/producers.log": 1}
