"""The smaller parts by themselves: event queue, channels, cache, peer addresses, requests on the wire."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from uuid import UUID

import pytest

from cluster.broker.control.links.channels import MAX_REFUSALS, NOT_OBEYED, ChannelSet
from cluster.broker.control.links.messages import PARTITIONS_AT_ONCE, ControlRequest, RequestBuilder
from cluster.broker.control.links.peers import InProcessPeer
from cluster.broker.control.membership.event_queue import SHIFT_NS, EventQueue, QueueClosed, Shift
from cluster.broker.endpoints import Endpoint, PeerAddresses
from cluster.broker.metadata_cache import FULL, MetadataCache
from cluster.controller.context import Partition, PartitionState, Topic, TopicPartition
from cluster.controller.outbox import Outbox
from cluster.metadata.store import SessionExpiredError
from cluster.metadata.znodes import BrokerRegistration
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import decode_request, encode_request, parse_request_header, request_class
from tests.cluster.controller.situations import T0, context_with, led
from tests.support.virtual_time import LoopClock, run


def test_events_do_not_interleave_and_merge_by_name():
    """The next begins when the last has ended; events of one name that wait are one."""

    async def body():
        queue, trace = EventQueue("test"), []

        def event(name):
            async def work():
                trace.append(f"{name} begins")
                await asyncio.sleep(0.1)
                trace.append(f"{name} ends")

            return work

        queue.start()
        queue.post(event("a"))
        queue.post_once("b", event("b"))
        queue.post_once("b", event("b"))
        await queue.run(event("c"))
        queue.post_once("b", event("b"))
        await queue.run(event("d"))
        names = [line.split()[0] for line in trace]
        assert names == ["a", "a", "b", "b", "c", "c", "b", "b", "d", "d"]
        await queue.close()

    run(body())


def test_patient_events_stand_behind_all_others():
    """Also behind those that come later; a shift is over when one of them waits, or when it has lasted long."""

    async def body():
        queue, trace = EventQueue("test"), []

        def event(name):
            async def work():
                trace.append(name)

            return work

        async def long_work():
            shift = Shift(queue, LoopClock())
            trace.append(await shift.is_over())
            await asyncio.sleep(SHIFT_NS / 1e9)
            trace.append(await shift.is_over())
            queue.post(event("urgent"))
            trace.append(await Shift(queue, LoopClock()).is_over())

        queue.post(long_work, patient=True)
        queue.post(event("patient"), patient=True)
        queue.start()
        await queue.run(event("last"), patient=True)
        assert trace == [False, True, True, "urgent", "patient", "last"]
        assert not queue.has_urgent
        await queue.close()

    run(body())


def test_a_failing_event_is_its_caller_s_and_a_closed_queue_says_so(caplog):
    """One that nobody waits for is logged; the queue goes on; after close nobody hangs."""

    async def body():
        queue = EventQueue("test")
        queue.start()

        async def fail():
            raise ValueError("broken")

        async def hang():
            await asyncio.Event().wait()

        queue.post(fail)
        with pytest.raises(ValueError, match="broken"):
            await queue.run(fail)
        hanging = asyncio.ensure_future(queue.run(hang))
        waiting = asyncio.ensure_future(queue.run(fail))
        await asyncio.sleep(0.1)
        await queue.close()
        for task in (hanging, waiting):
            with pytest.raises(QueueClosed):
                await task
        with pytest.raises(QueueClosed):
            await queue.run(fail)

    run(body())
    assert "an event of test failed" in caplog.text


def test_an_event_that_a_lost_session_ends_is_no_error(caplog):
    """The next session reads everything again; who waits for the event is told all the same."""
    caplog.set_level(logging.INFO)

    async def body():
        queue = EventQueue("test")
        queue.start()

        async def expire():
            raise SessionExpiredError("the session ended")

        queue.post(expire)
        with pytest.raises(SessionExpiredError):
            await queue.run(expire)
        await queue.close()

    run(body())
    assert [(each.levelname, each.exc_info) for each in caplog.records if "an event of test" in each.message] == [
        ("INFO", None)
    ]


class ScriptedPeer:
    """Answers as scripted: an error code, or an exception to raise; afterwards always NONE."""

    def __init__(self, *script) -> None:
        self.script = list(script)
        self.asked: list[object] = []
        self.closed = False

    async def ask(self, message, version):
        self.asked.append(message)
        step = self.script.pop(0) if self.script else ErrorCode.NONE
        if isinstance(step, Exception):
            raise step
        return SimpleNamespace(error_code=step)

    def close(self):
        self.closed = True


def channel_to(peer, stale=lambda: None):
    channels = ChannelSet(lambda broker_id: peer, stale)
    channels.open(7, 70)
    return channels


def test_a_request_is_repeated_until_the_broker_has_done_it():
    """Lost connections, timeouts and a broker that has not registered yet; the next request waits its turn."""

    async def body():
        peer = ScriptedPeer(ConnectionError("x"), TimeoutError(), *[ErrorCode.STALE_BROKER_EPOCH] * 20)
        channels = channel_to(peer)
        first, second = channels.put(7, [ControlRequest("one", 0), ControlRequest("two", 0)])
        assert (await first).is_all
        assert (await second).is_all
        assert peer.asked == ["one"] * 23 + ["two"]
        channels.close_all()
        assert peer.closed

    run(body())


def test_a_request_that_a_broker_cannot_process_does_not_block_the_others(caplog):
    """Given up with an error in the log after some attempts, whether it answers an error or chokes."""

    async def body():
        for step in (ErrorCode.UNKNOWN_SERVER_ERROR, ValueError("choked")):
            peer = ScriptedPeer(*[step] * MAX_REFUSALS)
            channels = channel_to(peer)
            first, second = channels.put(7, [ControlRequest("one", 0), ControlRequest("two", 0)])
            assert not (await first).is_all
            assert (await second).is_all
            channels.close_all()

    run(body())
    assert "refuses" in caplog.text


def test_a_broker_that_knows_a_newer_controller_makes_us_look():
    """11: we may have been succeeded without having heard of it."""

    async def body():
        looked = []
        channels = channel_to(ScriptedPeer(ErrorCode.STALE_CONTROLLER_EPOCH), lambda: looked.append(1))
        [answer] = channels.put(7, [ControlRequest("one", 0)])
        assert not (await answer).is_all
        assert looked == [1]
        channels.close_all()

    run(body())


def test_nobody_waits_for_a_broker_that_is_gone():
    """Its queue is dropped; what waited for it is told that it is not done."""

    async def body():
        channels = channel_to(ScriptedPeer(*[ConnectionError("x")] * 1000))
        answers = channels.put(7, [ControlRequest("one", 0), ControlRequest("two", 0)])
        await asyncio.sleep(1)
        channels.close([7])
        assert [await answer for answer in answers] == [NOT_OBEYED, NOT_OBEYED]
        assert channels.put(7, [ControlRequest("three", 0)]) == []

    run(body())


def test_a_local_handler_is_never_cancelled_half_way():
    """The controller resigns while its own broker is taking over roles: that goes on to its end, in order."""

    async def body():
        trace = []

        async def deliver(request):
            trace.append(f"{request} begins")
            await asyncio.sleep(1)
            trace.append(f"{request} ends")
            return SimpleNamespace(error_code=ErrorCode.NONE)

        peer = InProcessPeer(deliver)
        channels = channel_to(peer)
        channels.put(7, [ControlRequest("one", 0)])
        await asyncio.sleep(0.5)
        channels.close_all()
        again = channel_to(peer)
        [answer] = again.put(7, [ControlRequest("two", 0)])
        await answer
        assert trace == ["one begins", "one ends", "two begins", "two ends"]
        again.close_all()

    run(body())


def test_a_broker_s_own_link_goes_before_what_a_peer_registered():
    """gapless.peer.addresses is the proxied way; without it the inter-broker listener's endpoint is used."""
    peers = PeerAddresses({2: ("127.0.0.1", 42002)}, "PEERS")
    registered = [Endpoint("PRODUCERS", "h", 1), Endpoint("PEERS", "h", 2)]
    assert peers.address(2, registered) == ("127.0.0.1", 42002)
    assert peers.address(3, registered) == ("h", 2)
    assert peers.address(3) is None


