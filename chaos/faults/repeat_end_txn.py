"""``repeat-end-txn``: EndTxn requests arrive twice, as when a client retries a request that was carried out.

The client sees the first response; the proxy swallows the second one.
"""

from __future__ import annotations

from chaos.faults.damage import FrameAct
from chaos.faults.end_txn import EndTxnFault
from cluster.protocol.apis import ApiKey


class RepeatEndTxn(EndTxnFault):
    """The second one must change nothing."""

    name = "repeat-end-txn"
    summary = "deliver EndTxn requests twice to the coordinator of a transactional id"

    def act(self) -> FrameAct:
        return FrameAct("repeat", (int(ApiKey.END_TXN),), "request")
