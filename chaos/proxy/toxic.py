"""A toxic as the API knows it: validated input, its state, its JSON. Shared by all connections of a proxy.

Owns the checks and their order (docs/reference/toxiproxy.md "Errors"). Does not own what a toxic does: that is
``toxics``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.proxy import errors, go_json
from chaos.proxy.frames import FrameTally
from chaos.proxy.pipe import PipeDirection
from chaos.proxy.request_body import decoded, read_struct
from chaos.proxy.toxics import TOXIC_TYPES
from chaos.proxy.toxics.base import ToxicType

_PACKAGE = "toxics."
_FIELDS: dict[str, go_json.GoKind] = {
    "attributes": "object",
    "name": "string",
    "type": "string",
    "stream": "string",
    "toxicity": "float32",
}
_UPDATE_FIELDS: dict[str, go_json.GoKind] = {"attributes": "object", "toxicity": "float32"}


@dataclass(slots=True)
class Toxic:
    """One toxic of one proxy. ``stream`` is echoed as it was typed; ``direction`` is what it means."""

    name: str
    toxic_type: ToxicType
    stream: str
    direction: PipeDirection
    toxicity: float = 1.0
    attributes: dict[str, int] = field(default_factory=dict)
    #: counts only if it acts on frames
    tally: FrameTally = field(default_factory=FrameTally)

    def to_json(self) -> dict[str, object]:
        """The keys in Toxiproxy's order; a whole toxicity prints without a fraction."""
        toxicity = int(self.toxicity) if self.toxicity.is_integer() else self.toxicity
        return {
            "attributes": self.attributes,
            "name": self.name,
            "type": self.toxic_type.name,
            "stream": self.stream,
            "toxicity": toxicity,
        }

    def update(self, body: bytes) -> None:
        """Merge attributes and toxicity from the body of an update; nothing changes if it raises ``ApiError``."""
        value = decoded(body)
        found = read_struct(value, "ToxicWrapper", _UPDATE_FIELDS, package=_PACKAGE)
        attributes = self.attributes | _attributes(found, self.toxic_type)
        toxicity = go_json.float32(found["toxicity"]) if "toxicity" in found else self.toxicity
        _validate(self.toxic_type, attributes, toxicity)
        self.attributes = attributes
        self.toxicity = toxicity


@dataclass(frozen=True, slots=True)
class ToxicInput:
    """The body of a toxic's creation, half read: name and type are known to be good, attributes are not yet read.

    The two steps keep the order of errors: JSON, stream, type, (name taken), attributes, values.
    """

    name: str
    toxic_type: ToxicType
    stream: str
    direction: PipeDirection
    found: dict[str, go_json.Json]

    def build(self) -> Toxic:
        """The toxic. Raises ``ApiError`` on a wrong attribute."""
        attributes = dict.fromkeys(self.toxic_type.attributes, 0) | _attributes(self.found, self.toxic_type)
        toxicity = go_json.float32(self.found["toxicity"]) if "toxicity" in self.found else 1.0
        _validate(self.toxic_type, attributes, toxicity)
        if self.toxic_type.upstream_only and self.direction is not PipeDirection.UPSTREAM:
            raise errors.invalid(f"stream was invalid, {self.toxic_type.name} acts on requests: use upstream")
        return Toxic(self.name, self.toxic_type, self.stream, self.direction, toxicity, attributes)


def parse_toxic(body: bytes) -> ToxicInput:
    """Read the body of a toxic's creation. Raises ``ApiError``."""
    found = read_struct(decoded(body), "ToxicWrapper", _FIELDS, package=_PACKAGE)
    stream = go_json.text(found["stream"]) if "stream" in found else "downstream"
    if stream.lower() not in tuple(PipeDirection):
        raise errors.invalid_stream()
    type_name = go_json.text(found.get("type", ""))
    name = go_json.text(found.get("name", "")) or f"{type_name}_{stream}"
    if type_name not in TOXIC_TYPES:
        raise errors.invalid_toxic_type()
    if "/" in name:
        raise errors.invalid("name was invalid, must not contain a slash")
    return ToxicInput(name, TOXIC_TYPES[type_name], stream, PipeDirection(stream.lower()), found)


def _attributes(found: dict[str, go_json.Json], toxic_type: ToxicType) -> dict[str, int]:
    """The attributes that were given. Raises ``ApiError`` when one is no integer."""
    kinds = dict.fromkeys(toxic_type.attributes, toxic_type.integer_kind)
    try:
        given = go_json.read_struct(found.get("attributes"), toxic_type.go_name, kinds, path="attributes.")
    except go_json.GoJsonError as error:
        raise errors.bad_request_body(str(error)) from None
    return {name: go_json.integer(value) for name, value in given.items()}


def _validate(toxic_type: ToxicType, attributes: dict[str, int], toxicity: float) -> None:
    if not 0.0 <= toxicity <= 1.0:
        raise errors.invalid("toxicity was invalid, must be between 0 and 1")
    if toxic_type.certain and toxicity != 1.0:
        raise errors.invalid(f"toxicity was invalid, {toxic_type.name} takes every connection: use 1")
    problem = toxic_type.validate(attributes)
    if problem is not None:
        raise errors.invalid(problem)
