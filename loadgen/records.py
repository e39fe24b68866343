"""Makes the key and the value of each record of a stream. Pure: the same sequence always gives the same bytes.

Owns putting sizes, keys and sequenced values together. Does not own the draws (``loadgen.choices``) nor the layout of
a value (``verifier.evidence.sequenced_value``).
"""

from __future__ import annotations

from loadgen.choices import Keys, Sizes
from verifier.evidence.sequenced_value import ValueEncoder
from verifier.evidence.transfers import transfer_key


class StreamRecords:
    """The records of one stream."""

    def __init__(self, run_id: int, stream: int, sizes: Sizes, keys: Keys | None = None) -> None:
        self._seed = run_id ^ (stream << 32)
        self._sizes = sizes
        self._keys = keys or Keys()
        self._encoder = ValueEncoder(run_id, stream, sizes.most)

    def key(self, sequence: int) -> bytes | None:
        """The key of a record; None if the workload has none."""
        return self._keys.of(self._seed, sequence)

    def value(self, sequence: int, intended_ns: int) -> bytes:
        """The value of a record that is to be sent at ``intended_ns``."""
        if self._sizes.is_constant:
            return self._encoder.encode(sequence, intended_ns)
        return self._encoder.encode(sequence, intended_ns, self._sizes.of(self._seed, sequence))

    def size_bytes(self, first: int, last: int) -> int:
        """The bytes of the values of a closed range of sequences."""
        if self._sizes.is_constant:
            return self._sizes.most * (last - first + 1)
        return sum(self._sizes.of(self._seed, sequence) for sequence in range(first, last + 1))

    def __repr__(self) -> str:
        return f"StreamRecords({self._encoder})"


class TransferRecords(StreamRecords):
    """The records of one account of a bank: their keys say what they add to it."""

    def __init__(self, run_id: int, stream: int, sizes: Sizes) -> None:
        super().__init__(run_id, stream, sizes)
        self._account = run_id, stream

    def key(self, sequence: int) -> bytes | None:
        """The key of the record, which says what the transfer adds to the account."""
        return transfer_key(*self._account, sequence)
