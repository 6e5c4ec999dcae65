"""Defines the base class of all file sections. Sections are frozen and refuse unknown keys. Also defines
``Name``, whose values can be used in file names and labels.
"""

import re
from typing import Annotated, Any, ClassVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    WithJsonSchema,
)
from pydantic_core import CoreSchema

from orchestrator.spec.problems import Place, shown, unusable

NAME_PATTERN = "[a-z0-9][a-z0-9_-]{0,62}"


class Section(BaseModel):
    """One mapping of a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    other_names: ClassVar[dict[str, str]] = {}
    """Other tools' names for keys, for hints; they are not accepted."""

    @classmethod
    def known_keys(cls) -> list[str]:
        """Returns the keys that this mapping may have, for hints."""
        return list(cls.model_fields)

    @classmethod
    def completed(cls, document: Any) -> Any:
        """Returns the document with what follows from the rest of it and is not written out."""
        return document

    @classmethod
    def as_validated(cls, document: Any) -> Any:
        """Returns the document as the reshaping validators leave it."""
        return document

    @classmethod
    def place_in(cls, document: Any, place: Place) -> Place:
        """Turns a place in the reshaped document into the place in ``document`` as written."""
        return place


class ValidatedAs:
    """Annotation for a field whose type a registry decides, so that the type checker cannot see it."""

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(self.annotation)


def check_name(value: Any) -> str:
    if not isinstance(value, str):
        hint = f'put it in quotes: "{value}"' if isinstance(value, int | float) else ""
        raise unusable(f"{shown(value)} is not text", hint)
    if re.fullmatch(NAME_PATTERN, value):
        return value
    fitted = re.sub(r"[^a-z0-9_-]+", "-", value.lower()).strip("-_")[:63].strip("-_")
    hint = f'for example "{fitted}"' if fitted else ""
    raise unusable(
        f"{shown(value)} cannot be a name: lower-case letters, digits, - and _, at most 63, "
        "starting with a letter or digit",
        hint,
    )


Name = Annotated[
    str,
    BeforeValidator(check_name),
    WithJsonSchema({"type": "string", "pattern": f"^{NAME_PATTERN}$"}),
]
Count = Annotated[int, Field(strict=True, ge=1, le=10_000)]
Seed = Annotated[int, Field(strict=True, ge=0, le=2**53)]
