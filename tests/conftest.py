"""What every test shares: hypothesis's profiles, the order of tests, and which of them run in one process.

Hypothesis is derandomized in the gate, so a red run repeats.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.support.lasting import lasting

settings.register_profile(
    "gate", derandomize=True, max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("full", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("full" if os.environ.get("GAPLESS_HYPOTHESIS") == "full" else "gate")

ROOT = Path(__file__).resolve().parents[1]
#: Directories and a fixture that share what costs seconds to make: their tests stay in one process.
SHARING = ("tests/architecture/", "tests/verifier/", "tests/cluster/metadata/")
SHARED = "shared_cluster"
#: Files in those directories that use nothing of what is shared there: any process may take them.
UNSHARED = ("tests/verifier/test_main.py", "tests/verifier/test_robustness.py")
#: Files of long tests that share nothing.
APART = ("test_run.py", "test_interrupt.py")
#: These, and a file of one long run for all its tests, come last in their directory, and are handed out first.
LONG = (*APART, "test_correct_run.py")
#: Their directory, whose tests come after all others.
LAST = "tests/integration/"
#: What shares something and keeps processors busy for minutes: after what is quick, and not at the end.
BUSY = "tests/verifier/"
#: The worker that begins with it, if there are at least three.
THIRD = 2
#: Directories of quick tests, which come before that.
QUICK = ("tests/architecture/", "tests/chaos/", "tests/cluster/", "tests/conformance/", "tests/evidence/")


class Together(LoadScopeScheduling):
    """Hands out tests by file, and files that share something dear to one worker.

    Every other worker takes from the end, where real processes are: these mostly wait, while what others take from the
    front computes. Where they meet, in the middle, tests are short, and none is left alone with a long one. A third
    worker begins with the largest part that one worker must do alone.

    pytest-xdist's own groups, made of marks, need a pytest older than 9.2.
    """

    @cached_property
    def _places(self) -> dict[str, int]:
        """Where each test stands: a list of ten thousand is not searched for each of them."""
        return {nodeid: place for place, nodeid in enumerate(self.collection or ())}

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return nodeid if file.endswith(APART) else _group(file)

    def _assign_work_unit(self, node: WorkerController) -> None:
        worker = self.nodes.index(node)
        if worker == THIRD and BUSY in self.workqueue:
            scope, unit = BUSY, self.workqueue.pop(BUSY)
        else:
            scope, unit = self.workqueue.popitem(last=_takes_from_the_end(worker))
        work = self.assigned_work[node]
        # what is done would be counted again after each test
        for done in [name for name, tests in work.items() if all(tests.values())]:
            del work[done]
        work[scope] = unit
        node.send_runtest_some([self._places[nodeid] for nodeid, is_done in unit.items() if not is_done])

    def _reschedule(self, node: WorkerController) -> None:
        """Hand out more to a process that has one test left, not two: each of them may take a minute."""
        if not self.workqueue or self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)


def _takes_from_the_end(worker: int) -> bool:
    return worker % 2 == 1


@cache
def _group(file: str) -> str:
    if file in UNSHARED:
        return file
    shared = next((each for each in SHARING if file.startswith(each)), None)
    if shared is None and SHARED in (ROOT / file).read_text(encoding="utf-8"):
        return SHARED
    return shared or file


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick tests first, real processes last: the ends of the list are handed out first, what is short in the end."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if item.nodeid.startswith(LAST):
        return 3 + item.path.name.endswith(LONG)
    return 0 if item.nodeid.startswith(QUICK) else 1 if item.nodeid.startswith(BUSY) else 2


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """What is loaded and collected stays."""
    with lasting():
        return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together:
    """In place of pytest-xdist's own."""
    return Together(config, log)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Locust patches the sockets and locks of the whole process, and the test's process speaks with pytest by them."""
    if "locust" in sys.modules:
        raise pytest.UsageError("a test module imports locust, perhaps by loadgen.users: start it in a process instead")
