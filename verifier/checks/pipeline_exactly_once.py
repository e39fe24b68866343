"""pipeline-exactly-once: what a group read, transformed and wrote in transactions is not exactly once in its output.

Definition. The members of a group write each record that they read to another topic, and commit its offset, in one
transaction. A value counts as often as it is in committed transactions of the output's log, as a reader with
``isolation.level=read_committed`` is handed it. ``missing``: the input is below an offset that the group committed for
certain, at or above the lowest at which a member began, and its value is not in the output. ``twice``: a value is in
the output more than once. ``ahead``: a value is in the output, and its input is not below any offset that the group
committed or may have committed. ``without-input``: a value is in the output, and the partition of the input has no such
record for a reader of committed ones; not judged where records of the input may be gone. Legal: a value without output
above what was committed; one of a transaction that was aborted, or left open by a member that crashed, which another
member transforms again; a value above what is certainly committed, if the outcome of its transaction is unknown.

    input t-0: 0..9      orders: offsets 0 to 9 and commit ok      output: 0..6, 8, 9      the value at 7 is missing
"""

# From the rows of histories and the values in both logs, in this process. Pure.

from __future__ import annotations

from collections.abc import Iterable, Iterator

from verifier.groups.pipeline import Pipeline
from verifier.transactions.model import Anomalous

NAME = "pipeline-exactly-once"
MISSING, TWICE, AHEAD, WITHOUT = "missing", "twice", "ahead", "without-input"


def pipeline_exactly_once(pipelines: Iterable[Pipeline]) -> Iterator[Anomalous]:
    """One anomaly per value; ``offset`` is that of the input, or of what is too much in the output."""
    for each in pipelines:
        shared = {"group": each.group}
        inputs = {value: offset for offset, value in each.inputs.items()}
        for offset, (stream, sequence) in sorted(each.inputs.items()):
            if each.began <= offset < each.certain and not each.outputs.get((stream, sequence)):
                detail = {"stream": stream, "sequence": sequence, "committed": each.certain}
                yield Anomalous(NAME, MISSING, *each.place, offset, shared | detail)
        for (stream, sequence), offsets in sorted(each.outputs.items()):
            value = {"stream": stream, "sequence": sequence}
            first, *more = sorted(offsets)
            if more:
                yield Anomalous(NAME, TWICE, *each.output, more[0], shared | value | {"first_offset": first})
            input_offset = inputs.get((stream, sequence))
            if input_offset is not None and input_offset >= each.possible:
                detail = {"input_offset": input_offset, "committed": each.possible}
                yield Anomalous(NAME, AHEAD, *each.output, first, shared | value | detail)
            if input_offset is None and each.is_whole:
                yield Anomalous(NAME, WITHOUT, *each.output, first, shared | value)
