"""What a broker does that gets no more memory: it halts, at once and with a line that says so.

``MemoryError`` comes out of any line, also between two that belong together: a batch is in the log and no one counts
it, a lock is taken and not given back. A broker that continued might acknowledge what it does not have. As after a
kill, what it had written is in the page cache, and the next start recovers its logs.

Owns the end, and the places that no caller sees: callbacks and tasks of the event loop, threads, finalizers, and what
libraries log instead of raising it. Code that catches every exception passes it to ``halt_if_out_of_memory`` first; a
test holds that all of it does. Nothing of this happens in a process that did not ask for it (``halt_without_memory``),
such as a simulation.
"""

from __future__ import annotations

import asyncio
import logging
import mmap
import os
import sys
import threading
from collections.abc import Coroutine, Generator, Iterator
from contextvars import Context
from types import TracebackType
from typing import TypeVar

logger = logging.getLogger(__name__)
_Result = TypeVar("_Result")

#: The exit status, as that of a JVM with ``-XX:+ExitOnOutOfMemoryError``.
STATUS = 3
#: What goes to standard error first: it takes no memory to write it.
LINE = b"it got no more memory, and halts\n"
#: What a thread takes to begin: its stack, and what Python and the C library reserve for it. Without the stack, the
#: system says so. Without the rest, Python 3.11 waits for that thread forever, on the event loop if that started it.
THREAD_BYTES = 16 * 2**20
#: The last frames of what failed that are logged.
_FRAMES = 6
#: Small pieces: what they leave is of use although the process gets no more from the system.
_PIECES, _PIECE_BYTES = 4096, 400

#: Of the errors behind an error; one may be its own cause.
_MOST_CAUSES = 100

_reserve: list[bytes] = []


def halt_without_memory() -> None:
    """From now on, this process halts when it is out of memory."""
    _reserve.extend(bytes(_PIECE_BYTES) for _ in range(_PIECES))
    threading.excepthook = _on_thread_error
    sys.unraisablehook = _on_unraisable
    # the first one: what halts the process leaves no traceback of something else in its log
    logging.getLogger().handlers.insert(0, _ErrorsLogged())
    # kazoo, executors and servers of the standard library start threads: there is no other place that all of them pass
    setattr(threading.Thread, "start", _start)  # noqa: B010


def halt_if_out_of_memory(error: BaseException | None) -> None:
    """Halt if this is a ``MemoryError``, or comes of one."""
    if _reserve and any(isinstance(each, MemoryError) for each in _causes(error)):
        _halt(error)


def watch(loop: asyncio.AbstractEventLoop) -> None:
    """Halt also for what fails in this loop's callbacks, and in tasks that no one awaits."""
    loop.set_exception_handler(_on_loop_error)
    loop.set_task_factory(_watched)


def _watched(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[object, object, _Result] | Generator[asyncio.Future[object] | None, None, _Result],
    context: Context | None = None,
    name: str | None = None,
    **_more: object,
) -> asyncio.Task[_Result]:
    """Up to Python 3.12 asyncio passes the context alone, and sets the name afterwards."""
    task = asyncio.Task(work, loop=loop, context=context, name=name)
    task.add_done_callback(_look)
    return task


def _look(task: asyncio.Task[object]) -> None:
    if not task.cancelled():
        # to ask by ``exception()`` would count as having heard of it: asyncio would no longer report what no one heard
        halt_if_out_of_memory(task._exception)


def _on_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    error = context.get("exception")
    halt_if_out_of_memory(error if isinstance(error, BaseException) else None)
    loop.default_exception_handler(context)


class _ErrorsLogged(logging.Handler):
    """Looks at the errors that are logged: an executor or kazoo logs what fails in a callback, and continues."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            halt_if_out_of_memory(record.exc_info[1])


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_MOST_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _halt(error: BaseException | None) -> None:
    try:
        os.write(2, LINE)
        _reserve.clear()
        logger.critical("it got no more memory, and halts: %r at %s", error, _place(error))
    finally:
        os._exit(STATUS)


def _place(error: BaseException | None) -> str:
    """Where it came from, on one line: a traceback would read the sources."""
    frames: list[str] = []
    trace: TracebackType | None = None if error is None else error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f"{os.path.basename(code.co_filename)}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return " > ".join(frames[-_FRAMES:]) or "no place that is known"


_start_thread = threading.Thread.start
_report_thread = threading.excepthook


def _start(thread: threading.Thread) -> None:
    """Start a thread only if there is memory for it."""
    try:
        # never touched, so it costs address space alone
        mmap.mmap(-1, THREAD_BYTES).close()
    except (OSError, MemoryError) as error:
        _halt(error)
    _start_thread(thread)


def _on_thread_error(arguments: threading.ExceptHookArgs) -> None:
    halt_if_out_of_memory(arguments.exc_value)
    _report_thread(arguments)


def _on_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    halt_if_out_of_memory(unraisable.exc_value)
    sys.__unraisablehook__(unraisable)
