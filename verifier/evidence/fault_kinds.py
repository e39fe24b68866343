"""Faults by what becomes of the brokers that they hit. Names alone; a test holds that they are those of chaos."""

from __future__ import annotations

#: The broker is killed, and its disk loses something.
KILLING_MACHINES = frozenset(("power-loss", "truncate-tail", "lose-checkpoint", "lose-index"))
#: Calls of the disk fail, and the broker exits on its own.
FAILING_DISKS = frozenset(("full-disk", "disk-error"))
#: The broker gets no more memory, and halts.
HALTING = frozenset(("memory-pressure",))
#: A broker may come back with less of a log than it had.
LOSING_RECORDS = KILLING_MACHINES | FAILING_DISKS | {"bit-flip", "kill-and-wipe"}
#: What calls of a disk fail with, as its probe names it -> as a log has it.
DISK_ERRORS = {"ENOSPC": "No space left on device", "EIO": "Input/output error"}
#: What the log of a broker says that got no more memory, and its name beside those errors.
NO_MEMORY, HALTS = "ENOMEM", "it got no more memory, and halts"
#: Processes of the load are killed, stopped or restarted, and the cluster is left alone.
ON_THE_LOAD = frozenset(
    ("kill-producers", "kill-readers", "pause-producers", "pause-members", "crash-members", "restart-members")
)
#: Several brokers are killed, one step of the probe for each.
KILLING_SEVERAL = frozenset(("kill-all", "kill-majority", "restart-storm", "double-failover", "elect-unclean"))
#: A replica from outside the ISR is made leader on request, and what it lacks is lost: only where it was asked for.
UNCLEAN_ORDER = "elect-unclean"
#: What its probe has for the answer if it did not come to the order.
NOT_ORDERED = "nothing"
#: Where its probe has when it first sent the order, by the conductor's clock.
ORDERED_NS = "ordered_ns"
#: Answers of a controller that decided against the election; any other may be to an order that was carried out.
ORDER_REFUSALS = frozenset(("ELIGIBLE_LEADERS_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION"))
