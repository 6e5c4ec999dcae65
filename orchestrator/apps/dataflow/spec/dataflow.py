"""Defines the settings of an operator in a written-out dataflow: inputs, window or join, and limits."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema

from node_agent.apps.dataflow.model.query import ErrorPolicy, OperatorSpec
from node_agent.apps.dataflow.model.units import CountWindow, Each, SameTau, TimeWindow, UnitRule
from orchestrator.spec.base import Section
from orchestrator.spec.problems import shown, unusable
from orchestrator.spec.units import PositiveDuration

MAX_WINDOW = 100_000
MAX_BUFFER = 1_000_000
MAX_RETRIES = 100

Tuples = Annotated[int, Field(strict=True, ge=1, le=MAX_WINDOW)]


def _read_after(value: Any) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise unusable(f"{shown(value)} is not an operator's name or a list of them", "after: camera")
    return tuple(names)


After = Annotated[
    tuple[str, ...],
    BeforeValidator(_read_after),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            "description": "The operator(s) whose output this one consumes",
        }
    ),
]


class CountedWindow(Section):
    """A window of this many tuples of one stream; the next window begins ``slide`` tuples later."""

    count: Tuples = Field(examples=[10])
    slide: Tuples | None = Field(default=None, description="As many as there are in a window, if not given")

    def rule(self) -> UnitRule:
        return CountWindow(self.count, self.slide or self.count)


class TimedWindow(Section):
    """A window of the tuples of all inputs that were captured within ``time``;
    windows begin every ``slide``.
    """

    time: PositiveDuration = Field(examples=["2s"])
    slide: PositiveDuration | None = Field(default=None, description="As long as a window, if not given")

    def rule(self) -> UnitRule:
        return TimeWindow(round(self.time * 1e9), round((self.slide or self.time) * 1e9))


def _read_window(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return {"count": value}
    if isinstance(value, str):
        return {"time": value}
    if value is None or _measured_in(value) is not None:
        return value
    hint = "write it like 10 (tuples), 2s, {count: 10, slide: 5} or {time: 2s, slide: 1s}"
    raise unusable(f"{shown(value)} is not a window", hint)


def _measured_in(value: Any) -> str | None:
    if isinstance(value, Section):
        return "counted" if isinstance(value, CountedWindow) else "timed"
    if not isinstance(value, dict) or ("count" in value) == ("time" in value):
        return None
    return "counted" if "count" in value else "timed"


Window = Annotated[
    Annotated[CountedWindow, Tag("counted")] | Annotated[TimedWindow, Tag("timed")],
    Discriminator(_measured_in),
]


class OnError(Section):
    """If the operator fails: try again ``retry`` times, then stop the agent or drop the tuple."""

    retry: Annotated[int, Field(strict=True, ge=0, le=MAX_RETRIES)] = 0
    then: Literal["stop", "dead_letter"] = "stop"


def _read_on_error(value: Any) -> Any:
    return {"then": value} if isinstance(value, str) else value


class Operator(Section):
    """One operator of a dataflow: its kind, whose output it consumes, and the parameters of its kind."""

    other_names: ClassVar[dict[str, str]] = {"pace": "rate", "saturate": "rate"}

    kind: str
    after: After = ()
    window: Annotated[Window | None, BeforeValidator(_read_window)] = Field(
        default=None, description="Process windows of tuples, not single ones"
    )
    join: Literal["tau"] | None = Field(default=None, description="Process the same τ of all inputs at once")
    on_error: Annotated[OnError, BeforeValidator(_read_on_error)] = OnError()
    buffers: dict[str, Annotated[int, Field(strict=True, ge=1, le=MAX_BUFFER)]] = Field(
        default={}, description="How many tuples may wait on the way from an input"
    )

    def params(self) -> dict[str, Any]:
        names = [name for name in type(self).model_fields if name not in Operator.model_fields]
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def takes(self) -> UnitRule:
        if self.join is not None:
            return SameTau()
        return Each() if self.window is None else self.window.rule()

    def spec(self, name: str) -> OperatorSpec:
        policy = ErrorPolicy(self.on_error.retry, self.on_error.then)
        return OperatorSpec(
            name, self.kind, self.after, self.params(), self.takes(), policy, dict(self.buffers)
        )
