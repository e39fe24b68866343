"""The thread that carries on a client says when it has ended, whatever becomes of those who ask."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from cluster.seams.runner import ThreadRunner

#: A greenlet that asks again and again is killed in the middle, as Locust does with users that do not stop in time.
GEVENT = """
from gevent import monkey; monkey.patch_all()
import gevent
from cluster.seams.runner import ThreadRunner
steps = []
def step():
    gevent.sleep(0.001)
    steps.append(0)
    return len(steps) < 10_000
runner = ThreadRunner("it")
runner.start(step)
for _ in range(20):
    asking = gevent.spawn(lambda: [runner.has_ended for _ in range(1000)])
    gevent.sleep(0)
    asking.kill()
before = len(steps)
gevent.sleep(0.05)
print(runner.has_ended, len(steps) > before)
"""


def test_it_has_ended_after_its_last_step() -> None:
    """Not before it was started, nor while a step is waited for."""
    goes_on = threading.Event()
    runner = ThreadRunner("it")
    assert not runner.has_ended
    runner.start(lambda: not goes_on.wait(30))
    assert not runner.has_ended and not runner.join(0)
    goes_on.set()
    assert runner.join(30) and runner.has_ended


def test_it_has_ended_in_a_process_that_was_forked_off() -> None:
    """There is no thread there."""
    goes_on = threading.Event()
    runner = ThreadRunner("it")
    runner.start(lambda: not goes_on.wait(30))
    if not (child := os.fork()):
        os._exit(0 if runner.has_ended else 1)
    assert os.waitpid(child, 0)[1] == 0 and not runner.has_ended
    goes_on.set()
    assert runner.join(30)


def test_who_is_killed_while_asking_does_not_end_it() -> None:
    """Under gevent, Python would take the thread for dead from then on, and a producer for one that was forked off."""
    done = subprocess.run([sys.executable, "-c", GEVENT], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("False True\n", "")
