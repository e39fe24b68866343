"""The verdict of a standalone load: its histories as operations, judged as those of others are. Owns what closes them.

No one conducted such a load: there are no replicas, no elections and no faults to look at, and its topic may be shared.
So it is accused only of what its own values show, and acquitted only if all of them were read back. What its settings
may make legal is unknown: the event that would excuse it is not in the evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from verifier.evidence.arrow_stream import HistoryError
from verifier.evidence.history import stream_history
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunSettings
from verifier.evidence.sequenced_value import SENTINEL_STREAM
from verifier.evidence.standalone import ByHandError, LoadStart, ReadBack, read_read_back, read_starts
from verifier.excuses.expectation import (
    DISCONNECT,
    ELECTION,
    REFUSAL,
    RETRY,
    RETURNED,
    TIMEOUT,
    UNANSWERED,
    Expectation,
)
from verifier.operations.anomalies import BY_NAME
from verifier.operations.export import Export, export_run
from verifier.operations.model import HistoryBuilder, OperationsError
from verifier.operations.options import JudgeOptions
from verifier.operations.verify_history import CANNOT_SEE, ClientVerdict, judge
from verifier.verdict import CheckResult, State, Verdict, accusations, undecidable, worst

#: Written after the load, to find the end: they are not of the load, and their numbers begin again with each read back.
_FOUND_THE_END = "sentinel"
#: Rows of a poll that say nothing of this load, since a topic may be shared. What took the place of an acknowledged
#: value shows as the loss of that value.
_OF_OTHERS = ("foreign: ", "undecodable: not a sequenced value", "undecodable: null value")
#: What rests on every value having been read.
_NEEDS_ALL = ("unseen", "lost-write")
_REAL_TIME = ("G0-realtime", "G1c-realtime")
_BLIND = (
    CANNOT_SEE[0],
    "a client-only verdict cannot tell whether there were faults, and whether they bit",
    "a client-only verdict cannot see an election: what acks=0, acks=1 or an unclean one may make legal is unknown",
)


class Sieve:
    """What of the histories is of this load.

    A load with the run id of an earlier one in the same topic writes the same values again. What was read below the end
    that the log had when the load began is of the earlier one, unless the log was cut and the load wrote there.
    """

    def __init__(self, starts: Sequence[LoadStart]) -> None:
        self.others = 0
        self.strangers: set[int] = set()
        self._begins: dict[int, int] = {}
        for start in starts:
            for partition, end in start.ends.items():
                self._begins[partition] = min(end, self._begins.get(partition, end))

    def __call__(self, histories: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
        reserved = {row["stream"] for rows in histories for row in rows if row["f"] == "reserve"}
        for row in (row for rows in histories for row in rows if row["f"] == "send" and row["first_offset"] >= 0):
            self._begins[row["partition"]] = min(row["first_offset"], self._begins.get(row["partition"], 0))
        return [[row for row in rows if self._is_ours(row, reserved)] for rows in histories]

    def _is_ours(self, row: Mapping[str, Any], reserved: set[int]) -> bool:
        if row["stream"] >= SENTINEL_STREAM or row["f"] == _FOUND_THE_END:
            return False
        if row["f"] != "poll":
            return True
        is_earlier = 0 <= row["last_offset"] < self._begins.get(row["partition"], 0)
        if is_earlier if row["stream"] >= 0 else str(row["error"]).startswith(_OF_OTHERS):
            self.others += row["last_offset"] - row["first_offset"] + 1
            return False
        if row["stream"] >= 0 and row["stream"] not in reserved:
            self.strangers.add(row["stream"])
            return False
        return True


def judge_load(run: RunDirectory, options: JudgeOptions) -> ClientVerdict:
    """Judge the load in a directory; what is damaged is ``unknown``. Raises ``OSError``."""
    try:
        starts, back = read_starts(run), read_read_back(run)
        sieve = Sieve(starts)
        exported = export_run(run.history_dir, sieve)
        builder = HistoryBuilder(str(run.path), json_keys=True)
        builder.add_all(enumerate(exported.lines, start=1))
    except (ByHandError, HistoryError, OperationsError) as error:
        return ClientVerdict(run.path, options, undecidable(str(error)), cannot_see=())
    except MemoryError:
        return ClientVerdict(run.path, options, undecidable("the verifier ran out of memory"), cannot_see=())
    judged = judge(builder.finish(), options, run.path)
    withheld = dict(_withheld(run, starts, back))
    withheld |= _excusable(starts, run, judged.verdict, withheld)
    doubts = [*_gaps(run, starts, back, exported, sieve), *dict.fromkeys(withheld.values())]
    verdict = _closed(judged.verdict, withheld, doubts)
    found = {name: each for name, each in judged.findings.items() if name not in withheld}
    return replace(judged, verdict=verdict, cannot_see=_BLIND, beside=tuple(_beside(sieve)), findings=found)


def _gaps(
    run: RunDirectory, starts: tuple[LoadStart, ...], back: ReadBack | None, exported: Export, sieve: Sieve
) -> Iterator[str]:
    """What keeps the evidence from being complete."""
    for start in starts:
        if not run.history(start.process).exists():
            yield f"history/{start.process}.arrow is missing: collect the histories of all workers"
    for process in exported.unfinished:
        yield f"history/{process}.arrow has no end: its process was killed, or still runs, or could not write"
    workers = max((start.workers or 0 for start in starts), default=0)
    if len(starts) < workers:
        yield f"{workers} workers began, and {len(starts)} left something here: collect the histories of all"
    if sieve.strangers:
        some = ", ".join(map(str, sorted(sieve.strangers)[:6]))
        yield f"values of streams that no history here reserved were read ({some}): a worker's history is missing"
    if exported.left_out:
        yield f"{exported.left_out} rows of the histories contradict themselves"
    if len({(start.run_id, start.topic) for start in starts}) > 1:
        yield "the files in loadgen/ are of several loads"


def _withheld(run: RunDirectory, starts: tuple[LoadStart, ...], back: ReadBack | None) -> Iterator[tuple[str, str]]:
    """Checks that the evidence cannot answer, and why."""
    do_it = f"do it with 'gapless load --read-back {run.path}'"
    early = [start.process for start in starts if back is not None and start.process not in back.after]
    if back is None:
        why = f"what was written was not read back at the end; {do_it}"
    elif back.why:
        why = f"what was written was not read back at the end: {back.why}; {do_it}"
    else:
        why = f"what was written was read back before {', '.join(early)} had ended; {do_it}" if early else ""
    if why:
        yield from ((name, why) for name in _NEEDS_ALL)
    deleted = [
        number
        for number, begin in (back.begins if back is not None else {}).items()
        if begin > min((start.ends.get(number, begin) for start in starts), default=begin)
    ]
    if deleted:
        several = "s" * (len(deleted) > 1)
        numbers = ", ".join(map(str, deleted))
        why = f"the topic deleted records of partition{several} {numbers} before they were read back"
        yield from ((name, why) for name in _NEEDS_ALL)
    if any("compact" in start.topic_config.get("cleanup.policy", "") for start in starts):
        why = "the topic is compacted: it forgets values that others replaced"
        yield from ((name, why) for name in _NEEDS_ALL)
    if len({start.machine for start in starts}) > 1:
        why = "the load ran on several machines, whose clocks are not compared"
        yield from ((name, why) for name in _REAL_TIME)


def _excusable(
    starts: tuple[LoadStart, ...], run: RunDirectory, verdict: Verdict, withheld: Mapping[str, str]
) -> dict[str, str]:
    """What was found and the settings may make legal, and why."""
    found = [check for check in verdict.checks.values() if check.forbidden_count and check.name not in withheld]
    if not found or not starts:
        return {}
    expectation = Expectation(_settings(starts[0]))
    events = {ELECTION, RETURNED, *_events(run)}
    reasons = {}
    for check in found:
        # what is not read at the tail of a log is a lost write where the log itself is examined
        name = "lost-write" if check.name == "unseen" else check.name
        why = [each.reason for each in expectation.allowances if each.check == name and each.excuse in events]
        if why:
            reasons[check.name] = (
                f"{check.name}: {BY_NAME[check.name].summary} ({check.forbidden_count}), which may be legal: {why[0]}"
            )
    return reasons


def _settings(start: LoadStart) -> RunSettings:
    """A load's settings as far as they excuse anything, and otherwise those that excuse most."""
    return RunSettings(
        acks=start.acks, idempotence=start.idempotence, max_in_flight=5, retries=1, client=start.client,
        unclean_leader_election=start.topic_config.get("unclean.leader.election.enable") == "true",
        unknown_producer="gapless", brokers=0, partitions=len(start.ends), replication_factor=0,
        replica_lag_time_max_ms=0, session_timeout_ms=0, producer_id_expiration_ms=0, rate=0.0, users=0,
        load_processes=1, readers=(), final_readers=(), stalled_after_s=0.0,
        target=None, replica_dirs=(),
    )  # fmt: skip


