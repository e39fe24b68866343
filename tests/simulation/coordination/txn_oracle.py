"""The oracle of transactions: all of a transaction or nothing, by what programs were told and what the logs hold.

Owns that judgment; names of findings are the verifier's. Does not own how a log is read (``txn_log``) nor what was
decided (``decisions``). Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from tests.simulation.coordination.told import Told, Transaction
from tests.simulation.coordination.txn_log import Stood, TxnLog
from tests.simulation.kept import Finding
from tests.simulation.seen import TopicPartition

#: (partition, leader epoch, base offset) -> when that leader appended the batch.
Appends = Mapping[tuple[TopicPartition, int, int], float]
#: Value -> the partition and the record of each place at which it stands.
_Places = Mapping[bytes, list[tuple[TopicPartition, Stood]]]


def judge(told: Told, logs: Mapping[TopicPartition, TxnLog], appends: Appends) -> list[Finding]:
    """``logs`` are those that programs write to."""
    places: defaultdict[bytes, list[tuple[TopicPartition, Stood]]] = defaultdict(list)
    findings: list[Finding] = []
    for key, log in logs.items():
        for stood in log.stood:
            places[stood.record.value or b""].append((key, stood))
        findings += _order(key, log)
        for reader in told.read.get(key, ()):
            findings += _read(key, log, reader)
    sent = {value for each in told.transactions for value in each.values}
    for value, found in places.items():
        if value not in sent:
            findings.append(("phantom", f"{value!r} at {_spelled(found)} was never sent"))
        elif len(found) > 1:
            findings.append(("duplicate", f"{value!r} stands at {_spelled(found)}"))
    findings += _stable_ends(told, places)
    for transaction in told.transactions:
        findings += _whole(transaction, places)
        findings += _fenced(transaction, told, places, appends)
    return findings


def _order(key: TopicPartition, log: TxnLog) -> list[Finding]:
    """Every transaction has its end, and no epoch of a producer goes back."""
    findings = []
    for producer_id, offset in log.open.items():
        text = f"{key[0]}-{key[1]}: that of producer {producer_id}, open since offset {offset}, has no end"
        findings.append(("hanging-transaction", text))
    for producer_id, epoch, before, offset in log.epochs_back:
        text = f"{key[0]}-{key[1]}: producer {producer_id} epoch {epoch} after {before} at {offset}"
        findings.append(("producer-epoch-regression", text))
    return findings


def _read(key: TopicPartition, log: TxnLog, reader: list[tuple[int, bytes, int]]) -> list[Finding]:
    """A reader of committed records was given all of them, in order, once, and no others."""
    due = [(stood.record.offset, stood.record.value) for stood in log.stood if stood.is_committed]
    given = [(offset, value) for offset, value, _ in reader]
    if given == due:
        return []
    name = f"{key[0]}-{key[1]}"
    aborted = {stood.record.offset: stood.record.value for stood in log.stood if stood.is_committed is False}
    for offset, value in given:
        if aborted.get(offset) == value:
            return [("G1a", f"{name}: a reader of committed records was given {value!r} at {offset}, which is aborted")]
    for number, (offset, value) in enumerate(given):
        if number >= len(due) or due[number] != (offset, value):
            wanted = due[number] if number < len(due) else None
            is_skip = wanted is not None and offset > wanted[0]
            text = f"{name}: a reader of committed records was given {value!r} at {offset}, due is {wanted}"
            return [("poll-skip" if is_skip else "nonmonotonic-poll", text)]
    return [("poll-skip", f"{name}: a reader of committed records was not given {due[len(given)]}")]


def _stable_ends(told: Told, places: _Places) -> list[Finding]:
    """No stable end is beyond the first record of a transaction that its program has not even asked to commit yet."""
    findings = []
    for transaction in told.transactions:
        if not transaction.is_committed:
            continue
        first: dict[TopicPartition, int] = {}
        for value in transaction.values:
            for key, stood in places.get(value, ()):
                first[key] = min(stood.record.offset, first.get(key, stood.record.offset))
        for key, told_s, offset in told.ends:
            if told_s < transaction.ending_s and offset > first.get(key, offset):
                name = f"{key[0]}-{key[1]}"
                text = f"{name} was stable to {offset} at {told_s:g} s, {transaction.tag} was open from {first[key]} on"
                findings.append(("precommitted-read", text))
    return findings


def _whole(transaction: Transaction, places: _Places) -> list[Finding]:
    """What was told of a transaction is so in each of its partitions."""
    findings: list[Finding] = []
    committed: set[bytes] = set()
    for value, key in transaction.values.items():
        found = [stood for where, stood in places.get(value, ()) if where == key]
        if any(stood.is_committed for stood in found):
            committed.add(value)
        offset = transaction.acknowledged.get(value)
        if offset is not None and not found:
            findings.append(("lost-write", f"{value!r} was acknowledged at {offset} of {key[0]}-{key[1]}"))
        elif offset is not None and offset not in {stood.record.offset for stood in found}:
            text = f"{value!r} was acknowledged at {offset} and stands at {_spelled(places[value])}"
            findings.append(("inconsistent-offsets", text))
    missing = transaction.values.keys() - committed
    if committed and missing:
        text = f"{transaction.tag}: {sorted(committed)} are committed, {sorted(missing)} are not"
        findings.append(("torn-transaction", text))
    elif transaction.is_committed and missing:
        findings.append(("lost-write", f"{transaction.tag} was committed, and none of it stands so"))
    elif transaction.is_committed is False and committed:
        findings.append(("G1a", f"{transaction.tag} was aborted, and stands as committed"))
    return findings


def _fenced(transaction: Transaction, told: Told, places: _Places, appends: Appends) -> list[Finding]:
    """Nothing of a producer was appended after the next one with its transactional id had the id."""
    fences = told.fences[transaction.transactional_id]
    if transaction.life + 1 >= len(fences):
        return []
    fenced_s = fences[transaction.life + 1]
    findings = []
    for value in transaction.values:
        for key, stood in places.get(value, ()):
            appended_s = appends.get((key, stood.leader_epoch, stood.base_offset), 0.0)
            if appended_s > fenced_s:
                text = f"{value!r} was appended at {appended_s:g} s, its producer was fenced at {fenced_s:g} s"
                findings.append(("zombie-write", text))
    return findings


def _spelled(found: list[tuple[TopicPartition, Stood]]) -> str:
    return ", ".join(f"{topic}-{number}@{stood.record.offset}" for (topic, number), stood in found)
