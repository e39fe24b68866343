"""What a piece of code costs, without a clock: how many steps the interpreter takes.

Owns the count, which no load of the machine changes. Does not own what is too much, nor what happens within C code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps_of(action: Callable[[], object]) -> int:
    """Bytecode instructions that ``action`` executes, with those of all that it calls."""
    steps = 0

    def count(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return count

    former = sys.gettrace()
    sys.settrace(count)
    try:
        action()
    finally:
        sys.settrace(former)
    return steps
