"""aborted-commit: a transaction whose client was told that it is committed is aborted in the log of a partition.

Definition. The history says that a commit succeeded. In the log of a partition (the one of its most advanced replica),
an ABORT marker of the same producer id ends a record of the transaction, at the offset that was acknowledged. So
readers of committed records do not receive it. Legal: a commit whose outcome is unknown, or that was refused; a record
whose offset the client was not told; a transaction whose producer id the client does not know. Not judged under
``unclean.leader.election.enable``, because an election may truncate a marker.

    producer-1 (p7): begin 3, send s1/4 at t-0:17, commit 3 ok        t-0: ... 17:[p7 e0 transactional] 18:[ABORT p7 e1]
"""

# From the rows of histories and the markers in the logs, in this process. Pure.

from __future__ import annotations

from collections.abc import Iterator

from verifier.files.transactions import Ended
from verifier.segments.markers import ABORT
from verifier.transactions.client_rows import COMMITTED, ClientEvidence, Overlaps
from verifier.transactions.model import Anomalous, TransactionEvidence, of_marker
from verifier.transactions.state_records import TopicPartition

NAME = "aborted-commit"


def aborted_commit(seen: ClientEvidence, evidence: TransactionEvidence) -> Iterator[Anomalous]:
    """One anomaly per transaction and partition; ``offset`` is its first aborted record there."""
    aborted = {
        place: Overlaps(
            (each.first_offset, each.marker_offset, each)
            for each in log.ended
            if each.kind == ABORT and each.first_offset >= 0
        )
        for place, log in evidence.logs.items()
        if evidence.keeps_markers(place)
    }
    for transaction in seen.transactions:
        if transaction.outcome != COMMITTED or transaction.producer_id < 0:
            continue
        lost: dict[TopicPartition, tuple[int, Ended]] = {}
        for sent in transaction.sent:
            last_offset = sent.first_offset + sent.last_sequence - sent.first_sequence
            spans = aborted.get(sent.place) if sent.first_offset >= 0 else None
            for offset, _, marker in () if spans is None else spans.of(sent.first_offset, last_offset):
                if marker.producer_id == transaction.producer_id:
                    lost[sent.place] = min((offset, marker), lost.get(sent.place, (offset, marker)))
        for place, (offset, marker) in lost.items():
            detail = {
                "process": transaction.process,
                "number": transaction.number,
                "producer_id": transaction.producer_id,
                "marker_offset": marker.marker_offset,
                **of_marker(marker),
            }
            yield Anomalous(NAME, None, *place, offset, detail)
