"""Fields that a registry decides on: a mapping whose key names an entry, or a word that names one.

    mobility: Annotated[MobilityModel, Registered(MOBILITY_MODELS, "model")]
    policy: Annotated[str, RegisteredName(SWITCHING_POLICIES)]

Validation, error texts and JSON Schema follow from the registry. A user's file is named relative to the file
that it stands in, ``model: my_mobility.py:Model``, and is absolute from then on.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import (
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    SerializationInfo,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import CoreSchema, core_schema

from node_agent.extensions import ExtensionError, Registry
from node_agent.extensions.files import is_reference, split_reference
from orchestrator.spec.base import Section
from orchestrator.spec.file_reference import FOLDER
from orchestrator.spec.foreign_calls import called
from orchestrator.spec.problems import Unusable, did_you_mean, listed, shown, unusable
from orchestrator.spec.source_file import MOST_BYTES, Unreadable, read_bytes
from orchestrator.spec.translate import findings_of

CODE_ALLOWED = "code_allowed"
"""The key of the validation context that says whether users' files may be imported; they may unless False."""
PYTHON_PATTERN = r"\.py:[A-Za-z_][A-Za-z0-9_]*$"


class Registered:
    """Annotation for a mapping whose ``key`` names an entry of ``registry``.

    ``section`` returns the mapping's type for an entry; without it, the entry is that type. ``default`` names
    the entry of a mapping without the key. With ``word``, a bare name stands for an entry with its defaults.
    """

    def __init__(
        self,
        registry: Registry[Any],
        key: str,
        *,
        section: Callable[[Any], type[Section]] = lambda entry: entry,
        default: str | None = None,
        word: bool = False,
    ) -> None:
        self.registry = registry
        self.key = key
        self._section = section
        self._default = default
        self._word = word

    def read(self, value: Any, info: ValidationInfo) -> Section:
        if isinstance(value, Section):
            return value
        if self._word and isinstance(value, str):
            try:
                return self.read({self.key: value}, info)
            except Unusable as error:  # the file has no key to point at
                raise Unusable(*(f._replace(at=()) for f in error.findings)) from None
        if not isinstance(value, dict):
            raise unusable(f"{shown(value)}: expected a mapping (key: value)")
        named = value.get(self.key, self._default)
        if named is None:
            hint = f"expected {self.key}: {listed(self.registry)}"
            raise unusable("missing", hint, (self.key,))
        try:
            name, entry = look_up(self.registry, named, info)
        except Unusable as error:
            raise Unusable(*(f._replace(at=(self.key,)) for f in error.findings)) from None
        section = self._section(entry)
        document = {**value, self.key: name}
        try:
            return called(
                f"{self.registry.what} {shown(named)}",
                file_of(name, section),
                lambda: section.model_validate(document, context=info.context),
                own=self.registry.is_builtin(name),
            )
        except ValidationError as error:
            raise Unusable(*findings_of(error, section, value)) from None
        except ExtensionError as error:
            raise unusable(str(error), at=(self.key,)) from None

    def sections(self) -> Iterator[type[Section]]:
        """Yields the sections of all entries, including those of other packages."""
        for name in self.registry:
            yield self._section(self.registry[name])

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(
            self.read,
            serialization=core_schema.plain_serializer_function_ser_schema(_dumped, info_arg=True),
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        known = {name: self._section(self.registry[name]) for name in self.registry}
        refs = [handler(section.__pydantic_core_schema__) for section in known.values()]
        of_a_file = {
            "type": "object",
            "properties": {self.key: _file_schema(self.registry)},
            "required": [self.key],
        }
        if self._word:
            return {"anyOf": [name_schema(self.registry), *refs, of_a_file]}
        return {"oneOf": [*refs, of_a_file]}


class RegisteredName:
    """Annotation for a word that names an entry of ``registry``, or one of the other ``words``."""

    def __init__(self, registry: Registry[Any], *, words: tuple[str, ...] = (), files: bool = True) -> None:
        self.registry = registry
        self._words = words
        self._files = files

    def read(self, value: Any, info: ValidationInfo) -> str:
        if value in self._words:
            return str(value)
        return look_up(self.registry, value, info, words=self._words, files=self._files)[0]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        return name_schema(self.registry, words=self._words, files=self._files)


def look_up(
    registry: Registry[Any],
    name: Any,
    info: ValidationInfo,
    *,
    words: tuple[str, ...] = (),
    files: bool = True,
) -> tuple[str, Any]:
    """Returns the full name and the entry that a file names; the name of a user's file becomes absolute.
    Raises Unusable.
    """
    if files and isinstance(name, str) and is_reference(name):
        name = _absolute(name, info.context or {})
    elif name not in registry:
        known = [*registry, *words]
        raise unusable(
            f"{shown(name)} is not known here; expected {listed(known)}", did_you_mean(name, known)
        )
    try:
        return name, registry[name]
    except ExtensionError as error:
        raise unusable(str(error)) from None


def _absolute(reference: str, context: Mapping[str, Any]) -> str:
    if not context.get(CODE_ALLOWED, True):
        raise unusable(f"{shown(reference)} is code, which is not run here")
    try:
        file, attribute = split_reference(reference)
    except ExtensionError as error:
        raise unusable(str(error)) from None
    path = (context.get(FOLDER, Path()).absolute() / file).resolve()
    try:
        read_bytes(path, MOST_BYTES)
    except Unreadable as error:
        raise unusable(f"{shown(str(file))}: {error.message}", error.hint) from None
    return f"{path}:{attribute}"


def file_of(name: str, entry: Any) -> str | None:
    """Returns the file that defines an entry, as tracebacks name it."""
    if is_reference(name):
        return str(split_reference(name)[0])
    with suppress(TypeError, OSError):
        return inspect.getsourcefile(entry)
    return None


def place_of(function: Any) -> str:
    """Says where a function of an extension is defined: ``my_mobility.py, line 12``."""
    code = getattr(function, "__code__", None)
    return "an extension" if code is None else f"{Path(code.co_filename).name}, line {code.co_firstlineno}"


def name_schema(
    registry: Registry[Any], *, words: tuple[str, ...] = (), files: bool = True
) -> dict[str, Any]:
    """Returns the JSON Schema of a name in a registry."""
    names = {"enum": [*registry, *words]}
    return {"anyOf": [names, _file_schema(registry)]} if files else names


def _file_schema(registry: Registry[Any]) -> dict[str, Any]:
    return {
        "type": "string",
        "pattern": PYTHON_PATTERN,
        "description": f"Your own {registry.what}: a Python file, relative to this one, and a name in it",
    }


def _dumped(value: Section, info: SerializationInfo) -> dict[str, Any]:
    return value.model_dump(mode=info.mode)
