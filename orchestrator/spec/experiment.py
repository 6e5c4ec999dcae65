"""The experiment file as a value: applications on a network, for how long, and what is varied.

query: synthetic_chain            # one application, named after its key
replicas: 3

apps:                             # or several, each with a name of its own
  faces: {query: face_recognition, replicas: 3}
  heat: {query: heat_map}
"""

from collections.abc import Mapping
from typing import Annotated, Any, Union

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from orchestrator.spec.application import (
    APPS,
    TOP,
    AppEntry,
    AppSection,
    gathered,
    place_in,
    sections,
)
from orchestrator.spec.base import Name, ValidatedAs
from orchestrator.spec.faults import Fault
from orchestrator.spec.problems import Finding, Place, Unusable, did_you_mean, listed, shown, unusable
from orchestrator.spec.scenario import Scenario
from orchestrator.spec.sweep import Sweep

SECTIONS: Mapping[str, type[AppSection]] = sections()
_EXAMPLE = "write it like faces: {query: face_recognition, replicas: 3}"


def _read_app(value: Any) -> Any:
    if isinstance(value, AppSection):
        return value
    if not isinstance(value, dict):
        raise unusable(f"{shown(value)} is not an application", _EXAMPLE)
    kinds = [kind for kind in SECTIONS if kind in value]
    if len(kinds) > 1:
        text = f"there are several applications in one entry: {', '.join(kinds)}"
        raise unusable(text, "give each an entry of its own under apps")
    if not kinds and value and not any(key in s.model_fields for s in SECTIONS.values() for key in value):
        text = f"no application: none of its keys is {listed(SECTIONS)}"
        hints = (did_you_mean(key, SECTIONS) for key in value)
        raise unusable(text, next(filter(None, hints), _EXAMPLE))
    return value


def _section_of(value: Any) -> str:
    """Returns the name of the section's type: that of the kind whose key is there, or else of one that has
    any of the keys.
    """
    if isinstance(value, AppSection):
        return type(value).__name__
    found = [section for kind, section in SECTIONS.items() if kind in value]
    found += [s for s in SECTIONS.values() if any(key in value for key in s.model_fields)]
    return (found or [*SECTIONS.values()])[0].__name__


def _any_section() -> Any:
    if len(SECTIONS) == 1:
        return next(iter(SECTIONS.values()))
    choices: Any = tuple(Annotated[section, Tag(section.__name__)] for section in SECTIONS.values())
    return Annotated[Union[choices], Discriminator(_section_of)]  # noqa: UP007


AppField = Annotated[AppSection, ValidatedAs(_any_section()), BeforeValidator(_read_app)]


class Experiment(Scenario):
    """One experiment: applications on a topology, and how to run them."""

    apps: dict[Name, AppField] = Field(
        description="Applications by name, if there are several",
        examples=[{"faces": {"query": "face_recognition"}, "heat": {"query": "heat_map"}}],
    )
    sweep: Sweep = Field(default={})
    faults: tuple[Fault, ...] = Field(
        default=(),
        description="What goes wrong during the measurement",
        examples=[[{"at": "40s", "for": "10s", "crash": {"operator": "detect", "replica": 0}}]],
    )

    @model_validator(mode="before")
    @classmethod
    def _gathered(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if findings := _misplaced(value):
            raise Unusable(*findings)
        return gathered(value, SECTIONS)

    @classmethod
    def known_keys(cls) -> list[str]:
        own = [key for section in SECTIONS.values() for key in section.model_fields]
        keys = [key for key in cls.model_fields if key not in (APPS, "sweep", "faults")]
        before, after = keys.index("routing") + 1, keys.index("expect")
        return [*keys[:before], *own, APPS, *keys[before:after], "sweep", "faults", *keys[after:]]

    @classmethod
    def as_validated(cls, document: Any) -> Any:
        return gathered(document, SECTIONS) if isinstance(document, dict) else document

    @classmethod
    def place_in(cls, document: Any, place: Place) -> Place:
        return place_in(document, place, SECTIONS)

    def entries(self) -> dict[str, AppEntry]:
        """Returns the applications by name, in the file's order."""
        found = {}
        for name, section in self.apps.items():
            kind = next(kind for kind, known in SECTIONS.items() if isinstance(section, known))
            prefix = TOP if name == kind else (APPS, name)
            start = "".join(f"{part}." for part in prefix)
            varied = tuple(path.removeprefix(start) for path in self.sweep if path.startswith(start))
            found[name] = AppEntry(name, kind, section, self, prefix, varied)
        return found

    def resolved(self) -> dict[str, Any]:
        """Returns the whole experiment as plain values in base units, including defaults and topology.

        An application that has the name of its kind is at the top level.
        """
        document = self.model_dump(mode="json")
        named = document.pop(APPS)
        own = {key: value for kind in SECTIONS for key, value in named.pop(kind, {}).items()}
        ordered = {**document, **own, **({APPS: named} if named else {})}
        return {key: ordered[key] for key in self.known_keys() if key in ordered}


def _misplaced(document: Mapping[str, Any]) -> list[Finding]:
    """Finds applications with the same name, and keys whose application is missing."""
    named = document.get(APPS)
    if not isinstance(named, dict):
        return []
    findings = []
    for kind, section in SECTIONS.items():
        here = [key for key in section.model_fields if key in document]
        if here and kind in named:
            text = f"there are two applications {shown(kind)}: this, and {here[0]} at the top level"
            findings.append(Finding((APPS, kind), text, "give one of them another name"))
        elif here and kind not in document:
            text = f"belongs to a {kind}, and there is none beside it"
            findings += [
                Finding((key,), text, f"write it into the {kind}'s entry under apps") for key in here
            ]
    if not named and not any(kind in document for kind in SECTIONS):
        findings.append(Finding((APPS,), "there is no application", _EXAMPLE))
    return findings