def builder():
    context = context_with((1, 2, 3), led(1, (1, 2)), brokers={1: 101, 2: 102})
    context.topics["u"] = Topic("u", UUID(int=8), {0: Partition((2,), None), 1: Partition((2, 1), led(2, (2,)))})
    registrations = {
        n: BrokerRegistration(n, (Endpoint("PEERS", "127.0.0.1", 9000 + n),), {"PEERS": "PLAINTEXT"}) for n in (1, 2)
    }
    return context, RequestBuilder(1, context, registrations, "PEERS")


def over_the_wire(request: ControlRequest):
    frame = encode_request(request.message, request.version, 5, "c")
    header = parse_request_header(frame)
    assert header.api_version == request.version
    return decode_request(request_class(header.api_key), header.api_version, memoryview(frame)[header.body_offset :])


def test_what_is_built_reads_the_same_after_the_wire():
    """In process the built message is handed over as it is: it must look like a decoded one."""
    context, build = builder()
    outbox = Outbox(context)
    outbox.add_all_leader_and_isr(2)
    outbox.add_all_metadata(2)
    outbox.add_stop_replica(2, T0, delete=False)
    outbox.add_stop_replica(2, TopicPartition("u", 1), delete=True)
    requests = build.build(2, outbox.parcels[2], {})
    keys = [request.message.API_KEY for request in requests]
    assert keys == [ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA, ApiKey.STOP_REPLICA]
    for request in requests:
        read = over_the_wire(request)
        assert read.to_dict() == request.message.to_dict()
        assert (read.controller_id, read.controller_epoch, read.broker_epoch) == (1, 5, 102)
    roles, metadata, stops = (over_the_wire(request) for request in requests)
    assert [(t.topic_name, [s.partition_index for s in t.partition_states]) for t in roles.topic_states] == [
        ("t", [0]),
        ("u", [1]),
    ]
    assert [(leader.broker_id, leader.port) for leader in roles.live_leaders] == [(1, 9001), (2, 9002)]
    assert metadata.topic_states[0].partition_states[0].offline_replicas == [3]
    assert [(s.leader_epoch, s.delete_partition) for t in stops.topic_states for s in t.partition_states] == [
        (3, False),
        (3, True),
    ]
    context.topics["u"].deleting = True
    [*_, stop] = build.build(2, outbox.parcels[2], {})
    assert [s.leader_epoch for t in over_the_wire(stop).topic_states for s in t.partition_states] == [3, -2]


