"""Checks that the final state of every declared partition is known, settled, and free of contradictions. Pure.

Owns these doubts. The final state is what the cluster said at the end: leader, high watermark, log end offsets and
topic ids. Does not own the replicas' bytes (``verifier.completeness.replicas``).
"""

from __future__ import annotations

from collections.abc import Iterator

from verifier.closing.closing import Closing
from verifier.completeness.together import together
from verifier.doubts import FINAL, NOTHING, Doubt
from verifier.evidence.fault_kinds import UNCLEAN_ORDER
from verifier.evidence.run_model import FinalPartition, RunModel
from verifier.facts import Facts, ReplicaFiles
from verifier.narrowed import due_files, given_files, is_foreign
from verifier.witness.unclean_orders import unclean_orders


def doubts(run: RunModel, facts: Facts, closing: Closing) -> Iterator[Doubt]:
    """Everything that is missing in the final state, or contradicts the declaration."""
    for reason in _compacted(run):
        yield Doubt(reason)
    if not run.topics:
        yield Doubt("run.json names no topic", FINAL)
    for reason in _finals(run):
        yield Doubt(reason)
    if run.final and run.producer_ids_below is None and not is_foreign(run):
        # without it, ``unknown-producer-id`` judges only ids that no cluster allocates, so nothing becomes blind
        yield Doubt("run.json does not say which producer ids were handed out")
    for reason in [*_contradictions(run), *_topic_ids(run, closing)]:
        yield Doubt(reason, FINAL)
    yield from _below_what_was_told(run, facts, closing)


def _compacted(run: RunModel) -> Iterator[str]:
    for topic in run.topics:
        if topic.is_compacted:
            yield (
                f"{topic.name} is compacted (cleanup.policy={topic.config['cleanup.policy']}): superseded records are "
                "removed, and each replica compacts on its own schedule, so nothing in it can be judged"
            )


def _finals(run: RunModel) -> Iterator[str]:
    known = {(final.topic, final.partition) for final in run.final}
    wanted = {(topic.name, partition) for topic in run.topics for partition in range(topic.partitions)}
    complaints = [(f"{topic}-{partition}", "its final state is unknown") for topic, partition in sorted(wanted - known)]
    for final in run.final:
        reasons = [final.status] if final.status != "ok" else list(_unsettled(run, final))
        complaints += [(f"{final.topic}-{final.partition}", reason) for reason in reasons]
    yield from together(complaints)


def _unsettled(run: RunModel, final: FinalPartition) -> Iterator[str]:
    """Everything that contradicts the status ``ok`` of a partition."""
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


def _below_what_was_told(run: RunModel, facts: Facts, closing: Closing) -> Iterator[Doubt]:
    """Partitions whose final high watermark is lower than one that a reader was told during the load.

    A high watermark never goes back, except after an unclean election. If the replicas' bytes end where the final state
    says, the final state is right and the cluster lost records. Then the doubt blinds nothing, so that the loss is
    judged.
    """
    if run.settings.unclean_leader_election:
        return
    ordered = unclean_orders(closing.faults.injected) if UNCLEAN_ORDER in run.faults_requested else {}
    told: dict[tuple[str, int], int] = {}
    for account in closing.accounts:
        for place, high_watermark in account.watermarks.items():
            told[place] = max(high_watermark, told.get(place, -1))
    for final in run.final:
        high_watermark = told.get((final.topic, final.partition), -1)
        if (final.topic, final.partition) in ordered:
            continue
        if final.status == "ok" and high_watermark > final.high_watermark:
            reason = (
                f"{final.topic}-{final.partition}: a reader was told of a high watermark {high_watermark}, "
                f"and the last one is {final.high_watermark}"
            )
            yield Doubt(reason, NOTHING if _is_what_disks_have(run, facts, final) else FINAL)


def _is_what_disks_have(run: RunModel, facts: Facts, final: FinalPartition) -> bool:
    """Whether the bytes of every due replica end at the final high watermark."""
    ends = {each.broker: each.next_offset for each in facts.replicas if _place(each) == _place(final)}
    due = due_files(run, final)
    return bool(due) and all(ends.get(broker) == final.high_watermark for broker in due)


def _place(of: FinalPartition | ReplicaFiles) -> tuple[str, int]:
    return of.topic, of.partition


def _contradictions(run: RunModel) -> Iterator[str]:
    """Partitions in the final state that were not declared, are on other brokers, or are recorded twice."""
    declared = {
        (topic.name, partition): set(run.evidence.replicas.get(f"{topic.name}-{partition}", []))
        for topic in run.topics
        for partition in range(topic.partitions)
    }
    complaints = [(f"{t}-{p}", "its replicas were not declared") for (t, p), brokers in declared.items() if not brokers]
    seen: set[tuple[str, int]] = set()
    for final in run.final:
        place, name = (final.topic, final.partition), f"{final.topic}-{final.partition}"
        if place not in declared:
            complaints.append((name, "it was not declared"))
        elif _is_elsewhere(final, declared[place]):
            found = ", ".join(map(str, sorted(final.log_end_offsets)))
            complaints.append((name, f"it ended on brokers {found}, not on those of its declared replicas"))
        if place in seen:
            complaints.append((name, "its final state is recorded twice"))
        seen.add(place)
    yield from together(complaints)


def _is_elsewhere(final: FinalPartition, declared: set[int]) -> bool:
    """Whether a partition ended on other brokers than declared. If it did not settle, some replicas may be absent."""
    found = set(final.log_end_offsets)
    return bool(found) and (found != declared if final.status == "ok" else not found <= declared)


def _topic_ids(run: RunModel, closing: Closing) -> Iterator[str]:
    """Topics and replicas whose topic id is unknown, or is not the id of the topic that the run created.

    The cluster is asked for the id at the end. If it does not answer, the files of one replica are enough.
    """
    complaints = []
    for topic in run.topics:
        if not topic.topic_id:
            yield f"the topic id of {topic.name} is unknown"
            continue
        ended = run.final_topic_ids.get(topic.name)
        if ended is not None and ended != topic.topic_id:
            yield f"{topic.name} was created again during the run: its topic id {topic.topic_id} became {ended}"
        is_told = ended is not None
        for partition in range(topic.partitions):
            for broker in run.evidence.replicas.get(f"{topic.name}-{partition}", []):
                if is_foreign(run) and broker not in given_files(run):
                    continue  # its log is what the leader served
                is_told = True
                found = closing.topic_ids.get((broker, topic.name, partition))
                if found != topic.topic_id:
                    reason = f"its partition.metadata has topic id {found or 'unknown'}, not {topic.topic_id}"
                    complaints.append((f"{topic.name}-{partition} on broker {broker}", reason))
        if run.final and not is_told:
            yield f"the topic id of {topic.name} at the end is unknown: whether it was created again cannot be told"
    yield from together(complaints)
