"""Integer codes for the names of keys, values and processes, so that integer columns can hold all of them.

Owns the codes; does not know what a name is for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: An integer whose absolute value is smaller is its own code. Every other name has a code below ``-PLAIN``.
PLAIN = 2**62


class Names:
    """Maps names to codes, and codes to names. Equal names have equal codes."""

    def __init__(self) -> None:
        self._codes: dict[object, int] = {}
        self._names: list[object] = []

    def code(self, value: object, what: str = "name") -> int:
        """The code of a name. Raises ``ValueError`` (about the ``what``) unless it is an integer or a string."""
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
        """The name with this code."""
        if code > -PLAIN:
            return int(code)
        found = self._names[-PLAIN - 1 - int(code)]
        return found if isinstance(found, int) else str(found)

    def names(self, codes: NDArray[np.int64]) -> list[int | str]:
        """The names with these codes."""
        return [self.name(code) for code in codes.tolist()]

    def learn(self, others: Names) -> list[int]:
        """Adds the coded names of ``others``. Returns their codes here, in the order of their codes there."""
        return [self.code(name) for name in others._names]

    def __repr__(self) -> str:
        return f"Names({len(self._names)})"