def test_many_roles_are_told_in_several_requests():
    """A broker that is told of thousands of partitions at once would not answer before it is told again."""
    context, build = builder()
    count = 2 * PARTITIONS_AT_ONCE + 1
    state = PartitionState(2, 0, (2,))
    context.topics["u"] = Topic("u", UUID(int=8), {number: Partition((2,), state) for number in range(count)})
    outbox = Outbox(context)
    outbox.add_all_leader_and_isr(2)
    outbox.add_all_metadata(2)
    *roles, metadata = build.build(2, outbox.parcels[2], {})
    told = [
        (topic.topic_name, each.partition_index)
        for request in roles
        for topic in request.message.topic_states
        for each in topic.partition_states
    ]
    assert told == [("t", 0), *(("u", number) for number in range(count))]
    # None of them names all there is.
    assert [request.message.type for request in roles] == [1, 1, 1]
    assert metadata.message.type == FULL


def metadata_for(context, build, *topic_partitions, full=False):
    outbox = Outbox(context)
    if full:
        outbox.add_all_metadata(2)
    else:
        outbox.add_update_metadata(topic_partitions, brokers=[2])
    [request] = build.build(2, outbox.parcels[2], {})
    return over_the_wire(request)


def test_the_cache_merges_updates_and_a_full_one_replaces():
    """Brokers are always replaced; partitions are merged, unless the request names all there is."""
    context, build = builder()
    cache, heard = MetadataCache(), []
    cache.on_update(lambda: heard.append(1))
    assert cache.update(metadata_for(context, build, T0)) == []
    assert cache.topic_names() == ["t"]
    cache.update(metadata_for(context, build, TopicPartition("u", 1)))
    assert (cache.topic_names(), len(heard)) == (["t", "u"], 2)
    assert cache.partition("u", 1).leader == 2
    assert cache.topic_name(UUID(int=8)) == "u"
    assert cache.endpoint(2, "PEERS") == Endpoint("PEERS", "127.0.0.1", 9002)
    assert (cache.endpoint(3, "PEERS"), cache.endpoint(2, "OTHER")) == (None, None)
    cache.set_topic_config("t", {"a": "b"})
    del context.topics["t"]
    context.brokers.pop(1)
    assert cache.update(metadata_for(context, build, full=True)) == [("t", 0)]
    assert (cache.topic_names(), cache.has_topic_config("t")) == (["u"], False)
    assert [broker.broker_id for broker in cache.alive_brokers()] == [2]


def test_the_cache_forgets_a_topic_that_is_being_deleted():
    """leader -2: drop it, and what is configured for it; a topic of the same name has another id."""
    context, build = builder()
    cache = MetadataCache()
    cache.update(metadata_for(context, build, T0))
    cache.set_topic_config("t", {"a": "b"})
    context.topics["t"].deleting = True
    assert cache.update(metadata_for(context, build, T0)) == [("t", 0)]
    assert (cache.topic("t"), cache.topic_config("t")) == (None, {})
    context.topics["t"] = Topic("t", UUID(int=99), {0: Partition((2,), led(2, (2,)))})
    cache.update(metadata_for(context, build, T0))
    assert cache.topic("t").topic_id == UUID(int=99)
