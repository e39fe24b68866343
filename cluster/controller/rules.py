"""The controller's decision functions in one frozen value, so that a defect can wrap one of them at start-up.

Owns nothing but the bundle; the correct code has no other hook (docs/design.md "Pure decisions, six seams").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cluster.controller.alter_partition import IsrVerdict, ProposedIsr, check_proposal
from cluster.controller.context import ControllerContext
from cluster.controller.control_fence import control_request_error, required_version
from cluster.controller.election import elect_offline
from cluster.controller.partitions import ElectOffline
from cluster.controller.producer_ids import ProducerIdBlock, next_block
from cluster.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class ControlRules:
    """What a controller, or a broker obeying one, decides by. The defaults are the correct rules."""

    elect_offline: ElectOffline = elect_offline
    check_proposal: Callable[[ControllerContext, int, ProposedIsr], IsrVerdict] = check_proposal
    control_request_error: Callable[..., ErrorCode] = control_request_error
    required_version: Callable[[int], int | None] = required_version
    next_block: Callable[[int | None], ProducerIdBlock] = next_block
