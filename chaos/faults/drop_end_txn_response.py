"""``drop-end-txn-response``: the transaction ends, and its producer loses the connection instead of getting the
response."""

from __future__ import annotations

from chaos.faults.accepted import integer
from chaos.faults.damage import FrameAct
from chaos.faults.end_txn import EndTxnFault
from cluster.protocol.apis import ApiKey


class DropEndTxnResponse(EndTxnFault):
    """The producer must retry, and learn how the transaction ended."""

    name = "drop-end-txn-response"
    summary = "drop responses to EndTxn and close their connections; producers must retry to learn the outcome"
    duration_s = (0.5, 1.5)
    accepts = (integer("count", 1, 1_000),)

    def act(self) -> FrameAct:
        count = self.injection.parameters.get("count") or self.random.randint(1, 3)
        return FrameAct("cut", (int(ApiKey.END_TXN),), "response", count=int(count))
