"""The picture of an anomaly: offset by offset, what was acknowledged, what each replica has, and what readers received.

Owns the columns, the colors and the bounds. Pure: turns a ``SpotView`` into rows and columns, which the template draws.
Each value that the columns disagree about, or that occurs twice, has its own color everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verifier import explain
from verifier.report.headers import differences, header_table
from verifier.surroundings.model import Spot, SpotView, Stored, StoredSpan, ToldSpan

#: The number of colors of values. After that many values, the colors repeat.
COLORS = 8
#: The most readers with a column, and the most rows.
MOST_READERS = 6
MOST_ROWS = 60

NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class OffsetCell:
    """The content of one column at one offset. ``values`` has (name, color) pairs.

    ``kind`` is a color (``c0`` and so on), ``none``, ``past`` (the offset is after the end) or empty. ``begins``: a
    batch begins here, and ``note`` has its leader epoch. If the batch is ``wrong``, ``note`` says what is wrong.
    """

    values: tuple[tuple[str, str], ...]
    title: str = ""
    begins: bool = False
    note: str = ""
    kind: str = ""
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """One offset. ``offset`` None marks a gap between windows. ``place``: the anomaly is at this offset."""

    offset: int | None
    place: bool
    cells: tuple[OffsetCell, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One column. ``kind`` is ``told`` (acknowledgements), ``leader``, ``replica`` or ``reader``."""

    title: str
    small: str
    kind: str


def picture(place: SpotView) -> dict[str, Any]:
    """Everything that the template draws about one place."""
    columns, says = _columns(place)
    offsets = list(_offsets(place.spot))[:MOST_ROWS]
    colors = _colors(place.spot, columns, says, [at for at in offsets if at is not None])
    rows = [_row(at, place.spot, says, colors) for at in offsets]
    return {
        "columns": columns,
        "rows": rows,
        "at_ns": place.at_ns,
        "notes": [f"broker {each.broker}: {each.note}" for each in place.stored if each.note] + list(place.notes),
        "tails": [each.tail for each in place.stored if each.tail],
        "headers": header_table(place),
        "differences": differences(place),
        "logs": place.logs,
        "colored": bool(colors),
        "batches": any(each.batches for each in place.stored),
    }


def _name(span: StoredSpan, sequence: int) -> str:
    """The displayed name of a stored value. A damaged or foreign value never has the name of an intact one."""
    if span.stream is None:
        return span.problem or "?"
    name = explain.value_name(span.stream, sequence)
    return {"payload": f"damaged {name}", "run": f"other run's {name}"}.get(span.problem or "", name)


#: Offset -> the cell there, of one column. Its values are (name, problem) until ``_row`` replaces problems by colors.
_Cells = dict[int, OffsetCell]


def _columns(place: SpotView) -> tuple[list[Column], list[_Cells]]:
    """The columns of a picture, and for each column its cells."""
    columns: list[Column] = []
    says: list[_Cells] = []
    acked = [each for each in place.told if each.how == "acknowledged" and each.offset is not None]
    columns.append(Column("acknowledged", "to producers", "told"))
    says.append(_told_cells(acked, place.spot))
    for stored in place.stored:
        columns.append(Column(f"broker {stored.broker}", "leader" if stored.leader else "replica",
                              "leader" if stored.leader else "replica"))  # fmt: skip
        says.append(_stored_cells(stored, place.spot))
    readers: dict[tuple[bool, str], list[ToldSpan]] = defaultdict(list)
    for each in place.told:
        if each.how == "read" and each.offset is not None:
            readers[each.final, each.process].append(each)
    for (final, process), told in sorted(readers.items())[:MOST_READERS]:
        columns.append(Column(process, "read at the end" if final else "read live", "reader"))
        says.append(_told_cells(told, place.spot))
    return columns, says


