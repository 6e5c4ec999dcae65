"""Verbs that applications bring, in groups: `rove gallery add`. This is the one list of them.

Modules named here are imported by every `rove`: they import what needs time when a verb is called.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from node_agent.extensions import ExtensionError, Registry
from orchestrator.answers import Answer, VerbGroup
from orchestrator.cli.output import JsonFlag, print_json, print_shown


def _checked(name: str, value: object) -> VerbGroup:
    if not isinstance(value, VerbGroup):
        raise ExtensionError(f"the group of verbs {name!r} is no orchestrator.answers.VerbGroup")
    return value


GROUPS: Registry[VerbGroup] = Registry(
    "group of verbs",
    "rove.verbs",
    _checked,
    {"gallery": "orchestrator.apps.dataflow.faces.verbs:GALLERY"},
)


def printing(verb: Callable[..., Answer]) -> Callable[..., None]:
    """``verb`` with the option --json; what it answers is printed."""

    @wraps(verb)
    def printed(as_json: bool = False, **parameters: Any) -> None:
        answer = verb(**parameters)
        if as_json:
            print_json(answer.document)
        else:
            print_shown(answer.shown)

    own = inspect.signature(verb)
    flag = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=JsonFlag)
    printed.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[*own.parameters.values(), flag], return_annotation=None
    )
    return printed
