"""The Supervisor with real children: starting, recording, messages, signals, ending."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import psutil
import pytest

from cluster.process.child import EXIT_ORPHANED
from cluster.process.processes import is_alive, until
from cluster.process.supervisor import Child, ChildRecord, Supervisor

pytestmark = pytest.mark.integration

TARGETS = "tests.cluster.process.targets"
LIMIT_S = 30.0


@pytest.fixture
def others() -> list[psutil.Process]:
    """What this process has started before, for other tests: multiprocessing's resource tracker lives as long as it."""
    return psutil.Process().children(recursive=True)


def left(others: list[psutil.Process]) -> list[psutil.Process]:
    return [process for process in psutil.Process().children(recursive=True) if process not in others]


@pytest.fixture
def supervisor(tmp_path: Path, others: list[psutil.Process]) -> Iterator[Supervisor]:
    with Supervisor(str(tmp_path)) as made:
        yield made
    assert left(others) == []


def start(supervisor: Supervisor, function: str, log: Path | None = None, *, service: bool = False) -> Child:
    path = None if log is None else str(log)
    return supervisor.start_python(function, f"{TARGETS}:{function}", {"n": 1}, path, service=service)


def test_a_python_child_announces_itself(supervisor: Supervisor, tmp_path: Path) -> None:
    """A Python child gets its arguments, leads a session of its own, and its output is in its log."""
    child = start(supervisor, "announce", tmp_path / "deep" / "child.log")
    message = child.wait_message(LIMIT_S)
    assert message == {"event": "bound", "echo": {"n": 1}, "session": child.pid, "pid": child.pid}
    assert (tmp_path / "deep" / "child.log").read_text() == "announced\n"
    assert child.creation_time == psutil.Process(child.pid).create_time()
    assert child.is_running()
    assert repr(child) == f"Child(announce, pid {child.pid}, running)"


