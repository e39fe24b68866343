"""The sentence below the verdict. Owns its wording. It is made from the findings, so it never contradicts them."""

from __future__ import annotations

from collections.abc import Mapping

from verifier.evidence.how_many import how_many
from verifier.verdict import CheckResult, Verdict

#: The most anomalies that the sentence names.
MOST_NAMED = 3

#: Check -> the words for one of its anomalies, and for several. A check that is not listed appears under its name.
_NOUNS: Mapping[str, tuple[str, str]] = {
    "lost-write": ("acknowledged record lost", "acknowledged records lost"),
    "duplicate": ("record read twice", "records read twice"),
    "log-duplicate": ("record stored twice", "records stored twice"),
    "unseen": ("stored record not handed to a final reader", "stored records not handed to a final reader"),
    "phantom": ("record that no producer wrote", "records that no producer wrote"),
    "log-corrupt": ("place with damaged bytes", "places with damaged bytes"),
    "log-divergence": ("batch that differs between replicas", "batches that differ between replicas"),
    "log-gap": ("gap in the log", "gaps in the log"),
    "log-reorder": ("record or batch out of order in the log", "records or batches out of order in the log"),
    "nonmonotonic-send": ("record acknowledged out of order", "records acknowledged out of order"),
    "inconsistent-offsets": ("offset with two values", "offsets with two values"),
}
#: The beginning of a reason, up to its first colon, is quoted if it has at most this many characters.
LONGEST_REASON = 60


def headline(verdict: Verdict) -> str:
    """The findings in one sentence."""
    if verdict.verdict == "invalid":
        found = _named(verdict, forbidden=True)
        return f"The cluster broke a promise that its settings make: {found}." if found else _UNEXPLAINED
    if verdict.verdict == "unknown":
        allowed = _allowed(verdict)
        there = f" The evidence that there is shows {allowed}." if allowed else ""
        return f"This run cannot be called valid: the evidence is not sufficient.{there}"
    allowed = _allowed(verdict)
    if allowed:
        return f"{_sentence(allowed)} Nothing that the settings forbid was found, and the evidence is complete."
    if verdict.narrowed:
        unasked = sum(check.unasked is not None for check in verdict.checks.values())
        return (
            "Nothing acknowledged was lost, repeated, reordered or damaged, and the evidence for that is complete; "
            f"{how_many(unasked, 'check was', 'checks were')} not asked, because gapless did not start the cluster."
        )
    return "Nothing acknowledged was lost, repeated, reordered or damaged, and the evidence is complete."


_UNEXPLAINED = "The cluster broke a promise that its settings make."


def counted(check: str, count: int) -> str:
    """``889 acknowledged records lost``."""
    one, several = _NOUNS.get(check, (check, check))
    return f"{count:,} {one if count == 1 else several}"


def because(reason: str) -> str:
    """The reason of an allowance as a relative clause, such as ``which acks=1 allows``."""
    head, colon, _ = reason.partition(": ")
    if not colon or len(head) > LONGEST_REASON:
        return "which these settings allow"
    return f"which {head} allows" if "=" in head and " " not in head else f"which is allowed because {head}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _allowed(verdict: Verdict) -> str:
    """The allowed anomalies: each leading one, with the reason that applies to most of them."""
    leading = [check for check in verdict.checks.values() if check.allowed_count and check.explained_by is None]
    parts = [
        f"{counted(each.name, each.allowed_count)}, {because(_main_reason(each))}" for each in leading[:MOST_NAMED]
    ]
    return _joined(parts, len(leading))


def _main_reason(check: CheckResult) -> str:
    weights: dict[str, int] = {}
    for example in check.examples:
        if example.allowed:
            weights[example.allowed] = weights.get(example.allowed, 0) + example.found.count
    return max(weights, key=lambda reason: weights[reason], default="")


def _named(verdict: Verdict, *, forbidden: bool) -> str:
    leading = [check for name, check in verdict.checks.items() if check.forbidden_count and not verdict.leader(name)]
    return _joined([counted(each.name, each.forbidden_count) for each in leading[:MOST_NAMED]], len(leading))


def _joined(parts: list[str], total: int) -> str:
    more = f"; and {how_many(total - len(parts), 'more kind', 'more kinds')} of anomaly" if total > len(parts) else ""
    return "; ".join(parts) + more
