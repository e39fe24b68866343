"""Row 4 of docs/produce-checks.md: a transactional batch that may not be appended is refused.

Owns the refusals alone; why a batch is refused is in ``verified``.
"""

from __future__ import annotations

from cluster.broker.replicas.host import RequestRefused
from cluster.broker.replicas.verified import VerificationError, Verified
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import ErrorCode


def check_identity(transactional_id: str | None, header: BatchHeader) -> None:
    """A transactional batch says whose transaction it is of. Raises ``RequestRefused``."""
    if not transactional_id or header.producer_id < 0:
        raise RequestRefused(ErrorCode.INVALID_TXN_STATE, "a transactional batch needs a transactional id and producer")


def check_verified(
    log: PartitionLog, header: BatchHeader, verified: Verified, verification_error: VerificationError
) -> None:
    """It is of an open transaction. Raises ``RequestRefused``."""
    error = verification_error(log, header, verified)
    if error is not ErrorCode.NONE:
        raise RequestRefused(error, "its coordinator does not let it in, or its transaction is not open")
