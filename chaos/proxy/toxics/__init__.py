"""The table of toxics by their type names in the API. Each toxic has its own module. Pure: stages read no clock."""

from __future__ import annotations

from chaos.proxy.toxics.bandwidth import BANDWIDTH
from chaos.proxy.toxics.base import ToxicType
from chaos.proxy.toxics.frame_types import FRAME_TOXICS
from chaos.proxy.toxics.latency import LATENCY
from chaos.proxy.toxics.limit_data import LIMIT_DATA
from chaos.proxy.toxics.noop import NOOP
from chaos.proxy.toxics.reset_peer import RESET_PEER
from chaos.proxy.toxics.slicer import SLICER
from chaos.proxy.toxics.slow_close import SLOW_CLOSE
from chaos.proxy.toxics.stall import STALL
from chaos.proxy.toxics.timeout import TIMEOUT

TOXIC_TYPES: dict[str, ToxicType] = {
    toxic_type.name: toxic_type
    for toxic_type in (
        *(BANDWIDTH, LATENCY, LIMIT_DATA, NOOP, RESET_PEER, SLICER, SLOW_CLOSE, STALL, TIMEOUT),
        *FRAME_TOXICS,
    )
}