def _told_cells(told: Sequence[ToldSpan], spot: Spot) -> _Cells:
    found: dict[int, dict[str, list[str]]] = defaultdict(dict)
    for each in told:
        for step in range(min(each.values, 10_000)):
            at = (each.offset or 0) + step
            if spot.holds(at, at):
                name = (
                    each.error or "not ours"
                    if each.stream is None
                    else explain.value_name(each.stream, each.sequence + step)
                )
                found[at].setdefault(name, []).append(each.process)
    return {
        at: OffsetCell(
            tuple((name, "") for name in names),
            "; ".join(f"{name}: {', '.join(sorted(set(who)))}" for name, who in names.items()),
        )
        for at, names in found.items()
    }  # fmt: skip


def _stored_cells(stored: Stored, spot: Spot) -> _Cells:
    found: _Cells = {}
    for batch in stored.batches:
        fields = batch.fields
        names: dict[int, tuple[str, str]] = {}
        for span in batch.spans:
            for at in range(max(span.first_offset, spot.windows[0][0]), min(span.last_offset, spot.windows[-1][1]) + 1):
                sequence = span.sequence + at - span.first_offset
                names[at] = _name(span, sequence), span.problem or ""
        control = " (control)" if fields["attributes"] & 0x20 else ""
        title = (
            f"batch {batch.base_offset}..{batch.last_offset}{control}, leader epoch {fields['leader_epoch']}, "
            f"producer {fields['producer_id']}/{fields['producer_epoch']}, base sequence {fields['base_sequence']}, "
            f"{batch.file} @ {batch.position}"
        )
        wrong = "" if batch.crc_ok and not batch.problem else "bad CRC" if not batch.crc_ok else "damaged"
        for at in range(batch.base_offset, min(batch.last_offset, spot.windows[-1][1]) + 1):
            if not spot.holds(at, at):
                continue
            named = names.get(at, ("control" if control else "batch", ""))
            begins = at == batch.base_offset
            earlier = found.get(at)
            # a broken log may have an offset twice: both values are shown
            values = (*(earlier.values if earlier else ()), named)
            note = wrong or (f"e{fields['leader_epoch']}" if begins else "")
            found[at] = OffsetCell(
                values, f"{earlier.title}; {title}" if earlier else title, begins, note, wrong=bool(wrong)
            )
    return found


def _offsets(spot: Spot) -> Iterator[int | None]:
    """The offset of each row: all offsets of the windows, with None between two windows."""
    for index, (low, high) in enumerate(spot.windows):
        if index:
            yield None
        yield from range(low, high + 1)


def _colors(spot: Spot, columns: Sequence[Column], says: Sequence[_Cells], offsets: Sequence[int]) -> dict[str, str]:
    """A color for each value that columns disagree about, that occurs at two offsets, or that is the anomaly's own."""
    where: dict[str, set[int]] = defaultdict(set)
    special: dict[str, None] = {}
    if spot.found.stream is not None and spot.found.sequence is not None:
        special[explain.value_name(spot.found.stream, spot.found.sequence)] = None
    for at in offsets:
        here: dict[str, None] = {}
        for each in says:
            for name, _ in each[at].values if at in each else ():
                here[name] = None
                where[name].add(at)
        replicas = [each for column, each in zip(columns, says, strict=True) if column.kind in ("leader", "replica")]
        missing = here and any(at not in each for each in replicas) and any(at in each for each in replicas)
        if len(here) > 1 or missing:
            special |= here
    special |= dict.fromkeys(name for name, places in where.items() if len(places) > 1 and name.startswith("s"))
    seen = [name for name in special if name in where]
    return {name: f"c{index % COLORS}" for index, name in enumerate(seen)}


def _row(at: int | None, spot: Spot, says: Sequence[_Cells], colors: Mapping[str, str]) -> OffsetRow:
    if at is None:
        return OffsetRow(None, place=False, cells=())
    cells = []
    for each in says:
        cell = each.get(at)
        if cell is None:
            past = not each or at > max(each)
            cells.append(OffsetCell((), kind="past" if past else "none", title="" if past else NOTHING))
        else:
            values = tuple((name, colors.get(name, "")) for name, _ in cell.values)
            cells.append(
                OffsetCell(
                    values, cell.title, cell.begins, cell.note, values[0][1] if len(values) == 1 else "", cell.wrong
                )
            )
    return OffsetRow(at, at in spot.places, tuple(cells))
