"""Faults that take links down, beside the log of the proxy that has to have done it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from chaos.proxy.proxy import Proxy
from cluster.process.one_line import log_to
from tests.verifier.test_completeness import FACTS, RUN, SECOND, incomplete
from tests.verifier.test_verdict import closing
from verifier.closing.proxy_log import link_starts
from verifier.doubts import EXCUSES
from verifier.evidence.run_directory import RunDirectory
from verifier.witness.effectiveness import Injected

LINK = "b2-b1"
BIT = {"closed_connections": 2, "refused_connections": 3}


def fault(
    name: str = "flapping", at: int = 20, target: str = LINK, *, effective: bool = True, **probe: Any
) -> Injected:
    """It bit, as its probe says, and ended after four seconds."""
    seen = {"links": target.split(", "), **BIT, **({"times_up": 3} if name == "flapping" else {}), **probe}
    return Injected(name, target, at * SECOND, (at + 4) * SECOND, effective, False, seen, at, (at + 3) * SECOND, True)


def said(*injected: Injected, **starts: int) -> list[str]:
    """What is said of these faults, with the starts of links by their names, ``_`` for ``-``."""
    told = {name.replace("_", "-"): number for name, number in starts.items()}
    doubts = incomplete(RUN, FACTS, closing(*injected, link_starts=told))
    found = [each for each in doubts if "is said to have bitten" in each.reason or "was up again" in each.reason]
    assert all(each.blinds == EXCUSES for each in found)
    return [each.reason for each in found]


@pytest.mark.parametrize(
    ("injected", "starts"),
    [
        ([fault()], {"b2_b1": 4}),
        ([fault()], {"b2_b1": 9}),
        # Toxiproxy leaves no such log
        ([fault()], {}),
        ([fault(times_up=7)], {"b2_b1": 8}),
        ([fault(), fault(at=30, times_up=5)], {"b2_b1": 9}),
        # it did not bite, and says so
        ([fault(effective=False, refused_connections=1, times_up=0)], {"b2_b1": 1}),
        ([fault(effective=False, error="no")], {"b2_b1": 1}),
        ([fault("refuse", target="producers-b1, readers-b1")], {"producers_b1": 2, "readers_b1": 2}),
        # the one may have left it down for the other
        ([fault(), fault("refuse", at=22, target=f"{LINK}, readers-b1")], {"b2_b1": 3, "readers_b1": 1}),
        ([fault(), fault("refuse", at=22, target="readers-b1")], {"b2_b1": 4, "readers_b1": 2}),
        # another kind takes none down
        ([fault("reset", refused_connections=0)], {"b2_b1": 1}),
    ],
)
def test_a_fault_that_took_links_down_is_believed(injected: list[Injected], starts: dict[str, int]) -> None:
    """The proxy started them again at least as often as its probe saw them up."""
    assert said(*injected, **starts) == []


@pytest.mark.parametrize(
    ("injected", "starts", "says"),
    [
        ([fault()], {"b2_b1": 1}, "b2-b1 was up again 3 or more times, by the faults, and 0"),
        ([fault()], {"b2_b1": 3}, "b2-b1 was up again 3 or more times, by the faults, and 2"),
        ([fault()], {"b3_b1": 9}, "b2-b1 was up again 3 or more times, by the faults, and 0"),
        ([fault(times_up=7)], {"b2_b1": 7}, "up again 7 or more times, by the faults, and 6"),
        ([fault(), fault(at=30)], {"b2_b1": 6}, "up again 6 or more times, by the faults, and 5"),
        (
            [fault("refuse", target="producers-b1, readers-b1")],
            {"producers_b1": 2, "readers_b1": 1},
            "readers-b1 was up again 1 or more times",
        ),
        ([fault(times_up=2)], {}, "takes times_up of 3, and its probe has 2"),
        ([fault(refused_connections=0)], {}, "takes refused_connections of 3, and its probe has 0"),
        ([fault(times_up="many")], {}, "takes times_up of 3, and its probe has 'many'"),
        ([fault("refuse", refused_connections=2)], {}, "takes refused_connections of 3, and its probe has 2"),
    ],
)
def test_a_fault_that_took_no_link_down_is_not_believed(
    injected: list[Injected], starts: dict[str, int], says: str
) -> None:
    """By its own probe, or by the proxy, which knows nothing of it."""
    (reason,) = said(*injected, **starts)
    assert says in reason


def test_the_proxy_says_each_time_that_a_link_listens(tmp_path: Path) -> None:
    """As the verifier reads it, from the log of a run or of relays; neither is needed."""
    directory = RunDirectory(tmp_path)
    assert link_starts(directory) == {}
    handler = logging.FileHandler(tmp_path / "proxy.log")
    root = logging.getLogger()
    kept, level = list(root.handlers), root.level
    log_to(handler, force=True)
    try:

        async def turns() -> None:
            for name, count in (("b2-b1", 3), ("producers-b1", 1)):
                proxy = Proxy(name, "127.0.0.1:0", "127.0.0.1:1", 1, 1000)
                for _ in range(count):
                    await proxy.start()
                    await proxy.stop(keep_port=True)
                await proxy.stop(keep_port=False)

        asyncio.run(turns())
    finally:
        handler.close()
        root.handlers[:] = kept
        root.setLevel(level)
    assert link_starts(directory) == {"b2-b1": 3, "producers-b1": 1}
    (tmp_path / "relays.log").write_bytes((tmp_path / "proxy.log").read_bytes() + b"\xff Proxy('x', on) started\n")
    assert link_starts(directory) == {"b2-b1": 6, "producers-b1": 2}
    (tmp_path / "relays.log").unlink()
    (tmp_path / "relays.log").mkdir()
    assert link_starts(directory) == {"b2-b1": 3, "producers-b1": 1}
