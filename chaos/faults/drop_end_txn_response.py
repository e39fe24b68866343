"""``drop-end-txn-response``: the transaction ends, and its producer loses the connection instead of being told so."""

from __future__ import annotations

from chaos.faults.accepted import integer
from chaos.faults.damage import FrameAct
from chaos.faults.end_txn import EndTxnFault
from cluster.protocol.apis import ApiKey


class DropEndTxnResponse(EndTxnFault):
    """The producer must ask again, and be told how it ended."""

    name = "drop-end-txn-response"
    summary = "drop responses to EndTxn and close their connections; producers must ask again how it ended"
    duration_s = (0.5, 1.5)
    accepts = (integer("count", 1, 1_000),)

    def act(self) -> FrameAct:
        count = self.injection.parameters.get("count") or self.random.randint(1, 3)
        return FrameAct("cut", (int(ApiKey.END_TXN),), "response", count=int(count))
