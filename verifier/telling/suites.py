"""JUnit XML of a verdict, of a run's or a history's: one suite, one case per check. Owns the mapping to JUnit's words.

``<failure>`` is an anomaly that counts, ``<error>`` a check whose answer is unknown (never skipped, which would read as
harmless), ``<skipped>`` one that is not asked of a cluster that others started. One more case, ``evidence``, carries
what keeps the verdict from being valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

from cluster.process.one_line import printable
from verifier.evidence.texts import fit_for_xml
from verifier.telling.reasons import by_reason
from verifier.verdict import CheckResult, Example, Verdict


def _event(example: Example) -> str:
    return example.found.event or ""


@dataclass(frozen=True, slots=True)
class Suite:
    """What differs between suites: names, the words for each anomaly, and why a check without an answer has none.

    ``properties`` are (name, value); ``attributes`` are more of the suite's own. ``event`` describes what excuses an
    example, if anything does. ``seconds`` is how long what is judged took; the case ``evidence`` has them, since all
    checks are made at once and none has a time of its own.
    """

    name: str
    classname: str
    summaries: Mapping[str, str]
    unanswered: str
    properties: Iterable[tuple[str, str]]
    attributes: Mapping[str, str] = field(default_factory=dict)
    event: Callable[[Example], str] = _event
    seconds: float = 0.0


def suite_xml(suite: Suite, verdict: Verdict) -> str:
    """The document as text; what XML cannot hold is replaced."""
    cases = [_case(suite, check) for check in verdict.checks.values()]
    cases.append(_evidence(suite, verdict))
    element = _element(
        "testsuite",
        name=suite.name,
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors=str(sum(case.find("error") is not None for case in cases)),
        skipped=str(sum(case.find("skipped") is not None for case in cases)),
        time=f"{suite.seconds:g}",
        **suite.attributes,
    )
    properties = ET.SubElement(element, "properties")
    properties.extend(_element("property", name=name, value=value) for name, value in suite.properties)
    element.extend(cases)
    ET.indent(element)
    return ET.tostring(element, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: Suite, check: CheckResult) -> ET.Element:
    case = _element("testcase", classname=suite.classname, name=check.name, time="0")
    text = "\n".join(_line(example.text) for example in check.examples)
    if check.state == "invalid":
        message = f"{suite.summaries[check.name]} ({check.forbidden_count})"
        case.append(_element("failure", text, message=message, type=check.name))
    elif check.unasked is not None:
        case.append(_element("skipped", message=check.unasked))
    elif check.idle_text is not None:
        case.append(_element("skipped", message=check.idle_text))
    elif check.state == "unknown":
        case.append(_element("error", text, message=check.failure or suite.unanswered, type="unknown"))
    elif check.allowed_count:
        case.append(_element("system-out", "\n".join([*_allowed(suite, check), text])))
    return case


def _allowed(suite: Suite, check: CheckResult) -> Iterator[str]:
    """Each reason once, and below it its events with their counts."""
    for reason, examples in by_reason(check).items():
        yield f"{sum(each.found.count for each in examples)} allowed: {_line(reason)}"
        for each in examples:
            event = suite.event(each)
            if event:
                yield f"- {each.found.count}: {_line(event)}"


def _evidence(suite: Suite, verdict: Verdict) -> ET.Element:
    case = _element("testcase", classname=suite.classname, name="evidence", time=f"{suite.seconds:g}")
    if verdict.doubts:
        text = "\n".join(map(_line, verdict.doubts))
        case.append(_element("error", text, message=verdict.doubts[0], type="unknown"))
    return case


def _line(text: str) -> str:
    """One line, which XML can hold: no example, reason or name adds lines that look like others."""
    return printable(fit_for_xml(text))


def _element(tag: str, text: str | None = None, **attributes: str) -> ET.Element:
    element = ET.Element(tag, {name: _line(value) for name, value in attributes.items()})
    element.text = None if text is None else fit_for_xml(text)
    return element
