"""A pair of nodes, ``between: [n01, n02]``, as sections about links state it."""

from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from orchestrator.spec.base import NAME_PATTERN, check_name
from orchestrator.spec.problems import shown, unusable


def _read_ends(value: Any) -> tuple[str, str]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise unusable(f"{shown(value)} is not a pair of nodes", "for example between: [n01, n02]")
    first, second = (check_name(each) for each in value)
    return first, second


Ends = Annotated[
    tuple[str, str],
    BeforeValidator(_read_ends),
    WithJsonSchema(
        {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "items": {"type": "string", "pattern": f"^{NAME_PATTERN}$"},
        }
    ),
]
