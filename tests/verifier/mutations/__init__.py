"""Ways to break a story: what a wrong cluster, a wrong client or a damaged disk would leave. Drawn by hypothesis.

A mutation takes the story and a random generator and changes it in place. Some are legal (a torn tail above the high
watermark, an acknowledgement without an offset) and must be found harmless. Where a story has nothing that a mutation
could change (no file that is not empty, no batch of two values), the mutation is impossible, and is not drawn for it.
Each module of this package has the mutations of one thing; here is the order in which they are drawn.
"""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from tests.support.stories import Story, clean
from tests.verifier.mutations import batches, clients, cluster, files, headers
from tests.verifier.mutations.model import Mutation

__all__ = ["MUTATIONS", "Mutation", "broken_stories"]

MUTATIONS: tuple[Mutation, ...] = (
    batches.drop_batch, batches.lose_and_close_up, batches.repeat_batch, batches.swap_values,
    batches.swap_batches_in_log, batches.swap_batches_in_file, batches.flip_byte, batches.damage_value,
    batches.cut_file, cluster.torn_tail_above, cluster.zombie_tail, batches.diverge, cluster.lower_high_watermark,
    cluster.raise_log_start, cluster.make_unavailable, clients.change_send, clients.acknowledge_again,
    clients.change_reads, clients.stop_reader, clients.shrink_reservation, batches.write_foreign,
    batches.write_unreserved, clients.change_times, clients.change_session, clients.tell_watermarks,
    cluster.raise_epoch, cluster.elect, cluster.break_link, clients.send_again, clients.tell_no_offsets,
    headers.change_epoch, headers.change_sequence, headers.change_producer, headers.change_time, cluster.two_tails,
    cluster.stop_otherwise, files.index_otherwise, files.damage_side_file, headers.raise_producer_epoch,
    clients.resend_under_a_raised_epoch,
)  # fmt: skip


@st.composite
def broken_stories(draw: st.DrawFn) -> tuple[str, Story]:
    """A small story with up to four mutations, and what was done to it."""
    story = clean(
        partitions=draw(st.integers(1, 2)),
        streams=draw(st.integers(2, 3)),
        batches=draw(st.integers(2, 4)),
        size=draw(st.integers(1, 3)),
        brokers=draw(st.integers(2, 3)),
        final_readers=draw(st.integers(1, 2)),
        codec=draw(st.sampled_from(["none", "none", "gzip", "snappy", "lz4", "zstd"])),
    )
    story.split_at = draw(st.integers(0, 3))
    seed = draw(st.integers(0, 1 << 16))
    random = Random(seed)
    chosen: list[str] = []
    for _ in range(draw(st.integers(0, 4))):
        mutation = draw(st.sampled_from([mutation for mutation in MUTATIONS if mutation.is_possible(story)]))
        mutation(story, random)
        chosen.append(mutation.__name__)
    return f"{' + '.join(chosen) or 'clean'} (seed {seed})", story
