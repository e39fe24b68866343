"""CoordinatorLooks: the invariants of the two coordinators of one life of a broker, after each of their events.

Owns when they are looked at: of transactions, whenever one is another than it was; of groups, whenever a decision was
carried out. Does not own any invariant: those stand next to what they are about.
"""

from __future__ import annotations

from cluster.broker.coordinators import Coordinators
from cluster.coordinator.group import invariants as group_invariants
from cluster.coordinator.group.decisions import GroupDecision
from cluster.coordinator.transaction import invariants as transaction_invariants
from cluster.coordinator.transaction.ownership import ServedPartition
from cluster.coordinator.transaction.state import TransactionMetadata


class CoordinatorLooks:
    """``looks`` is how often something was validated."""

    def __init__(self, coordinators: Coordinators) -> None:
        self.looks = 0
        self._transactions = coordinators.transactions.coordinator
        self._groups = coordinators.groups.coordinator
        self._has_decided = False
        #: What each served partition had when it was last looked at.
        self._known: dict[ServedPartition, dict[str, TransactionMetadata]] = {}
        carry_out = coordinators.groups._carry_out

        def carry_out_and_note(decision: GroupDecision, asking: object = None) -> None:
            self._has_decided = True
            carry_out(decision, asking)

        coordinators.groups._carry_out = carry_out_and_note

    def __repr__(self) -> str:
        return f"<CoordinatorLooks, {self.looks} looks>"

    def look(self) -> None:
        """Raises ``InvariantBroken``."""
        if self._has_decided:
            self._has_decided = False
            self.looks += 1
            group_invariants.validate(self._groups)
        has_changed = False
        for served in self._transactions.owned.served.values():
            known = self._known.setdefault(served, {})
            if len(known) != len(served.transactions):
                has_changed = True
                for transactional_id in known.keys() - served.transactions.keys():
                    del known[transactional_id]
            for transactional_id, metadata in served.transactions.items():
                before = known.get(transactional_id)
                if before is metadata:
                    continue
                has_changed = True
                known[transactional_id] = metadata
                if before is not None:
                    transaction_invariants.validate_successor(before, metadata)
        if has_changed:
            self.looks += 1
            transaction_invariants.validate(self._transactions)