def test_a_python_child_does_not_import_our_main_module(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line's imports are no child's business; multiprocess alone would run our main module there."""
    script = tmp_path / "main.py"
    script.write_text("raise SystemExit('the main module was imported')\n")
    main = ModuleType("__main__")
    main.__file__ = str(script)
    monkeypatch.setitem(sys.modules, "__main__", main)
    child = start(supervisor, "announce")
    assert child.wait_message(LIMIT_S)["pid"] == child.pid
    assert sys.modules["__main__"] is main


def test_sigint_does_not_reach_a_python_child_and_sigterm_ends_it(supervisor: Supervisor) -> None:
    """Ctrl-C is the owner's business; SIGTERM ends a child that set no handler."""
    child = start(supervisor, "announce")
    child.wait_message(LIMIT_S)
    child.interrupt()
    child.terminate()
    assert child.wait(LIMIT_S) == -signal.SIGTERM
    assert not child.is_running()
    child.terminate()
    child.resume()
    child.kill()


def test_silence_and_death_are_told_apart(supervisor: Supervisor, tmp_path: Path) -> None:
    """Waiting for a message ends in TimeoutError while the child lives, and in EOFError once it has ended."""
    quiet = start(supervisor, "announce")
    quiet.wait_message(LIMIT_S)
    with pytest.raises(TimeoutError, match=r"announce sent nothing within 0\.05 s"):
        quiet.wait_message(0.05)
    failing = start(supervisor, "fail", tmp_path / "fail.log")
    with pytest.raises(EOFError, match=r"fail ended with exit status 1; its log is .*fail\.log"):
        failing.wait_message(LIMIT_S)
    assert "RuntimeError: this child fails" in (tmp_path / "fail.log").read_text()


def test_last_words_are_heard(supervisor: Supervisor) -> None:
    """A message that was sent right before the end arrives, also when the end was noticed first."""
    child = start(supervisor, "leave_last_words")
    assert child.wait(LIMIT_S) == 0
    assert child.wait_message(LIMIT_S) == {"event": "failed", "error": "no port"}
    with pytest.raises(EOFError, match="exit status 0"):
        child.wait_message(LIMIT_S)


def test_a_child_may_get_its_arguments_later(supervisor: Supervisor, tmp_path: Path) -> None:
    """Born without arguments it loads its code and waits; the target is called with what is sent."""
    child = supervisor.start_python("announce", f"{TARGETS}:announce", None, None)
    with pytest.raises(TimeoutError):
        child.wait_message(0.5)
    child.send({"n": 2})
    assert child.wait_message(LIMIT_S)["echo"] == {"n": 2}


def test_nothing_is_sent_to_the_dead(supervisor: Supervisor, tmp_path: Path) -> None:
    """A message to a child that has ended is an error that says how it ended; a waiting child ends on SIGTERM."""
    child = supervisor.start_python("announce", f"{TARGETS}:announce", None, str(tmp_path / "a.log"))
    child.terminate()
    assert child.wait(LIMIT_S) == -signal.SIGTERM
    with pytest.raises(EOFError, match=r"announce ended with exit status -15; its log is .*a\.log"):
        child.send({"n": 2})
    program = supervisor.start_program("sleep", ["sleep", "600"])
    with pytest.raises(EOFError, match="is a program"):
        program.send({"n": 2})


def test_children_are_recorded_before_they_are_waited_for(tmp_path: Path) -> None:
    """Each start reports a record that finds the process again; each end reports its exit status."""
    seen: list[list[ChildRecord]] = []
    with Supervisor(str(tmp_path), seen.append) as supervisor:
        child = start(supervisor, "announce")
        first = seen[0]
        assert [record.name for record in first] == ["warden", "announce"]
        assert psutil.Process(first[1].pid).create_time() == first[1].creation_time
        assert first[1].exit_code is None
        child.kill()
        assert seen[-1][1].exit_code == -signal.SIGKILL
        program = supervisor.start_program("sleep", ["sleep", "600"])
        assert seen[-1][2].pid == program.pid
        assert seen[-1][2].wrapper_pid == psutil.Process(program.pid).ppid()
    assert seen[-1][2].exit_code == -signal.SIGTERM


def test_a_child_that_cannot_be_recorded_is_ended(tmp_path: Path) -> None:
    """When the record cannot be written the error goes to the caller, and no child is left unrecorded."""

    def full(records: list[ChildRecord]) -> None:
        raise OSError("no space left on device")

    with Supervisor(str(tmp_path), full) as supervisor:
        with pytest.raises(OSError, match="no space"):
            start(supervisor, "announce")
        assert not [process for child in supervisor.children for process in child.identities if is_alive(process)]
        supervisor._on_change = None


def test_a_program_stands_for_itself(supervisor: Supervisor, tmp_path: Path) -> None:
    """pid, environment, directory, output and exit status are the program's, not its wrapper's."""
    log = tmp_path / "sh.log"
    child = supervisor.start_program(
        "sh", ["sh", "-c", 'echo "$$ $GAPLESS_TEST $PWD"; exit 7'], {"GAPLESS_TEST": "x"}, str(tmp_path), str(log)
    )
    assert child.wait(LIMIT_S) == 7
    pid, variable, directory = log.read_text().split()
    assert (variable, directory) == ("x", str(tmp_path))
    assert int(pid) == child.pid or child.record().wrapper_pid is None  # It may end before it can be looked up.
    with pytest.raises(EOFError, match="sends no messages"):
        child.wait_message(0)


def test_a_program_that_cannot_run_is_an_error(supervisor: Supervisor, tmp_path: Path) -> None:
    """A program that is absent or broken raises OSError with its name; nothing stays behind."""
    with pytest.raises(FileNotFoundError, match="there is no program 'no-such-program'"):
        supervisor.start_program("x", ["no-such-program"])
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    with pytest.raises(OSError, match="x could not be started: No such file or directory"):
        supervisor.start_program("x", [str(broken)])
    assert supervisor.children[-1].wait(LIMIT_S) == 127


def test_a_program_dies_as_it_died(supervisor: Supervisor) -> None:
    """Death by a signal is passed on, whichever way the signal came."""
    killed = supervisor.start_program("sleep", ["sleep", "600"])
    killed.kill()
    assert killed.exit_code == -signal.SIGKILL
    interrupted = supervisor.start_program("sleep", ["sleep", "600"])
    interrupted.interrupt()
    assert interrupted.wait(LIMIT_S) == -signal.SIGINT
    wrapped = supervisor.start_program("sleep", ["sleep", "600"])
    os.kill(psutil.Process(wrapped.pid).ppid(), signal.SIGTERM)
    assert wrapped.wait(LIMIT_S) == -signal.SIGTERM


def test_what_a_program_leaves_behind_goes_with_it(supervisor: Supervisor, tmp_path: Path) -> None:
    """When a program ends, the rest of its process group is ended too."""
    log = tmp_path / "sh.log"
    child = supervisor.start_program("sh", ["sh", "-c", "sleep 600 & echo $!"], None, None, str(log))
    assert child.wait(LIMIT_S) == 0
    left = int(log.read_text())
    assert until(lambda: not psutil.pid_exists(left) or not is_alive(psutil.Process(left)), LIMIT_S)


@pytest.mark.parametrize("kind", ["python", "program"])
def test_suspend_waits_until_it_is_so(supervisor: Supervisor, kind: str) -> None:
    """After suspend the child is stopped, after resume it is not, and a stopped one can be killed."""
    if kind == "python":
        child = start(supervisor, "announce")
        child.wait_message(LIMIT_S)
    else:
        child = supervisor.start_program("sleep", ["sleep", "600"])
    child.suspend()
    assert psutil.Process(child.pid).status() == psutil.STATUS_STOPPED
    assert child.is_suspended()
    assert child.is_running()
    child.resume()
    assert not child.is_suspended()
    child.suspend()
    child.kill()
    assert child.exit_code == -signal.SIGKILL
    with pytest.raises(ProcessLookupError, match="has ended"):
        child.suspend()


def test_a_closed_lifeline_ends_a_child(supervisor: Supervisor) -> None:
    """Without its owner a child ends by itself within a second, even if it ignores SIGTERM."""
    children = [start(supervisor, "refuse_to_end"), supervisor.start_program("sleep", ["sleep", "600"])]
    children[0].wait_message(LIMIT_S)
    begin = time.monotonic()
    for child in children:
        child.release()
        child.release()
    assert [child.wait(LIMIT_S) for child in children] == [EXIT_ORPHANED, EXIT_ORPHANED]
    assert time.monotonic() - begin < 5  # A second on a quiet machine.


def test_stop_all_ends_everything(tmp_path: Path, others: list[psutil.Process]) -> None:
    """What ignores SIGTERM, is stopped, is a stray in its own session or lost its wrapper is ended, and only once."""
    supervisor = Supervisor(str(tmp_path))
    temporary = supervisor.temporary_directory()
    Path(temporary, "file").touch()
    stubborn = start(supervisor, "refuse_to_end")
    stubborn.wait_message(LIMIT_S)
    stray = psutil.Process(start(supervisor, "start_a_stray").wait_message(LIMIT_S)["stray"])
    program = supervisor.start_program("sleep", ["sleep", "600"])
    program.suspend()
    orphan = supervisor.start_program("sleep", ["sleep", "600"])
    orphan_process = psutil.Process(orphan.pid)
    orphan_process.parent().kill()
    begin = time.monotonic()
    supervisor.stop_all(grace_s=0.2)
    assert time.monotonic() - begin < 20
    assert stubborn.exit_code == -signal.SIGKILL
    assert program.exit_code == -signal.SIGTERM
    assert not is_alive(stray)
    assert not is_alive(orphan_process)
    assert not os.path.exists(temporary)
    assert left(others) == []
    assert not [name for name in os.environ if name.startswith("GAPLESS_SUPERVISOR")]
    supervisor.stop_all()
    with pytest.raises(RuntimeError, match="has been stopped"):
        start(supervisor, "announce")
    with pytest.raises(RuntimeError, match="has been stopped"):
        supervisor.start_program("sleep", ["sleep", "600"])
    assert not (tmp_path / "warden.log").exists()


def test_services_end_last(tmp_path: Path) -> None:
    """A service is ended only after everything else has: the others may need it to stop well."""
    with Supervisor(str(tmp_path)) as supervisor:
        for name, service in (("service", True), ("user", False)):
            start(supervisor, "end_in_order", tmp_path / f"{name}.log", service=service).wait_message(LIMIT_S)
    ended = {name: int((tmp_path / f"{name}.log").read_text().split()[1]) for name in ("service", "user")}
    assert ended["user"] < ended["service"]


def test_an_interrupt_cuts_the_grace_short(tmp_path: Path, others: list[psutil.Process]) -> None:
    """A second Ctrl-C while children are being stopped kills them at once, and is delivered after."""
    supervisor = Supervisor(str(tmp_path))
    start(supervisor, "refuse_to_end").wait_message(LIMIT_S)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        supervisor.stop_all(grace_s=60)
    timer.join()
    assert time.monotonic() - begin < 30
    assert left(others) == []


def test_what_the_owner_started_itself_is_left_alone(tmp_path: Path) -> None:
    """stop_all ends its children and their descendants, not other processes of the owner (Spark's Java)."""
    with Supervisor(str(tmp_path)) as supervisor:
        own = psutil.Popen(["sleep", "600"])
        supervisor.start_program("sleep", ["sleep", "600"])
    assert is_alive(own)
    own.kill()
    own.wait()


def test_a_dead_warden_is_replaced(tmp_path: Path) -> None:
    """When the warden dies, the next start finds out, and a new one knows all children."""
    with Supervisor(str(tmp_path)) as supervisor:
        first = start(supervisor, "announce")
        first.wait_message(LIMIT_S)
        warden = psutil.Process(supervisor.records()[0].pid)
        warden.kill()
        assert until(lambda: not is_alive(warden), LIMIT_S)
        supervisor.start_program("sleep", ["sleep", "600"])
        replaced = supervisor.records()[0].pid
        assert replaced != warden.pid
        assert first.is_running()


def test_a_target_must_be_importable_by_name(supervisor: Supervisor) -> None:
    """A target that is not module:function is refused before anything is started."""
    with pytest.raises(ValueError, match="module:function"):
        supervisor.start_python("x", "just_a_name", {}, None)
    with pytest.raises(TypeError):
        supervisor.start_python("x", f"{TARGETS}:announce", {"a": object()}, None)
    assert supervisor.children == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of another process")
def test_a_limit_of_memory_is_seen_and_lifted(supervisor: Supervisor) -> None:
    """As the child set it for itself; of one that has ended there is nothing to lift, whoever has its pid now."""
    child = start(supervisor, "limit_memory_and_wait")
    child.wait_message(20)
    assert child.memory_limit() is not None
    child.lift_memory_limit()
    assert child.memory_limit() is None
    child.kill()
    with pytest.raises(ProcessLookupError, match="has ended"):
        child.lift_memory_limit()
    assert child.memory_limit() is None