def _events(run: RunDirectory) -> Iterator[str]:
    """The events of clients that the histories have."""
    for path in run.history_dir.glob("*.arrow"):
        for part in stream_history(path)[1]:
            for row in part.select(["f", "type"]).group_by(["f", "type"]).aggregate([]).to_pylist():
                if row["f"] == "retry":
                    yield from (RETRY, REFUSAL)
                elif row["f"] == "disconnect":
                    yield DISCONNECT
                elif (row["f"], row["type"]) == ("send", "info"):
                    yield from (TIMEOUT, UNANSWERED)


def _closed(verdict: Verdict, withheld: Mapping[str, str], doubts: list[str]) -> Verdict:
    """The verdict of the operations, with what their evidence lacks."""
    checks: dict[str, CheckResult] = {}
    for name, check in verdict.checks.items():
        if name in withheld:
            checks[name] = CheckResult(name, "unknown", withheld=True)
        else:
            checks[name] = replace(check, state="unknown") if doubts and check.state == "valid" else check
    states: list[State] = [check.state for check in checks.values()]
    if doubts or verdict.doubts:
        states.append("unknown")
    return replace(
        verdict,
        verdict=worst(states),
        accusations=tuple(accusations(checks, {name: each.summary for name, each in BY_NAME.items()})),
        doubts=(*verdict.doubts, *doubts),
        checks=checks,
        stats=_stats(verdict.stats),
    )


def _stats(stats: Mapping[str, Any]) -> Mapping[str, Any]:
    """Counted as a run counts: what was reserved and never sent did not fail."""
    if not stats:
        return stats
    return {**stats, "failed": stats["failed"] - stats["never_sent"], "never_sent": 0, "unsent": stats["never_sent"]}


def _beside(sieve: Sieve) -> Iterator[str]:
    if sieve.others:
        yield f"{sieve.others:,} records that were read are of others, who share the topic: they are left out"
