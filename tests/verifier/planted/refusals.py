"""Planted examples of what librdkafka sends again since a later batch was refused, each beside its legal neighbor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.support.stories import SECOND, Batch, Story, row
from tests.verifier.planted.excuses import Expected, excused
from tests.verifier.planted.model import Planted
from verifier.evidence.history import HistoryRow

LOST, NO_LEADER = "Local: Broker transport failure", "Broker: Not leader for partition"
TOO_FEW = "Broker: Not enough in-sync replicas"
OUT_OF_ORDER = "Broker: Broker received an out of order sequence number"
#: When the first attempt failed, when a later batch was refused, and when all was acknowledged at last.
FAILED, REFUSED, TOLD = 7 * SECOND // 2, 4 * SECOND, 5 * SECOND
LAST = 17


def retry(first: int, last: int, error: str, at_ns: int, *, stream: int = 1, records: int | None = None) -> HistoryRow:
    """An attempt that failed."""
    count = last - first + 1 if records is None else records
    again = row("retry", "info", 0, stream, first, last, -1)._replace(error=f"retry: {error}", count=count)
    return again._replace(invoke_ns=3 * SECOND, complete_ns=at_ns)


LOST_ANSWER = retry(12, 14, LOST, FAILED)
REFUSAL = retry(16, 17, OUT_OF_ORDER, REFUSED)


def sent_again(
    *attempts: HistoryRow,
    stored_to: int = 14,
    ids: tuple[int, int] = (1001, 1001),
    epochs: tuple[int, int] = (0, 1),
    **sent: Any,
) -> Callable[[Story], None]:
    """Values 12 to ``stored_to`` are stored, and then 12 to 17 under another identity, as was acknowledged.

    ``attempts`` are the rows of those that failed, and ``sent`` is what the acknowledgement says otherwise.
    """

    def plant(story: Story) -> None:
        place, rows = story.partitions[0], story.rows["producer-1"]
        begin = place.high_watermark
        batches = []
        for number, (first_offset, last) in enumerate(((begin, stored_to), (begin + stored_to - 11, LAST))):
            values = tuple((1, sequence) for sequence in range(12, last + 1))
            # this producer goes on behind what it wrote before; a later epoch, or another producer, begins at 0
            goes_on = (ids[number], epochs[number]) == (1001, 0)
            batches.append(
                Batch(
                    first_offset, values, producer_id=ids[number], producer_epoch=epochs[number],
                    base_sequence=12 if goes_on else 0,
                )
            )  # fmt: skip
        story.everywhere(0, lambda log: log.extend(batches))
        place.high_watermark = batches[1].next_offset
        place.log_end_offsets = dict.fromkeys(place.log_end_offsets, place.high_watermark)
        told = row("send", "ok", 0, 1, 12, LAST, batches[1].base_offset)._replace(invoke_ns=3 * SECOND)
        rows += [
            row("reserve", "invoke", 0, 1, 12, LAST, -1), *attempts, told._replace(**{"complete_ns": TOLD, **sent}),
        ]  # fmt: skip
        for batch in batches:
            for step, value in enumerate(batch.values):
                read = row("poll", "ok", 0, *value, value[1], batch.base_offset + step, phase="final")
                story.rows["final-1"].append(read)

    return plant


def copied(cause: str = "client-resend-after-error", count: int = 3) -> Expected:
    """This many values stand twice, from the first that was sent again on."""
    each = {"count": count, "stream": 1, "sequence": 12, "offset": 25}
    return {("duplicate", cause): each, ("log-duplicate", cause): each}


LEGAL = "sent again since a later batch was refused"
ACCUSED = excused(copied(), None)
#: There was an attempt of these values, too. With idempotence it allows no copies (``test_pairs``).
RETRIED = excused(copied(), "retry")
OTHERWISE = excused(copied("client-resend"), "retry")

PLANTED: Mapping[str, Planted] = {
    LEGAL: Planted(sent_again(LOST_ANSWER, REFUSAL), excused(copied(), "refusal")),
    "sent again, with what was refused for want of a leader": Planted(
        sent_again(LOST_ANSWER, retry(12, 14, NO_LEADER, REFUSED), retry(15, 15, NO_LEADER, REFUSED), REFUSAL),
        excused(copied(), "refusal"),
    ),
    "sent again by who had lost its office": Planted(
        sent_again(retry(12, 14, NO_LEADER, FAILED), REFUSAL), excused(copied(), "refusal")
    ),
    "sent again and no attempt had failed before": Planted(sent_again(REFUSAL), ACCUSED, neighbor=LEGAL),
    "sent again and the attempt of another batch failed": Planted(
        sent_again(retry(15, 15, LOST, FAILED), REFUSAL), ACCUSED, neighbor=LEGAL
    ),
    "sent again and the attempt of another stream failed": Planted(
        sent_again(retry(12, 14, LOST, FAILED, stream=2), REFUSAL), ACCUSED, neighbor=LEGAL
    ),
    "sent again, more than the attempts had records": Planted(
        sent_again(retry(12, 14, LOST, FAILED, records=2), REFUSAL), ACCUSED, neighbor=LEGAL
    ),
    "sent again since it was refused itself": Planted(
        sent_again(retry(12, 14, OUT_OF_ORDER, REFUSED)), ACCUSED, neighbor=LEGAL
    ),
    "sent again, refused itself after an attempt": Planted(
        sent_again(LOST_ANSWER, retry(12, 14, OUT_OF_ORDER, REFUSED)), RETRIED
    ),
    "sent again after an attempt that stored nothing": Planted(
        sent_again(retry(12, 14, TOO_FEW, FAILED), REFUSAL), RETRIED
    ),
    "sent again and the attempt failed afterwards": Planted(
        sent_again(REFUSAL, retry(12, 14, LOST, REFUSED + 1)), RETRIED
    ),
    "sent again and an earlier batch was refused": Planted(
        sent_again(LOST_ANSWER, retry(9, 11, OUT_OF_ORDER, REFUSED)), RETRIED
    ),
    "sent again and the next batch was refused": Planted(
        sent_again(LOST_ANSWER, retry(15, 17, OUT_OF_ORDER, REFUSED)), RETRIED
    ),
    "sent again and what comes before the refused batch was there": Planted(
        sent_again(retry(12, 15, LOST, FAILED), REFUSAL, stored_to=15), excused(copied(count=4), "retry")
    ),
    "sent again long before the refusal": Planted(
        sent_again(LOST_ANSWER, retry(16, 17, OUT_OF_ORDER, TOLD + SECOND + 1)), RETRIED
    ),
    "sent again and handed over long after the refusal": Planted(
        sent_again(LOST_ANSWER, REFUSAL, invoke_ns=REFUSED + SECOND + 1, complete_ns=REFUSED + SECOND + 2), RETRIED
    ),
    "sent again and nothing was refused": Planted(sent_again(LOST_ANSWER), OTHERWISE),
    "sent again and the refusal was another stream's": Planted(
        sent_again(LOST_ANSWER, retry(16, 17, OUT_OF_ORDER, REFUSED, stream=2)), OTHERWISE
    ),
    "sent again under another producer id": Planted(
        sent_again(LOST_ANSWER, REFUSAL, ids=(1001, 5000), epochs=(0, 0)), OTHERWISE
    ),
    "sent again under an epoch that was over": Planted(
        sent_again(LOST_ANSWER, REFUSAL, epochs=(1, 0)),
        {**OTHERWISE, ("producer-epoch-regression", None): {"count": 1, "offset": 28}},
    ),
}
