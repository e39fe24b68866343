"""How the gate's tests are handed out to its processes (``tests/conftest.py``)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.conftest import Together

#: One list, in the order of the gate: quick files, what shares a session, and real processes at the end.
QUICK = [f"tests/chaos/test_{name}.py::test_{number}" for name in ("dump", "leaders") for number in range(3)]
DEAR = [f"tests/verifier/test_{name}.py::test_{number}" for name in ("checks", "pairs") for number in range(2)]
REAL = [f"tests/integration/test_{name}.py::test_{number}" for name in ("disk", "run") for number in range(2)]


class Worker:
    """Keeps what it is asked to run, and has done it when it is told to."""

    def __init__(self) -> None:
        self.gateway = SimpleNamespace(id="gw")
        self.shutting_down = False
        self.asked: list[int] = []
        self.count = 0

    def send_runtest_some(self, places: list[int]) -> None:
        self.asked += places

    def shutdown(self) -> None:
        self.shutting_down = True


def test_one_takes_from_the_front_and_one_from_the_end_until_all_is_done() -> None:
    """Each test is handed out once; what shares something to one process; the long runs of the end at once, by test."""
    tests = [*QUICK, *DEAR, *REAL]
    workers = [Worker(), Worker()]
    scheduler = scheduling(tests, workers)
    assert [tests[place] for place in workers[0].asked] == QUICK[:3]
    assert [tests[place] for place in workers[1].asked] == REAL[:1:-1]
    while not all(worker.count == len(worker.asked) for worker in workers):
        for worker in workers:
            if worker.count < len(worker.asked):
                scheduler.mark_test_complete(worker, worker.asked[worker.count])
                worker.count += 1
    assert sorted(workers[0].asked + workers[1].asked) == list(range(len(tests)))
    assert all(worker.shutting_down for worker in workers)
    assert any({tests.index(test) for test in DEAR} <= set(worker.asked) for worker in workers)


def test_what_a_process_did_not_end_is_done_by_others() -> None:
    """A process dies in a test: that one is named, and the rest of what it had is handed out again, once."""
    workers = [Worker(), Worker()]
    scheduler = scheduling([*QUICK, *REAL], workers)
    scheduler.mark_test_complete(workers[0], 0)
    assert scheduler.remove_node(workers[0]) == QUICK[1]
    for place in workers[1].asked:  # which grows
        scheduler.mark_test_complete(workers[1], place)
    assert sorted(workers[1].asked) == list(range(1, len(QUICK) + len(REAL)))


def scheduling(tests: list[str], workers: list[Worker]) -> Any:
    """A scheduler that has handed out the first tests. xdist's own types want real processes."""
    config: Any = SimpleNamespace(
        getvalue=lambda _: ["popen"] * len(workers), option=SimpleNamespace(loadscopereorder=False)
    )
    scheduler: Any = Together(config)
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, tests)
    scheduler.schedule()
    return scheduler
