"""A toxic of the API: validated input, state and JSON. All connections of a proxy share it.

Owns the checks and their order (docs/reference/toxiproxy.md "Errors"). Does not own what a toxic does (``toxics``).
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
    """One toxic of one proxy. ``stream`` is returned as it was given; ``direction`` is its meaning."""

    name: str
    toxic_type: ToxicType
    stream: str
    direction: PipeDirection
    toxicity: float = 1.0
    attributes: dict[str, int] = field(default_factory=dict)
    #: stays zero unless the toxic acts on frames
    tally: FrameTally = field(default_factory=FrameTally)

    def to_json(self) -> dict[str, object]:
        """The toxic as JSON, with keys in Toxiproxy's order. A toxicity of 0 or 1 has no fraction."""
        toxicity = int(self.toxicity) if self.toxicity.is_integer() else self.toxicity
        return {
            "attributes": self.attributes,
            "name": self.name,
            "type": self.toxic_type.name,
            "stream": self.stream,
            "toxicity": toxicity,
        }

    def update(self, body: bytes) -> None:
        """Merge attributes and toxicity from the body of an update. Raises ``ApiError``, and then changes nothing."""
        value = decoded(body)
        found = read_struct(value, "ToxicWrapper", _UPDATE_FIELDS, package=_PACKAGE)
        attributes = self.attributes | _attributes(found, self.toxic_type)
        toxicity = go_json.float32(found["toxicity"]) if "toxicity" in found else self.toxicity
        _validate(self.toxic_type, attributes, toxicity)
        self.attributes = attributes
        self.toxicity = toxicity


@dataclass(frozen=True, slots=True)
class ToxicInput:
    """The body of a request that creates a toxic, with checked name and type, but attributes still unread.

    Reading in two steps keeps Toxiproxy's order of errors: JSON, stream, type, name taken, attributes, values.
    """

    name: str
    toxic_type: ToxicType
    stream: str
    direction: PipeDirection
    found: dict[str, go_json.Json]

    def build(self) -> Toxic:
        """Create the toxic. Raises ``ApiError`` for a wrong attribute."""
        attributes = dict.fromkeys(self.toxic_type.attributes, 0) | _attributes(self.found, self.toxic_type)
        toxicity = go_json.float32(self.found["toxicity"]) if "toxicity" in self.found else 1.0
        _validate(self.toxic_type, attributes, toxicity)
        if self.toxic_type.upstream_only and self.direction is not PipeDirection.UPSTREAM:
            raise errors.invalid(f"stream was invalid, {self.toxic_type.name} acts on requests: use upstream")
        return Toxic(self.name, self.toxic_type, self.stream, self.direction, toxicity, attributes)


def parse_toxic(body: bytes) -> ToxicInput:
    """Read the body of a request that creates a toxic. Raises ``ApiError``."""
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
    """The attributes in the body. Raises ``ApiError`` if one is not an integer."""
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
