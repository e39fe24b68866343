"""Filters and sorts the entries of a page, as its form requests. Owns the filters and orders. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from chaos.commands.serve.listed import Listed

#: The most entries on one page, which says how many more there are.
MOST_SHOWN = 300
KINDS = ("run", "sweep")
#: Order -> its sort key.
ORDERS: Mapping[str, Callable[[Listed], tuple[object, ...]]] = {
    "started": lambda entry: (entry.started,),
    "name": lambda entry: (entry.name,),
    "seed": lambda entry: (-1 if entry.seed is None else entry.seed,),
    "verdict": lambda entry: (entry.verdict,),
    "size": lambda entry: (entry.size_bytes,),
}
DEFAULT_ORDER = "started"
#: Old names of orders, which bookmarked addresses may have -> their current names.
_FORMERLY = {"state": "verdict"}


@dataclass(frozen=True, slots=True)
class Choice:
    """What is asked for; empty is all. ``text`` is looked for in place, name and details, whatever its case."""

    kind: str = ""
    verdict: str = ""
    text: str = ""
    order: str = DEFAULT_ORDER
    descending: bool = True

    @classmethod
    def of(cls, query: Mapping[str, Sequence[str]]) -> Choice:
        """The choice in a query; a value that the form cannot send is ignored."""

        def one(name: str, among: Sequence[str] | None = None) -> str:
            value = (query.get(name) or [""])[0]
            return value if among is None or value in among else ""

        order = one("order", tuple(ORDERS)) or _FORMERLY.get(one("order"), "")
        ascends = one("direction", ("ascending", "descending")) == "ascending"
        return cls(
            one("kind", KINDS), one("verdict") or one("state"), one("text").strip(), order or DEFAULT_ORDER, not ascends
        )


def chosen(entries: Sequence[Listed], choice: Choice) -> list[Listed]:
    """The requested entries in the requested order. Equal ones are sorted by their place."""
    wanted = choice.text.casefold()
    passed = [
        entry
        for entry in entries
        if choice.kind in ("", entry.kind)
        and choice.verdict in ("", entry.verdict)
        and wanted in f"{entry.place} {entry.name} {entry.details}".casefold()
    ]
    passed.sort(key=lambda entry: entry.place)
    key = ORDERS[choice.order]
    # a stable sort keeps equals in the order of their places, in both directions
    passed.sort(key=lambda entry: key(entry), reverse=choice.descending)
    return passed


def verdicts_of(entries: Sequence[Listed]) -> list[str]:
    """The verdicts that occur, for the form."""
    return sorted({entry.verdict for entry in entries})
