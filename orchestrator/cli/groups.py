"""The one list of verbs that applications add, in groups such as `rove gallery add`.

Every `rove` imports these modules, so they import slow modules only when a verb is called.
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
    """Wraps ``verb``: adds the option --json and prints its answer."""

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
