"""The relay before a link: frames pass both ways, addresses are those of the relays, both connections end together."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from chaos.faults.base import until
from chaos.rewriting.relay import HOST, Relays
from chaos.rewriting.rewriter import ToldAddress
from cluster.client.connection import BrokerConnection
from cluster.protocol import messages
from cluster.protocol.message_classes import MetadataRequest, MetadataResponse
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import SystemClock

METADATA = 3


class FakeBroker:
    """Answers every Metadata request with two brokers, and closes when it gets anything else."""

    def __init__(self):
        self.requests = 0
        self.connections = []

    def accept(self, connection):
        broker = self
        self.connections.append(connection)

        class Handler:
            def on_frame(self, frame):
                header = messages.parse_request_header(frame)
                broker.requests += 1
                if header.api_key != METADATA:
                    connection.close()
                    return
                brokers = [
                    MetadataResponse.MetadataResponseBroker(node_id=number, host="far", port=7, rack=None)
                    for number in (1, 2)
                ]
                answer = MetadataResponse(brokers=brokers, cluster_id="c", controller_id=1, topics=[])
                connection.send_frame(
                    (messages.encode_response(METADATA, header.api_version, header.correlation_id, answer),)
                )

            def on_eof(self):
                connection.close()

            def on_closed(self, reason):
                broker.connections.remove(connection)

        return Handler()


@asynccontextmanager
async def behind_relays():
    """A broker, and the port of the relay before it."""
    transport, broker = AsyncioTransport(), FakeBroker()
    listener = await transport.listen(HOST, 0, broker.accept)
    relays = Relays(transport)
    there = ToldAddress(HOST, listener.port)
    ports = await relays.start({"producers": {1: there, 2: there}})
    try:
        yield broker, ports["producers"], transport
    finally:
        await relays.stop()
        await listener.close()


async def opened(transport, port):
    return await BrokerConnection.open(transport, HOST, port, client_id="c", timeout_ms=5_000)


async def comes(condition):
    """Whether it comes true within some seconds."""

    async def asked():
        return condition()

    return await until(asked, clock=SystemClock(), timeout_ms=5_000, interval_ms=10)


def test_clients_learn_of_relays_alone():
    """Pipelined requests through a relay are answered in order, each with the addresses of the relays."""

    async def scenario():
        async with behind_relays() as (broker, ports, transport):
            client = await opened(transport, ports[1])
            asked = [client.send(MetadataRequest(topics=[]), version) for version in (1, 12, 9)]
            for answer in await asyncio.gather(*asked):
                assert {each.node_id: (each.host, each.port) for each in answer.brokers} == {
                    1: (HOST, ports[1]),
                    2: (HOST, ports[2]),
                }
            assert broker.requests == 3
            client.close()
            assert await comes(lambda: not broker.connections)

    asyncio.run(scenario())


def test_a_connection_ends_with_its_other_half():
    """When the link closes, so does the client's connection; a link that leads nowhere closes it at once."""

    async def scenario():
        async with behind_relays() as (broker, ports, transport):
            client = await opened(transport, ports[1])
            await client.send(MetadataRequest(topics=[]), 9)
            broker.connections[0].abort()
            assert await comes(lambda: client.is_closed)
        relays = Relays(transport)
        nowhere = await relays.start({"producers": {1: ToldAddress(HOST, 1)}})
        client = await opened(transport, nowhere["producers"][1])
        assert await comes(lambda: client.is_closed)
        await relays.stop()

    asyncio.run(scenario())
