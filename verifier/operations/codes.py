"""Codes for keys, values and processes that are not plain integers, so that columns of integers hold them all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Integers of a smaller size stand for themselves; everything else has a code below ``-PLAIN``.
PLAIN = 2**62


class Names:
    """Names to codes and back. Equal names have equal codes."""

    def __init__(self) -> None:
        self._codes: dict[object, int] = {}
        self._names: list[object] = []

    def code(self, value: object, what: str = "name") -> int:
        """The code of a name. Raises ``ValueError``, which says ``what`` it is, for neither integer nor string."""
        if type(value) is int and -PLAIN < value < PLAIN:
            return value
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError(f"the {what} {value!r:.60} is neither an integer nor a string")
        code = self._codes.get(value)
        if code is None:
            code = self._codes[value] = -PLAIN - 1 - len(self._names)
            self._names.append(value)
        return code

    def name(self, code: int) -> int | str:
        """What has this code."""
        if code > -PLAIN:
            return int(code)
        found = self._names[-PLAIN - 1 - int(code)]
        return found if isinstance(found, int) else str(found)

    def names(self, codes: NDArray[np.int64]) -> list[int | str]:
        """The same for many."""
        return [self.name(code) for code in codes.tolist()]

    def learn(self, others: Names) -> list[int]:
        """The codes of all that has one in ``others``, in the order of the codes there."""
        return [self.code(name) for name in others._names]

    def __repr__(self) -> str:
        return f"Names({len(self._names)})"
