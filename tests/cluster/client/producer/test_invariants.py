"""Each invariant of the accumulator, the identity and the sender, broken by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cluster.client.producer import invariants
from cluster.client.producer.actions import CompleteBatch, SendProduce
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.producer.batches import a_batch
from tests.cluster.client.producer.sender_bench import Bench, some
from tests.support.invariants import is_named, raised, stated

T0 = ("t", 0)


def busy(*, max_in_flight: int = 5) -> Bench:
    """Partition 0: one batch acknowledged, one to be tried again, three at the broker and one open; partition 1: one at
    another broker."""
    bench = Bench({0: (1, 0), 1: (2, 0)}, is_idempotent=True, max_in_flight=max_in_flight)
    bench.start(1, 2)
    bench.put(*(a_batch(created_ms=number) for number in range(5)), a_batch(1))
    requests = [each for each in some(SendProduce, bench.tick()) if each.node == 1]
    bench.answer(requests[0], ErrorCode.NONE)
    if max_in_flight > 1:
        bench.answer(requests[1], ErrorCode.NOT_ENOUGH_REPLICAS)
    for action in some(CompleteBatch, bench.tick()):
        action.batch.complete(40)
    bench.put(a_batch(created_ms=9))
    return bench


def queue(bench: Bench):
    return bench.accumulator._queues[T0]


def partition(bench: Bench):
    assert bench.identity is not None
    return bench.identity._partitions[T0]


def at_broker(bench: Bench):
    """The first batch that is in a request of partition 0."""
    return next(batch for batch in bench.core._requests.batches() if batch.partition == 0)


def queue_it_twice(bench: Bench) -> None:
    queue(bench).append(queue(bench)[-1])


def leave_an_empty_queue(bench: Bench) -> None:
    queue(bench).__class__.clear(bench.accumulator._queues.setdefault(("t", 5), queue(bench).__class__()))


def queue_what_is_over(bench: Bench) -> None:
    # Nothing else may notice: it has no number and no memory.
    batch = queue(bench)[-1]
    del bench.accumulator._incomplete[batch]
    batch.memory_bytes = 0


def complete_it_early(bench: Bench) -> None:
    queue(bench)[-1].complete(7)


def swap_the_queue(bench: Bench) -> None:
    queue(bench).reverse()
    bench.accumulator._open["t"].clear()


def open_another(bench: Bench) -> None:
    bench.accumulator._open["t"][0] = queue(bench)[0]


def pause_what_is_at_the_broker(bench: Bench) -> None:
    bench.accumulator._retry_at_ms[at_broker(bench)] = 5


def queue_what_is_at_the_broker(bench: Bench) -> None:
    bench.accumulator._insert(at_broker(bench))


def forget_one(bench: Bench) -> None:
    batch = queue(bench).pop()
    bench.accumulator._queued.remove(batch)
    bench.accumulator._open["t"].clear()


def doubt_what_is_over(bench: Bench) -> None:
    bench.core._doubtful.add(a_batch())


def miscount(bench: Bench) -> None:
    bench.core._connections._nodes[1].in_flight -= 1


def lose_a_connection_silently(bench: Bench) -> None:
    bench.core._connections._nodes[1].is_connected = False


def leave_it_muted(bench: Bench) -> None:
    bench.accumulator.mute(("t", 3))


def be_ready_without_an_id(bench: Bench) -> None:
    assert bench.identity is not None
    bench.identity.producer_id = -1


def give_a_number_twice(bench: Bench) -> None:
    partition(bench).next_sequence -= 1


def number_under_another_identity(bench: Bench) -> None:
    at_broker(bench).producer_epoch += 1


def swap_in_flight(bench: Bench) -> None:
    found = partition(bench)
    # Those at the broker alone: in the queue one of them waits.
    found.in_flight = dict(reversed(found.in_flight.items()))


def go_too_far(bench: Bench) -> None:
    partition(bench).numbered += 5


def hold_what_waits_nowhere(bench: Bench) -> None:
    found = partition(bench)
    batch = a_batch()
    batch.set_producer_state(found.producer_id, found.producer_epoch, found.next_sequence)
    found.in_flight[batch] = found.numbered
    found.next_sequence += 1


def queue_what_is_not_held(bench: Bench) -> None:
    partition(bench).forget(queue(bench)[0])


def forget_where_it_is(bench: Bench) -> None:
    partition(bench).at_broker.pop()


def hide_the_trouble(bench: Bench) -> None:
    partition(bench).is_unresolved = True


BREAKS: list[tuple[str, Callable[[Bench], object]]] = [
    ("queue-once", queue_it_twice),
    ("queue-once", leave_an_empty_queue),
    ("queue-incomplete", queue_what_is_over),
    ("queue-incomplete", complete_it_early),
    ("queue-order", swap_the_queue),
    ("open-last", open_another),
    ("retry-queued", pause_what_is_at_the_broker),
    ("in-flight-once", queue_what_is_at_the_broker),
    ("nothing-forgotten", forget_one),
    ("doubtful", doubt_what_is_over),
    ("in-flight-count", miscount),
    ("in-flight-count", lose_a_connection_silently),
    ("muted", leave_it_muted),
    ("identity-ready", be_ready_without_an_id),
    ("sequence-order", give_a_number_twice),
    ("sequence-order", number_under_another_identity),
    ("sequence-order", swap_in_flight),
    ("sequence-window", go_too_far),
    ("sequence-held", hold_what_waits_nowhere),
    ("sequence-held", queue_what_is_not_held),
    ("at-broker", forget_where_it_is),
    ("troubled", hide_the_trouble),
]


@pytest.mark.parametrize(("name", "break_it"), BREAKS)
def test_what_is_broken_is_named(name: str, break_it: Callable[[Bench], object]) -> None:
    """One line with the invariant's name and the values."""
    bench = busy()
    is_named(name, lambda: invariants.validate_sender(bench.core), lambda: break_it(bench))


def test_memory_that_is_not_given_back_is_named() -> None:
    """What is taken of buffer.memory and what the batches hold are the same."""
    bench = busy()
    held_bytes = sum(batch.memory_bytes for batch in bench.accumulator._incomplete)
    taken = [held_bytes]
    is_named("memory", lambda: invariants.validate_sender(bench.core, taken[0]), lambda: taken.append(taken.pop() + 1))


def test_with_one_request_in_flight_its_partition_is_muted() -> None:
    """With max.in.flight 1 a partition is muted while its request is in flight."""
    bench = busy(max_in_flight=1)
    invariants.validate_sender(bench.core)
    is_named("muted", lambda: invariants.validate_sender(bench.core), lambda: bench.accumulator.unmute(T0))


def test_each_is_stated_checked_and_broken() -> None:
    """In words, in code, and by hand."""
    assert stated(invariants) == raised(invariants) == {*(name for name, _ in BREAKS), "memory"}
