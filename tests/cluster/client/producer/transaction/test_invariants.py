"""Each invariant of a transactional producer, broken by hand."""

from __future__ import annotations

import pytest

from cluster.client.producer.transaction import invariants
from cluster.client.producer.transaction.invariants import TxnSnapshot
from cluster.client.producer.transaction.transaction_errors import TransactionError
from cluster.client.producer.transaction.txn_requests import (
    AddTxnOffsets,
    EndTransaction,
    FindTxnCoordinator,
    InitTxnProducerId,
    TxnIdentity,
)
from cluster.invariants import InvariantBroken
from tests.cluster.client.producer.transaction.txn_bench import (
    FLYING,
    GROUP,
    ID,
    ME,
    OFFSETS,
    T0,
    TIMEOUT_MS,
    TXN_KEY,
    Bench,
    E,
    S,
)
from tests.support.invariants import is_named, raised, stated


def ready():
    return Bench().start()


def in_transaction():
    return Bench().begin(T0)


def flying(name):
    return lambda: FLYING[name][0]()[0]


def fatal():
    bench = in_transaction()
    bench.manager.close()
    return bench


def set_to(**values):
    def change(ledger):
        for name, value in values.items():
            setattr(ledger, name, value)

    return change


def adding(request):
    return lambda ledger: ledger.queue.add(request)


#: (name, a bench that is sound, what is done to its ledger).
BREAKS = [
    ("error-told", ready, set_to(error=TransactionError(E.NONE, ""))),
    ("identity-known", ready, set_to(identity=TxnIdentity(ID))),
    ("identity-known", Bench, set_to(identity=ME)),
    ("sets-apart", in_transaction, lambda ledger: ledger.partitions.new.add(T0)),
    ("open-only", ready, set_to(is_started=True)),
    ("open-only", ready, set_to(is_in_doubt=True)),
    ("open-only", ready, set_to(is_commit_lost=True)),
    ("open-only", ready, lambda ledger: ledger.partitions.new.add(T0)),
    ("added-counts", in_transaction, set_to(is_started=False)),
    ("pending-asked", in_transaction, lambda ledger: ledger.partitions.pending.add(("u", 1))),
    ("additions-useful", flying("abort"), adding(AddTxnOffsets(ME, GROUP, OFFSETS))),
    ("one-end", in_transaction, adding(EndTransaction(ME, True))),
    ("one-end", flying("commit"), adding(EndTransaction(ME, True))),
    ("one-end", flying("commit"), set_to(state=S.ABORTING_TRANSACTION)),
    ("one-init", ready, adding(InitTxnProducerId(ME, TIMEOUT_MS))),
    ("one-init", flying("init"), adding(InitTxnProducerId(ME, TIMEOUT_MS))),
    ("same-identity", in_transaction, adding(AddTxnOffsets(TxnIdentity(ID, 7, 2), GROUP, OFFSETS))),
    ("call-waits", flying("commit"), lambda ledger: setattr(ledger.transition.call, "is_done", True)),
    ("call-waits", ready, lambda ledger: ledger.transition.begin(FLYING["init"][0]()[1].operation)),
    ("fatal-is-quiet", fatal, adding(FindTxnCoordinator(TXN_KEY))),
    ("bump-after-abort", in_transaction, set_to(is_bump_required=True)),
]


@pytest.mark.parametrize(("name", "make", "change"), BREAKS)
def test_a_broken_one_is_named(name, make, change):
    """What is sound passes; what is broken is told by its name."""
    manager = make().manager._manager
    is_named(name, lambda: invariants.validate(manager), lambda: change(manager._ledger))


def test_successors():
    """States follow each other as in the table, and epochs ascend under one producer id."""
    before = TxnSnapshot(S.READY, ME)
    for after in (before, TxnSnapshot(S.IN_TRANSACTION, ME), TxnSnapshot(S.READY, TxnIdentity(ID, 8, 0))):
        invariants.validate_successor(before, after)
    invariants.validate_successor(TxnSnapshot(S.INITIALIZING, ME), TxnSnapshot(S.UNINITIALIZED, TxnIdentity(ID)))
    for name, after in (
        ("state-follows", TxnSnapshot(S.COMMITTING_TRANSACTION, ME)),
        ("identity-ascends", TxnSnapshot(S.READY, TxnIdentity(ID, 7, 2))),
    ):
        with pytest.raises(InvariantBroken, match=f": {name}: "):
            invariants.validate_successor(before, after)


def test_all_are_broken_here():
    """What the module states is what it raises, and each is broken above."""
    assert stated(invariants) == raised(invariants)
    assert stated(invariants) == {name for name, *_ in BREAKS} | {"state-follows", "identity-ascends"}
