"""What a run of the fuzzer has proven: how often each kind of file was tampered with in which way, and what came of it.

Owns the table. A combination that was never drawn is listed, since nothing is known about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.evidence.fuzzer import OUTCOMES, Outcome
from tests.evidence.kinds import KINDS, OPERATIONS, UNITS

_SHORT = {"valid_equivalent": "equivalent", "falsely_valid": "false+", "falsely_invalid": "false-"}


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A line for each kind of file and unit: how often by operation (``-``: it makes no sense there), and outcomes."""
    drawn = Counter((each.tampering.kind, each.tampering.cell) for each in outcomes)
    came = Counter((each.tampering.kind, each.tampering.cell[0], each.what) for each in outcomes)
    heads = "".join(f"{operation:>8s}" for operation in OPERATIONS)
    yield f"{'kind of file':28s} {'unit':5s} {heads}  | " + " ".join(
        f"{_SHORT.get(what, what):>10s}" for what in OUTCOMES
    )
    for kind in KINDS:
        for unit in UNITS:
            cells = [(unit, operation) for operation in OPERATIONS]
            if not any(cell in kind.ways for cell in cells):
                continue
            counts = "".join(f"{drawn[kind.name, cell] if cell in kind.ways else '-':>8}" for cell in cells)
            results = " ".join(f"{came[kind.name, unit, what]:10d}" for what in OUTCOMES)
            yield f"{kind.name:28s} {unit:5s} {counts}  | {results}"
    every = [(kind.name, cell) for kind in KINDS for cell in kind.ways]
    never = [f"{name}: {unit} {operation}" for name, (unit, operation) in every if not drawn[name, (unit, operation)]]
    yield f"{len(every) - len(never)} of {len(every)} combinations were drawn" + (
        f"; never: {', '.join(never)}" if 0 < len(never) <= 40 else ""
    )
