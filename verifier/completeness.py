"""Whether the evidence of a run is complete, and the harness was not overloaded. Pure rules over facts.

``valid`` may only be said of a run that passes all of them; each reason is one line for people. A source that yields
nothing would otherwise be a check that passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from verifier.evidence.run_model import FinalPartition, RunModel
from verifier.facts import MAXIMUM_READERS, Facts, HistoryState

#: The processes whose event loop decides what the cluster sees; the brokers' own lag is theirs.
HARNESS_LOOPS = ("proxy", "conductor")


def incomplete(run: RunModel, facts: Facts) -> list[str]:
    """Why the evidence does not suffice; empty if it does."""
    reasons = [*run.problems, *run.harness.problems]
    if run.interrupted:
        reasons.append("the run was interrupted")
    reasons += _overloaded(run)
    reasons += _compacted(run)
    reasons += _finals(run)
    reasons += _histories(run, facts)
    reasons += _replicas(run, facts)
    reasons += _readers(run, facts)
    reasons += _counts(facts)
    return list(dict.fromkeys(reasons))


def _overloaded(run: RunModel) -> Iterator[str]:
    limit_s = run.settings.session_timeout_ms / 2000
    for process, lag_s in sorted(run.harness.event_loop_lag_s.items()):
        if process.startswith(HARNESS_LOOPS) and lag_s > limit_s:
            yield (
                f"harness overloaded: the event loop of {process} stood still for {lag_s:.2f} s, "
                f"more than half a ZooKeeper session ({limit_s:.2f} s)"
            )


def _compacted(run: RunModel) -> Iterator[str]:
    for topic in run.topics:
        if topic.is_compacted:
            yield (
                f"{topic.name} is compacted (cleanup.policy={topic.config['cleanup.policy']}): superseded records are "
                "gone and replicas compact each for itself, so that nothing in it can be judged"
            )


def _finals(run: RunModel) -> Iterator[str]:
    known = {(final.topic, final.partition) for final in run.final}
    wanted = {(topic.name, partition) for topic in run.topics for partition in range(topic.partitions)}
    if not wanted:
        yield "run.json names no topic"
    complaints = [(f"{topic}-{partition}", "its final state is unknown") for topic, partition in sorted(wanted - known)]
    for final in run.final:
        reasons = [final.status] if final.status != "ok" else list(_unsettled(run, final))
        complaints += [(f"{final.topic}-{final.partition}", reason) for reason in reasons]
    yield from _together(complaints)


def _together(complaints: Iterable[tuple[str, str]]) -> Iterator[str]:
    """One line for all partitions of which the same is to be said."""
    whose: dict[str, list[str]] = {}
    for name, reason in complaints:
        whose.setdefault(reason, []).append(name)
    for reason, names in whose.items():
        yield f"{', '.join(names)}: {reason}"


def _unsettled(run: RunModel, final: FinalPartition) -> Iterator[str]:
    """What contradicts the status ``ok`` of a partition."""
    ends = final.log_end_offsets
    replication_factor = next((t.replication_factor for t in run.topics if t.name == final.topic), None)
    if final.leader not in ends:
        yield f"the log end offset of its leader {final.leader} is unknown"
    elif len(set(ends.values())) != 1 or final.high_watermark != ends[final.leader]:
        yield f"its replicas did not settle: log end offsets {ends}, high watermark {final.high_watermark}"
    if replication_factor is not None and len(ends) != replication_factor:
        yield f"{len(ends)} of its {replication_factor} replicas are known"
    if final.sentinel_offset is None:
        yield "it has no acknowledged sentinel"
    elif final.sentinel_offset >= final.high_watermark:
        yield f"its sentinel at {final.sentinel_offset} is not below the high watermark {final.high_watermark}"


def _histories(run: RunModel, facts: Facts) -> Iterator[str]:
    if not facts.histories:
        yield "there is no history"
        return
    present = {history.process for history in facts.histories}
    for process in run.load_processes:
        if process not in present:
            yield f"the history of {process} is missing"
    for history in facts.histories:
        if history.state == "damaged":
            yield f"the history {history.file} cannot be read: {history.error}"
        elif history.state != "closed" and not _was_killed(run, history):
            yield f"the history {history.file} has no proper end, and its process is not known to have been killed"


def _was_killed(run: RunModel, history: HistoryState) -> bool:
    """A process that a signal ended may leave a torn tail; what it had reserved is then unknown, never a phantom."""
    return any(child.name == history.process and (child.exit_code or 0) < 0 for child in run.children)


def _replicas(run: RunModel, facts: Facts) -> Iterator[str]:
    if not facts.replicas:
        yield "no segment was found on any broker (their data may have been pruned)"
        return
    read = {(each.topic, each.partition, each.broker): each for each in facts.replicas}
    files_read = sum(each.files for each in facts.replicas)
    if facts.segments_listed != files_read:
        yield f"{facts.segments_listed} segment files were found, {files_read} were read"
    complaints = []
    for final in run.final:
        for broker in sorted(final.log_end_offsets):
            files = read.get((final.topic, final.partition, broker))
            if files is None:
                reason = f"no segment was found on broker {broker}"
            elif files.walked_bytes != files.batch_bytes:
                reason = f"{files.batch_bytes} of {files.walked_bytes} bytes on broker {broker} were accounted for"
            else:
                continue
            complaints.append((f"{final.topic}-{final.partition}", reason))
    yield from _together(complaints)


def _readers(run: RunModel, facts: Facts) -> Iterator[str]:
    if len({reader.bit for reader in facts.readers}) > MAXIMUM_READERS:
        yield f"more than {MAXIMUM_READERS} final readers"
    complete = {(reader.topic, reader.partition) for reader in facts.readers if reader.complete}
    compacted = {topic.name for topic in run.topics if topic.is_compacted}
    judged = [final for final in run.final if final.status == "ok" and final.topic not in compacted]
    complaints = []
    for final in judged:
        name = f"{final.topic}-{final.partition}"
        if facts.replicas and (final.topic, final.partition) not in facts.sentinels:
            complaints.append((name, "its sentinel is not in the final leader's log"))
        if (final.topic, final.partition) not in complete:
            complaints.append((name, "no final reader reached its sentinel"))
    for reader in facts.readers:
        if not reader.complete and (reader.topic, reader.partition) in {(f.topic, f.partition) for f in judged}:
            name = f"{reader.topic}-{reader.partition}"
            reason = f"the final reader {reader.process} stopped at offset {reader.last_offset}, before the sentinel"
            complaints.append((name, reason))
    yield from _together(complaints)


def _counts(facts: Facts) -> Iterator[str]:
    if not facts.acked:
        yield "nothing was acknowledged"
    if not facts.final_read:
        yield "nothing was read in the final phase"
    if facts.replicas and not sum(replica.batches for replica in facts.replicas):
        yield "no batch was found in any segment"
    if facts.malformed_rows:
        yield f"{facts.malformed_rows} history rows make no sense"
