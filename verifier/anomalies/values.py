"""The anomalies of values: what clients were told, what the log holds, and what readers saw. Plain data."""

from __future__ import annotations

from verifier.anomalies.model import CLIENTS_AND_LOG, LOG_ALONE, REPLICAS, Anomaly

_COPIES = {
    "broker": "the copies carry the same producer id and epoch: the broker failed to recognize the duplicate",
    "client-resend": "each copy has a producer id or epoch of its own: the client sent the value again",
    "client-resend-after-error": "the same, not under an older epoch, after a timeout or the refusal of a later batch",
    "mixed": "three or more copies under several identities: the client resent it, and the broker may have failed, too",
    "unidentified": "the copies carry no producer id (idempotence is off): no one can tell who repeated them",
}
_VANISHED = {"vanished": "a reader was handed a copy that is no longer in the log"}

ANOMALIES: tuple[Anomaly, ...] = (
    Anomaly(
        "log-corrupt",
        "bytes on disk are not what was written",
        {
            "batch": "a batch contradicts its CRC or itself",
            "tail": "a file ends in bytes that are not a batch, where one must be",
            "value": "a value contradicts its own checksum although its batch is intact",
            "segment": "a batch is in a file that is named after a later offset",
        },
        brings=(
            *("lost-write", "unseen", "log-gap", "log-divergence", "inconsistent-offsets", "log-reorder", "phantom"),
            *("sequence-gap", "torn-tail", "index-mismatch", "checkpoint-mismatch", "snapshot-mismatch"),
            "poll-skip",
            "int-poll-skip",
        ),
        needs=LOG_ALONE,
    ),
    Anomaly(
        "lost-write",
        "a value was acknowledged and is not in the log",
        brings=("inconsistent-offsets", "log-gap", "nonmonotonic-send", "poll-skip", "int-poll-skip", "sequence-gap"),
        needs=CLIENTS_AND_LOG,
    ),
    Anomaly(
        "duplicate",
        "readers were handed one value at two offsets",
        {**_COPIES, **_VANISHED},
        brings=("log-duplicate", "sequence-duplicate", "sequence-gap"),
        needs=CLIENTS_AND_LOG,
    ),
    Anomaly(
        "log-duplicate",
        "the log holds one value at two offsets",
        _COPIES,
        brings=("sequence-duplicate", "sequence-gap"),
        needs=LOG_ALONE,
    ),
    Anomaly(
        "phantom",
        "a value that no producer of the run wrote",
        {
            "never-reserved": "no load process reserved this sequence",
            "failed": "its send certainly failed",
            "foreign": "the log holds a value that is not of this run's load",
            "undecodable": "a reader was handed bytes that are not a value",
            "attributes": "a batch has attributes that no producer of the run asks for",
        },
        needs=CLIENTS_AND_LOG,
    ),
    Anomaly(
        "log-reorder",
        "the log holds values or batches in an order in which they were not sent",
        {
            "values": "a value comes after one that was sent later",
            "offsets": "a batch goes back to an offset that the file had already passed",
        },
        brings=("nonmonotonic-send", "inconsistent-offsets", "realtime-order", "epoch-regression", "sequence-gap"),
        needs=LOG_ALONE,
    ),
    Anomaly(
        "log-divergence",
        "a replica's batches differ from the final leader's, or from another replica's",
        {
            "missing": "the replica lacks a batch",
            "extra": "the replica has a batch that the leader lacks",
            "different": "both have the batch, with different content",
            "before": "replicas that never settled have the same batch, and different ones before it",
        },
        needs=REPLICAS,
        about="followers",
    ),
    Anomaly(
        "inconsistent-offsets",
        "two sources disagree about what is at an offset",
        {
            "read": "a reader was handed something other than what the final log holds there",
            "acknowledged": "the offset was acknowledged for something other than what the final log holds there",
        },
        needs=CLIENTS_AND_LOG,
    ),
    Anomaly(
        "log-gap",
        "something is missing from the middle of the log",
        {
            "offsets": "offsets that no batch covers",
            "sequences": "acknowledged values are missing while later ones of their stream are there",
        },
        brings=("poll-skip", "int-poll-skip", "sequence-gap"),
        needs=CLIENTS_AND_LOG,
    ),
    Anomaly(
        "nonmonotonic-send", "acknowledged or read positions contradict the order of sending", needs=CLIENTS_AND_LOG
    ),
    Anomaly(
        "unseen",
        "an acknowledged value in the log was not handed to a final reader that passed it",
        needs=CLIENTS_AND_LOG,
    ),
)
