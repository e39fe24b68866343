"""What clients do in a transcript: write, delete and read, each at one broker, nothing retried by itself.

Owns these commands and what they say. Does not own the cluster, or the state that is shown after each
(``transcript.py``).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cluster.protocol.errors import ErrorCode
from cluster.protocol.records import NewRecord, pack_record, seal_batch
from tests.simulation.client import TIMESTAMP, Client, batch

if TYPE_CHECKING:
    from tests.simulation.transcript import Transcript

TOPIC = "t"
#: What ``garble`` claims to send.
MOST_RECORDS = 2**31 - 1


async def write(transcript: Transcript, value: str, to: str, *words: str) -> str:
    """write m1 1 [later] [key=value ...]: send a value to a broker; ``later``: do not wait for the answer.

    Under acks=all, or ``acks=1``; of an idempotent producer with ``producer=7 epoch=0 sequence=3`` (the epoch is 0
    unless told); with ``key=k``.
    """
    told = dict(word.split("=") for word in words if "=" in word)
    key = told.pop("key", None)
    acks = int(told.pop("acks", "-1"))
    producer_id = int(told.pop("producer", "-1"))
    epoch = int(told.pop("epoch", "0" if producer_id >= 0 else "-1"))
    data = batch(
        value.encode(),
        key=None if key is None else key.encode(),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=int(told.pop("sequence", "-1")),
    )
    assert not told, f"nobody knows {told}"
    return await _send(transcript, value, to, data, acks, later="later" in words)


async def garble(transcript: Transcript, value: str, to: str) -> str:
    """garble m1 1: send a batch whose header claims 2,147,483,647 records; its checksum holds, and it has one."""
    payload = pack_record(NewRecord(TIMESTAMP, value=value.encode()), 0, TIMESTAMP)
    data = seal_batch(
        payload, attributes=0, record_count=MOST_RECORDS, base_timestamp=TIMESTAMP, max_timestamp=TIMESTAMP
    )
    return await _send(transcript, value, to, data, -1, later=False)


async def _send(transcript: Transcript, value: str, to: str, data: bytes, acks: int, *, later: bool) -> str:
    writing = asyncio.get_running_loop().create_task(_produce(transcript, value, int(to), data, acks))
    transcript.asked[value] = writing
    return "" if later else await writing


async def _produce(transcript: Transcript, value: str, broker_id: int, data: bytes, acks: int) -> str:
    client = transcript.clients.get(broker_id)
    if client is None or client.connection.is_closed:
        client = transcript.clients[broker_id] = Client(await transcript.connect(broker_id, timeout_ms=60_000))
    try:
        answer = await client.produce(TOPIC, data, acks=acks, timeout_ms=30_000)
    except OSError:
        return f"{value}: no answer"
    if answer.error is not ErrorCode.NONE:
        return f"{value}: {answer.error.name}"
    transcript.acknowledged.append(value)
    return f"{value}: acknowledged at {answer.base_offset}"


async def delete(transcript: Transcript, offset: str, to: str, later: str = "") -> str:
    """delete 3 1 [later]: DeleteRecords below an offset, asked of a broker. Its answer goes by ``delete``."""
    deleting = asyncio.get_running_loop().create_task(_delete(transcript, int(offset), int(to)))
    transcript.asked["delete"] = deleting
    return "" if later else await deleting


async def _delete(transcript: Transcript, offset: int, broker_id: int) -> str:
    client = Client(await transcript.connect(broker_id, timeout_ms=60_000))
    try:
        error, low_watermark = await client.delete_records(TOPIC, offset, timeout_ms=30_000)
    except OSError:
        return "not deleted: no answer"
    if error is not ErrorCode.NONE:
        return f"not deleted: {error.name}"
    return f"all live replicas begin at {low_watermark} or above"


async def answer(transcript: Transcript, name: str) -> str:
    """answer m1: wait for what became of an earlier write, or of ``delete`` or ``elect``."""
    return await transcript.asked[name]


async def read(transcript: Transcript, offset: str, to: str) -> str:
    """read 3 1: what a broker gives a consumer from an offset, each value with its own."""
    client = Client(await transcript.connect(int(to)))
    try:
        found = await client.fetch(TOPIC, int(offset))
    except OSError:
        return f"read from {offset}: no answer"
    if found.error is not ErrorCode.NONE:
        return f"read from {offset}: {found.error.name}"
    given = " ".join(f"{at}:{value.decode()}" for at, value in found.records)
    return f"read from {offset}: {given or 'nothing'}"


COMMANDS = {
    "write": write,
    "garble": garble,
    "delete": delete,
    "answer": answer,
    "read": read,
}
