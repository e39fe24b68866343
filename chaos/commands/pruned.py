"""A stored run whose brokers' data was removed (``--keep``): what can still be said about it. Judges nothing.

What the replicas held is gone, so there is no second verdict: the run is ``unknown`` now, whatever its record says.
What is left is compared with the seal, and the record stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.commands.verdict_lines import say_lines
from verifier.evidence import seal
from verifier.evidence.run_directory import RunDirectory, read_json
from verifier.telling.result_lines import result_lines
from verifier.verdict import undecidable

MOST_NAMED = 6


def is_pruned(directory: RunDirectory) -> bool:
    """Whether the run came to its end, and no broker has its data anymore.

    A run that was broken off may never have had any: it is judged like all others. Raises ``OSError``, ``ValueError``.
    """
    brokers = directory.broker_ids()
    if not brokers or any((directory.node(each) / "data").is_dir() for each in brokers):
        return False
    return directory.read_run().get("ended") is not None


def say_pruned(directory: RunDirectory, *, as_json: bool, more: Mapping[str, Any] | None = None) -> str:
    """Print the lines that a judgement ends with, and write nothing. Returns the verdict, which is ``unknown``.

    The object (``as_json``) has the recorded verdict as ``recorded``, None without one, and whether what is left is
    what was sealed as ``unaltered``.
    """
    run, recorded = directory.read_run(), _recorded(directory)
    problem = _altered(directory, recorded)
    reasons = (
        "not judged again: the replicas' data was removed after the run (--keep all keeps it)",
        _told(recorded, run),
        problem or "what is left of the evidence is as it was sealed",
    )
    verdict = undecidable(*reasons).to_json()
    lines = result_lines(verdict, seed=run["seed"], report=str(directory.report_html), repro=run["repro"])
    whole = {**verdict, "run_dir": str(directory.path), "seed": run["seed"], "repro": run["repro"]}
    whole |= {"recorded": recorded.get("verdict"), "unaltered": problem is None, **(more or {})}
    return say_lines(lines, whole, as_json=as_json)


def _recorded(directory: RunDirectory) -> dict[str, Any]:
    """The recorded verdict; empty if it is missing or cannot be read."""
    try:
        return read_json(directory.verdict_json)
    except (OSError, ValueError):
        return {}


def _told(recorded: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    if "verdict" not in recorded:
        return "no verdict is recorded: verdict.json is absent or cannot be read"
    when = f" at {run['ended']}" if run.get("ended") else ""
    try:
        # as the RESULT line of that time had it: what was found and allowed belongs to the verdict
        found = result_lines(recorded, repro="")[0].removeprefix(f"RESULT {recorded['verdict']} ")
    except (KeyError, TypeError, AttributeError, ValueError):
        found = "its verdict.json says nothing else that can be read"
    return f"it was {recorded['verdict']} when it was judged{when}: {found}"


def _altered(directory: RunDirectory, recorded: Mapping[str, Any]) -> str | None:
    """What is not as it was sealed, in one line; None if all of it is."""
    try:
        sealed = seal.read(directory)
        differences = seal.compare(directory, sealed)
    except FileNotFoundError:
        return "cannot tell whether what is left was altered: it has no seal.json"
    except (OSError, ValueError) as error:
        return f"cannot tell whether what is left was altered: {error}"
    gone = tuple(f"nodes/{each}/data/" for each in directory.broker_ids())
    told = []
    for what, word in (("missing", "removed"), ("changed", "changed"), ("new", "new")):
        names = [each.path for each in differences if each.what == what and not _was_pruned(each, gone)]
        if names:
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            told.append(f"{word}: {', '.join(names[:MOST_NAMED])}{more}")
    if told:
        return f"what is left is not as it was sealed; {'; '.join(told)}"
    before = recorded.get("stats", {}).get("seal")
    if before is not None and before != sealed.digest:
        return "the seal is not the one that the recorded verdict was made with: verdict.json or seal.json was replaced"
    return None


def _was_pruned(difference: seal.Difference, gone: tuple[str, ...]) -> bool:
    return difference.what == "missing" and difference.path.startswith(gone)
