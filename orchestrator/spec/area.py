"""The ``area`` of a topology: the rectangle that nodes move in."""

from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from orchestrator.spec.problems import shown, unusable
from orchestrator.spec.units import LENGTH


class Area(NamedTuple):
    """The rectangle that nodes move in, from (0, 0), in metres."""

    width: float
    height: float

    def __str__(self) -> str:
        width, height = (repr(side).removesuffix(".0") for side in self)
        return f"{width} m x {height} m"


def _read_area(value: Any) -> Area:
    parts = value.replace("×", "x").split("x") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or len(parts) != 2:
        raise unusable(f"{shown(value)} is not an area", "write it like 1200 m x 1200 m or [1200 m, 1200 m]")
    side = LENGTH.positive()
    return Area(side.read(parts[0]), side.read(parts[1]))


AreaField = Annotated[
    Area,
    BeforeValidator(_read_area),
    PlainSerializer(str),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^[^x×]+[x×][^x×]+$"},
                {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": ["number", "string"]}},
            ],
            "description": "Width x height of the rectangle the nodes live in",
            "examples": ["1200 m x 1200 m"],
        }
    ),
]
