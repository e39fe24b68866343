"""``summary.md``: the run on one page of Markdown, for a CI step summary. Owns its wording and its greatest length.

Also formats some figures in words that the HTML report shares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from verifier.anomalies import BY_NAME
from verifier.evidence.how_many import how_many
from verifier.evidence.run_model import RunModel
from verifier.evidence.units import seconds_of_ms
from verifier.figures.recoveries import MB
from verifier.figures.standstills import standstill_text
from verifier.report.occasions import Occasions
from verifier.report.words import headline
from verifier.telling.markdown import anomaly, code, inline, reasons, table
from verifier.telling.reasons import by_reason
from verifier.transactions.figures import figures_text
from verifier.verdict import UNCOUNTED, CheckResult, Verdict
from verifier.witness.effectiveness import LATE, NOT_OVER, Injected

#: The most characters. GitHub cuts a step summary at 1024 kB, and a page for people must be far shorter.
LONGEST = 60_000

#: The most partitions that are named for one anomaly: those with the most anomalies.
MOST_PLACES = 24

#: The most events that are listed under one reason.
MOST_EVENTS = 40


def summary_md(
    run: RunModel,
    injected: Sequence[Injected],
    verdict: Verdict,
    occasions: Occasions | None = None,
    reached: Mapping[str, str] | None = None,
) -> str:
    """The page as text. ``occasions`` describes the events that excuse anomalies.

    ``reached`` has the contents of the run's ``reached.json``.
    """
    lines = _lines(run, injected, verdict, occasions or Occasions.of(run, injected), reached or {})
    text = "\n".join(lines) + "\n"
    return text if len(text) <= LONGEST else text[:LONGEST] + "\n\n(cut; the whole is in report.html)\n"


def _lines(
    run: RunModel,
    injected: Sequence[Injected],
    verdict: Verdict,
    occasions: Occasions,
    reached: Mapping[str, str],
) -> Iterator[str]:
    yield f"# {verdict.verdict}: {inline(run.name)}, seed {run.seed}"
    yield ""
    yield inline(headline(verdict))
    yield ""
    yield from reasons(verdict)
    yield from table(("", ""), _numbers(run, injected, verdict, occasions))
    forbidden = [check for check in verdict.checks.values() if check.forbidden_count]
    if forbidden:
        yield "## Anomalies"
        yield ""
        for check in forbidden:
            yield from _anomaly(check)
    allowed = [check for check in verdict.checks.values() if check.allowed_count]
    if allowed:
        yield "## Allowed by the settings"
        yield ""
        for check in allowed:
            yield from _allowed(check, occasions)
        yield ""
    if injected:
        yield "## Faults"
        yield ""
        yield from table(("fault", "target", "bit"), [(inline(e.fault), inline(e.target), _bit(e)) for e in injected])
    if reached:
        yield "## Reached"
        yield ""
        yield from table(("what", "how much"), [(inline(name), inline(text)) for name, text in reached.items()])
    yield f"Repeat the schedule (not the interleaving): {code(run.repro)}" if run.repro else ""


def _numbers(
    run: RunModel, injected: Sequence[Injected], verdict: Verdict, occasions: Occasions
) -> list[tuple[str, str]]:
    stats, availability = verdict.stats, verdict.availability
    still = stats.get("stable_offsets")
    longest, first = availability.get("longest_gap_ms"), occasions.first_ack_ms
    return [
        ("acknowledged", _counted(stats, "acked")),
        ("read by final readers", _counted(stats, "read")),
        ("outcome unknown to the client", _counted(stats, "unknown")),
        *([("deleted by retention or DeleteRecords", f"{stats['deleted']:,}")] if stats.get("deleted") else []),
        ("faults that bit", inline(f"{bit_of(run, injected)}{_by_kind(stats)}")),
        *([] if first is None else [("first acknowledgement", f"{first:,.0f} ms after {occasions.since}")]),
        ("longest time without an acknowledgement since the first", "-" if longest is None else f"{longest:,.0f} ms"),
        ("recoveries after kills", recovery_text(availability.get("recoveries") or {})),
        *([("consumer groups", inline(groups_text(stats["groups"])))] if stats.get("groups") else []),
        *([("transactions", figures_text(stats["transactions"]))] if stats.get("transactions") else []),
        *([("longest standstill of a last stable offset", inline(standstill_text(still)))] if still else []),
        *([("brokers that stood still", inline(stood_still))] if (stood_still := stood_still_text(run)) else []),
        ("acks, idempotence", inline(f"{run.settings.acks}, {'on' if run.settings.idempotence else 'off'}")),
        ("defects", inline(", ".join(f"{each.name}:{each.probability:g}" for each in run.defects)) or "none"),
    ]


def _counted(stats: Mapping[str, Any], name: str) -> str:
    return f"{stats[name]:,}" if name in stats else UNCOUNTED


def bit_of(run: RunModel, injected: Sequence[Injected]) -> str:
    """How many injections took effect, of how many, and how many were planned if that number differs."""
    planned = run.evidence.planned_faults
    more = f" ({planned} planned)" if planned != len(injected) else ""
    return f"{sum(each.effective for each in injected)} of {len(injected)}{more}"


def _by_kind(stats: Mapping[str, Any]) -> str:
    kinds = (stats.get("faults") or {}).get("kinds") or {}
    counted = ", ".join(f"{name} {count['effective']}/{count['injected']}" for name, count in kinds.items())
    return f" ({counted})" if counted else ""


def recovery_text(found: Mapping[str, Any]) -> str:
    """The number of recoveries and the slowest one, as one line; ``-`` if there were none."""
    if not found.get("count"):
        return "-"
    ratio = found.get("worst_s_per_100_mb")
    over = (
        f"; at worst {ratio:,.2f} s for each 100 MB of log that was not synced, "
        f"from a recovery over {found['worst_unflushed_bytes'] / MB:,.1f} MB"
        if ratio
        else ""
    )
    return f"{found['count']}, the longest {found['longest_ms']:,.0f} ms{over}"


def groups_text(groups: Mapping[str, Any]) -> str:
    """The figures of each group, as one line."""
    told = [
        f"{name}: {each['delivered']:,} delivered, {each['delivered_again']:,} of them again; "
        f"{how_many(each['resumed'], 'time')} a member began to read a partition"
        for name, each in sorted(groups.items())
    ]
    return "; ".join(told)


def stood_still_text(run: RunModel) -> str:
    """The brokers whose event loop stood still for more than half a ZooKeeper session, as one line; empty if none did.

    The run records the longest standstill since each broker's last start; earlier ones are unknown.
    """
    limit_s = seconds_of_ms(run.settings.session_timeout_ms) / 2
    slow = {name: lag_s for name, lag_s in run.harness.event_loop_lag_s.items() if name.startswith("broker-")}
    told = [f"{name} for {lag_s:,.2f} s" for name, lag_s in sorted(slow.items()) if lag_s > limit_s]
    return f"{', '.join(told)} (half a ZooKeeper session is {limit_s:,.2f} s)" if told else ""


def _anomaly(check: CheckResult) -> Iterator[str]:
    examples = (inline(example.text) for example in check.examples if not example.allowed)
    yield from anomaly(check, check.forbidden_count, BY_NAME[check.name].summary, examples)
    shown, more = places(check)
    if shown:
        named = ", ".join(f"{inline(name)} ({count:,})" for name, count in shown.items())
        yield f"  - partitions: {named}{f', and {more:,} more' if more else ''}"
    yield ""


def places(check: CheckResult) -> tuple[dict[str, int], int]:
    """The partitions with forbidden anomalies of a check and their counts, and the number of partitions left out.

    Those with the most anomalies are chosen, and sorted by name. The counts come from the examples, because there is
    one for each partition and cause.
    """
    counts: dict[str, int] = {}
    for example in check.examples:
        if not example.allowed:
            name = f"{example.found.topic}-{example.found.partition}"
            counts[name] = counts.get(name, 0) + example.found.count
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_PLACES]
    return dict(sorted(most)), len(counts) - len(most)


def _allowed(check: CheckResult, occasions: Occasions) -> Iterator[str]:
    """The lines about allowed anomalies: each reason once, followed by the events that excuse the most anomalies."""
    for reason, examples in by_reason(check).items():
        yield f"- **{check.name}** ({sum(each.found.count for each in examples):,}): {inline(reason)}"
        told = [each for each in examples if each.found.event]
        told.sort(key=lambda each: -each.found.count)
        for each in told[:MOST_EVENTS]:
            yield f"  - {each.found.count:,}: {inline(occasions.words(each.found))}"
        if len(told) > MOST_EVENTS:
            yield f"  - and {how_many(len(told) - MOST_EVENTS, 'more event')}: see verdict.json"


def _bit(injected: Injected) -> str:
    told = "skipped" if injected.skipped else "yes" if injected.effective else "no"
    how = next((how for how in (NOT_OVER, LATE) if injected.effect.endswith(how)), None)
    return told if how is None else f"{told}, {how}"
