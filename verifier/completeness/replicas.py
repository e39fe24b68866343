"""Checks that the bytes of every declared replica were found, were read completely, and end where they must. Pure.

Owns these doubts, and those about the final readers' way through the log.
"""

from __future__ import annotations

from collections.abc import Iterator

from verifier.closing.closing import Closing
from verifier.completeness.load import unreadable
from verifier.completeness.together import together
from verifier.doubts import EXCUSES, Doubt
from verifier.evidence.run_model import RunModel
from verifier.facts import MAXIMUM_READERS, Facts
from verifier.narrowed import due_files

#: The most (stream, producer id) pairs that doubts name if no history has them.
MOST_UNTOLD = 5


def doubts(run: RunModel, facts: Facts, closing: Closing) -> Iterator[Doubt]:
    """Missing or contradictory bytes of replicas, and final readers that did not read everything."""
    for reason in [*_replicas(run, facts), *_untold(run, facts, closing), *_readers(run, facts, closing)]:
        yield Doubt(reason)
    for topic, partition, epoch in facts.contradicted:
        reason = (
            f"{topic}-{partition}: its log has records of leader epoch {epoch} that were acknowledged long before "
            "leaders.jsonl saw it begin"
        )
        yield Doubt(reason, EXCUSES)


def _replicas(run: RunModel, facts: Facts) -> Iterator[str]:
    """Replicas that were not found, not read completely, or do not end where the final state says."""
    if not facts.replicas:
        yield "no segment was found on any broker (their data may have been pruned)"
        return
    read = {(each.topic, each.partition, each.broker): each for each in facts.replicas}
    files_read = sum(each.files for each in facts.replicas)
    if facts.segments_listed != files_read:
        yield f"{facts.segments_listed} segment files were found, {files_read} were read"
    complaints = []
    for final in run.final:
        for broker in sorted(due_files(run, final)):
            files = read.get((final.topic, final.partition, broker))
            end = final.log_end_offsets[broker]
            if files is None:
                reason = f"no segment was found on broker {broker}"
            elif files.walked_bytes != files.batch_bytes:
                reason = f"{files.batch_bytes} of {files.walked_bytes} bytes on broker {broker} were accounted for"
            elif final.status == "ok" and files.next_offset != end:
                reason = f"its log on broker {broker} ends at {files.next_offset}, and ended at {end} when last asked"
            elif final.status == "ok" and files.leader_epoch > final.leader_epoch:
                held = f"broker {broker} has a batch of leader epoch {files.leader_epoch}"
                reason = f"{held}, and the last one is {final.leader_epoch}"
            else:
                continue
            complaints.append((f"{final.topic}-{final.partition}", reason))
    complaints += _producers(run, facts)
    for topic, partition, broker in sorted(read):
        name = f"{topic}-{partition}"
        if broker not in run.evidence.replicas.get(name, []):
            complaints.append((name, f"broker {broker} has a log of it but is not one of its replicas"))
    yield from together(complaints)


def _producers(run: RunModel, facts: Facts) -> Iterator[tuple[str, str]]:
    """Replicas whose batches contradict the setting of idempotence, by partition."""
    for each in facts.replicas:
        name = f"{each.topic}-{each.partition}"
        if run.settings.idempotence and each.unnumbered:
            yield name, "its log has batches without a producer id or a sequence, and the producers are idempotent"
        elif not run.settings.idempotence and each.numbered:
            yield name, "its log has batches with producer ids and sequences, and the producers are not idempotent"


def _untold(run: RunModel, facts: Facts, closing: Closing) -> Iterator[str]:
    """Values in a log with a producer id that the history of their producer does not have.

    A client learns its producer id before it sends, and notes it in its history.
    """
    if unreadable(run, closing, "producers"):
        return  # already doubted: without a history, a producer's ids are unknown
    for each in facts.untold[:MOST_UNTOLD]:
        told = f"values of stream {each.stream} are under the producer id {each.producer_id}"
        yield f"{each.topic}-{each.partition}: {told}, which its history does not mention"


def _readers(run: RunModel, facts: Facts, closing: Closing) -> Iterator[str]:
    """Final readers that did not reach the sentinel of a partition, and sentinels that are not in the log."""
    if len({reader.bit for reader in facts.readers}) > MAXIMUM_READERS:
        yield f"more than {MAXIMUM_READERS} final readers"
    unread = unreadable(run, closing, "final")  # already doubted
    wanted = [process.name for process in run.evidence.of_role("final") if process.name not in unread]
    compacted = {topic.name for topic in run.topics if topic.is_compacted}
    judged = [final for final in run.final if final.status == "ok" and final.topic not in compacted]
    reached = {(reader.process, reader.topic, reader.partition): reader for reader in facts.readers}
    complaints = []
    for final in judged:
        name = f"{final.topic}-{final.partition}"
        if facts.replicas and (final.topic, final.partition) not in facts.sentinels:
            complaints.append((name, "its sentinel is not in the final leader's log"))
        for process in wanted:
            reader = reached.get((process, final.topic, final.partition))
            if reader is None:
                complaints.append((name, f"the final reader {process} read nothing of it"))
            elif not reader.complete:
                reason = f"the final reader {process} stopped at offset {reader.last_offset}, before the sentinel"
                complaints.append((name, reason))
    yield from together(complaints)
