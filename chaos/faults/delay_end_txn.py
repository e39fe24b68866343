"""``delay-end-txn``: EndTxn requests reach the coordinator late, possibly after what was sent in the meantime."""

from __future__ import annotations

from chaos.faults.accepted import integer
from chaos.faults.damage import FrameAct
from chaos.faults.end_txn import EndTxnFault
from cluster.protocol.apis import ApiKey


class DelayEndTxn(EndTxnFault):
    """The delay is up to a second, unless given. If it exceeds the client's request timeout, the client retries."""

    name = "delay-end-txn"
    summary = "delay EndTxn requests to the coordinator of a transactional id"
    accepts = (integer("delay_ms", 1, 60_000),)

    def act(self) -> FrameAct:
        delay_ms = self.injection.parameters.get("delay_ms") or self.random.randint(200, 1_000)
        return FrameAct("delay", (int(ApiKey.END_TXN),), "request", delay_ms=int(delay_ms))
