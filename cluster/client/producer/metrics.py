"""What a producer counts, under Kafka's names for it.

Owns the counters of one producer, and their meaning. Does not own when something happens. Written by the producer's
own thread alone, but for the times of the program's calls; a reader in another sees each number whole, if not all of
one moment.
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster.client.producer.transaction.calls import TxnOperation

#: The names of the times that calls about transactions take (KIP-761).
_TIMES: Mapping[TxnOperation, str] = {
    TxnOperation.INIT: "txn-init-time-ns-total",
    TxnOperation.BEGIN: "txn-begin-time-ns-total",
    TxnOperation.SEND_OFFSETS: "txn-send-offsets-time-ns-total",
    TxnOperation.COMMIT: "txn-commit-time-ns-total",
    TxnOperation.ABORT: "txn-abort-time-ns-total",
}


class ProducerMetrics:
    """Totals since the start; averages are over everything so far, not over a window as Kafka's."""

    __slots__ = (
        "batch_total",
        "byte_total",
        "compressed_ratio_sum",
        "disconnect_total",
        "error_total",
        "latency_max_ms",
        "latency_sum_ms",
        "request_total",
        "response_total",
        "retry_total",
        "send_total",
        "split_total",
        "times_ns",
        "turn_total",
    )

    def __init__(self) -> None:
        self.send_total = 0
        self.error_total = 0
        self.disconnect_total = 0
        self.retry_total = 0
        self.batch_total = 0
        self.byte_total = 0
        self.compressed_ratio_sum = 0.0
        self.request_total = 0
        self.response_total = 0
        self.latency_sum_ms = 0
        self.latency_max_ms = 0
        self.split_total = 0
        self.turn_total = 0
        self.times_ns = dict.fromkeys(_TIMES, 0)

    def __repr__(self) -> str:
        return f"ProducerMetrics({self.send_total} records, {self.error_total} errors, {self.request_total} requests)"

    def sent(self, record_count: int, size_bytes: int, compression_ratio: float, is_retry: bool) -> None:
        """A batch was written to a connection."""
        if is_retry:
            self.retry_total += record_count
        else:
            self.send_total += record_count
        self.batch_total += 1
        self.byte_total += size_bytes
        self.compressed_ratio_sum += compression_ratio

    def answered(self, latency_ms: int) -> None:
        """A Produce request was answered."""
        self.response_total += 1
        self.latency_sum_ms += latency_ms
        self.latency_max_ms = max(self.latency_max_ms, latency_ms)

    def called(self, operation: TxnOperation, elapsed_ns: int) -> None:
        """A call about transactions has succeeded. As in Kafka, one that fails or times out does not count. To be
        called with the producer's lock, by the program's thread."""
        self.times_ns[operation] += elapsed_ns

    def read(self) -> dict[str, float]:
        """Kafka's names (``producer-metrics``) and their values."""
        return {
            "record-send-total": self.send_total,
            "record-error-total": self.error_total,
            "record-retry-total": self.retry_total,
            "byte-total": self.byte_total,
            "batch-total": self.batch_total,
            "io-turn-total": self.turn_total,
            "batch-split-total": self.split_total,
            "batch-size-avg": self.byte_total / self.batch_total if self.batch_total else 0.0,
            "compression-rate-avg": self.compressed_ratio_sum / self.batch_total if self.batch_total else 1.0,
            "request-total": self.request_total,
            "response-total": self.response_total,
            "records-per-request-avg": (self.send_total + self.retry_total) / self.request_total
            if self.request_total
            else 0.0,
            "request-latency-avg": self.latency_sum_ms / self.response_total if self.response_total else 0.0,
            "request-latency-max": self.latency_max_ms,
            **{name: self.times_ns[operation] for operation, name in _TIMES.items()},
        }
