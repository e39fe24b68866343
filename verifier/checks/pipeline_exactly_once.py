"""pipeline-exactly-once: what a group read, transformed and wrote in transactions is not exactly once in its output.

Definition. The members of a group write each record that they read to another topic, and commit its offset, in one
transaction. The output counts as a reader with ``isolation.level=read_committed`` sees it: only records of committed
transactions. ``missing``: the input is below an offset that the group certainly committed, at or above the lowest
offset at which a member began, and its value is not in the output. ``twice``: a value is in the output more than once,
and more often than in the input. ``ahead``: a value is in the output, and its input is not below any offset that the
group committed or may have committed. ``without-input``: a value is in the output, and the partition of the input has
no such record for a ``read_committed`` reader; not judged if records of the input may be gone. Legal: a value without
output at or above the committed offset; a value of a transaction that was aborted, or that a crashed member left open,
since another member transforms it again; a value above what is certainly committed, if the outcome of its transaction
is unknown; a value that both the input and the output have twice, as a producer without idempotence may store it.

    input t-0: 0..9      orders: offsets 0 to 9 and commit ok      output: 0..6, 8, 9      the value at 7 is missing
"""

# From the rows of histories and the values in both logs, in this process. Pure.

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from verifier.groups.pipeline import KeyedValue, Pipeline
from verifier.transactions.model import Anomalous

NAME = "pipeline-exactly-once"
MISSING, TWICE, AHEAD, WITHOUT = "missing", "twice", "ahead", "without-input"


def pipeline_exactly_once(pipelines: Iterable[Pipeline]) -> Iterator[Anomalous]:
    """One anomaly per value; ``offset`` is that of the missing input, or that of the wrong output."""
    for each in pipelines:
        shared = {"group": each.group}
        copies: dict[KeyedValue, list[int]] = defaultdict(list)
        for offset, one in sorted(each.inputs.items()):
            copies[one].append(offset)
        for offset, (stream, sequence) in sorted(each.inputs.items()):
            if each.began <= offset < each.certain and not each.outputs.get((stream, sequence)):
                detail = {"stream": stream, "sequence": sequence, "committed": each.certain}
                yield Anomalous(NAME, MISSING, *each.place, offset, shared | detail)
        for (stream, sequence), offsets in sorted(each.outputs.items()):
            value = {"stream": stream, "sequence": sequence}
            written, read = sorted(offsets), copies.get((stream, sequence), [])
            first, allowed = written[0], max(1, len(read))
            if len(written) > allowed:
                yield Anomalous(NAME, TWICE, *each.output, written[allowed], shared | value | {"first_offset": first})
            # each copy in the input accounts for one in the output
            for input_offset, offset in zip(read, written, strict=False):
                if input_offset >= each.possible:
                    detail = {"input_offset": input_offset, "committed": each.possible}
                    yield Anomalous(NAME, AHEAD, *each.output, offset, shared | value | detail)
                    break
            if not read and each.is_whole:
                yield Anomalous(NAME, WITHOUT, *each.output, first, shared | value)
