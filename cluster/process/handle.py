"""The owner's side of one supervised child: its identity, its messages, its signals, its end.

Owns ``Child`` and the record of it. Starting is ``cluster.process.supervisor``'s; what runs in the child is
``cluster.process.child``'s (Python) or ``cluster.process.wrapper``'s (a program).
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import psutil

from cluster.process.child import MessagePipe
from cluster.process.processes import is_alive, signal_quietly, until

ChildKind = Literal["python", "program", "warden"]

#: How long ``kill`` and ``suspend`` wait for what they ask for.
SIGNAL_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class ChildRecord:
    """What is written down of a child: enough to find it again and to end it, and how it ended.

    ``creation_time`` is psutil's, in seconds since the epoch. Of a program, ``pid`` is the program's own as soon as it
    is known, and ``wrapper_pid`` that of the small parent which watches it.
    """

    name: str
    kind: ChildKind
    pid: int
    creation_time: float
    exit_code: int | None = None
    wrapper_pid: int | None = None
    log_path: str | None = None


@dataclass(frozen=True, slots=True)
class Ways:
    """How one kind of child is dealt with: its exit status (None while it runs), closing its lifeline, its channel."""

    poll: Callable[[], int | None]
    close_lifeline: Callable[[], None]
    connection: MessagePipe | None


class Child:
    """A running or ended child. Its methods may be called from any thread, and after its end."""

    def __init__(
        self,
        name: str,
        kind: ChildKind,
        process: psutil.Process,
        ways: Ways,
        on_exit: Callable[[], None],
        *,
        log_path: str | None = None,
        service: bool = False,
    ) -> None:
        self.name = name
        self.kind = kind
        self.service = service
        self.log_path = log_path
        self._outer = process
        self._process = process
        self._ways = ways
        self._on_exit = on_exit
        self._released = False
        self._receiving = threading.Lock()
        self._polling = threading.Lock()
        self._exit_code: int | None = None
        self._creation_time = process.create_time()

    def __repr__(self) -> str:
        state = "running" if self._exit_code is None else f"exit {self._exit_code}"
        return f"Child({self.name}, pid {self.pid}, {state})"

    def stand_for(self, process: psutil.Process) -> None:
        """The wrapper has started its program: that is whom this child now stands for."""
        self._process = process
        self._creation_time = process.create_time()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def creation_time(self) -> float:
        """Seconds since the epoch, as psutil tells it."""
        return self._creation_time

    @property
    def exit_code(self) -> int | None:
        """The exit status as last seen, negative for a signal; None while it is not known to have ended."""
        return self._exit_code

    @property
    def identities(self) -> list[psutil.Process]:
        """The processes this child consists of, outermost first."""
        return [self._outer] if self._outer is self._process else [self._outer, self._process]

    def record(self) -> ChildRecord:
        return ChildRecord(
            name=self.name,
            kind=self.kind,
            pid=self.pid,
            creation_time=self.creation_time,
            exit_code=self._exit_code,
            wrapper_pid=None if self._outer is self._process else self._outer.pid,
            log_path=self.log_path,
        )

    def is_running(self) -> bool:
        """Whether it has not ended; a suspended child is running."""
        return self._settle() is None

    def is_suspended(self) -> bool:
        """Whether it is stopped by SIGSTOP."""
        try:
            return self._process.is_running() and self._process.status() == psutil.STATUS_STOPPED
        except psutil.Error:
            return False

    def lift_memory_limit(self) -> None:
        """Let its address space grow as far as it may. Linux alone. Raises ``OSError`` if it has ended."""
        try:
            if not self._process.is_running():
                raise ProcessLookupError(f"{self.name} has ended")
            _, most = self._process.rlimit(psutil.RLIMIT_AS)
            self._process.rlimit(psutil.RLIMIT_AS, (most, most))
        except psutil.Error as error:
            raise ProcessLookupError(f"{self.name} has ended") from error

    def memory_limit(self) -> int | None:
        """The size to which its address space may grow; None if it may without end, or has ended."""
        try:
            limit, _ = self._process.rlimit(psutil.RLIMIT_AS)
        except psutil.Error:
            return None
        return None if limit == psutil.RLIM_INFINITY else int(limit)

    def wait(self, timeout_s: float) -> int | None:
        """Wait for the end; the exit status (negative for a signal), or None if it still runs."""
        until(lambda: self._settle() is not None, timeout_s)
        return self._exit_code

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message (JSON values) to the child, which gets it from ``ChildChannel.receive``.

        Raises ``EOFError`` if the child has ended (or is a program: they have no channel).
        """
        if self._ways.connection is None:
            raise EOFError(f"{self.name} is a program and hears no messages")
        try:
            self._ways.connection.send_bytes(json.dumps(dict(message)).encode())
        except OSError as error:
            raise self._ended(f"; its log is {self.log_path}" if self.log_path else "") from error

    def wait_message(self, timeout_s: float) -> dict[str, Any]:
        """The next message that the child sent with ``ChildChannel.ready``.

        Raises ``TimeoutError``, or ``EOFError`` if the child ended before it sent one (or is a program: they have no
        channel). Both texts name the child and its log.
        """
        where = f"; its log is {self.log_path}" if self.log_path else ""
        connection = self._ways.connection
        if connection is None:
            raise EOFError(f"{self.name} is a program and sends no messages")
        try:
            with self._receiving:
                if not connection.poll(timeout_s):
                    raise TimeoutError(f"{self.name} sent nothing within {timeout_s:g} s{where}")
                message: dict[str, Any] = json.loads(connection.recv_bytes())
        except OSError as error:
            if isinstance(error, TimeoutError):
                raise
            raise self._ended(where) from error
        except EOFError:
            raise self._ended(where) from None
        return message

    def _ended(self, where: str) -> EOFError:
        code = self.wait(SIGNAL_TIMEOUT_S)
        how = "closed its channel" if code is None else f"ended with exit status {code}"
        return EOFError(f"{self.name} {how}{where}")

    def send_signal(self, signum: int) -> bool:
        """Send a signal to the child (to the program, not to its wrapper); False if it has ended."""
        return self.is_running() and signal_quietly(self._process, signum)

    def interrupt(self) -> None:
        """Ask it to end with SIGINT, as Locust wants it."""
        self.send_signal(signal.SIGINT)

    def terminate(self) -> None:
        """Ask it to end with SIGTERM. A suspended child sees it when it is resumed."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once with SIGKILL, also when it is suspended, and wait (at most 5 s) until it is gone."""
        self.send_signal(signal.SIGKILL)
        if self.wait(SIGNAL_TIMEOUT_S) is None:
            for process in self.identities:
                signal_quietly(process, signal.SIGKILL)
            self.wait(SIGNAL_TIMEOUT_S)

    def suspend(self) -> None:
        """Stop it with SIGSTOP and wait until it is stopped: the signal alone takes effect some time later.

        Raises ``ProcessLookupError`` if it has ended, ``TimeoutError`` if it does not stop within 5 s.
        """
        if not self.send_signal(signal.SIGSTOP):
            raise ProcessLookupError(f"{self.name} has ended and cannot be suspended")
        if not until(lambda: self.is_suspended() or not is_alive(self._process), SIGNAL_TIMEOUT_S):
            raise TimeoutError(f"{self.name} did not stop within {SIGNAL_TIMEOUT_S:g} s")
        if not self.is_running():
            raise ProcessLookupError(f"{self.name} ended while it was suspended")

    def resume(self) -> None:
        """Let a suspended child continue, and wait until it does. Does nothing to one that runs or has ended."""
        if self.send_signal(signal.SIGCONT):
            until(lambda: not self.is_suspended(), SIGNAL_TIMEOUT_S)

    def release(self) -> None:
        """Close the lifeline: the child exits within a second, unless it is suspended."""
        with self._polling:
            if not self._released:
                self._released = True
                self._ways.close_lifeline()

    def _settle(self) -> int | None:
        """Look whether it has ended; the first look that finds so closes what is ours and tells the owner."""
        with self._polling:
            if self._exit_code is not None:
                return self._exit_code
            self._exit_code = self._ways.poll()
            if self._exit_code is None:
                return None
        self._on_exit()
        return self._exit_code
