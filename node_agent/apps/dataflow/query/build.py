"""Builds a query as a chain of calls: ``Query("q").source(f).map(g).sink(h)``. Each call adds one named step.

Nothing runs here: ``build`` checks the whole and returns the frozen value that planners and agents use.
"""

import sys
from typing import Any, Literal, get_args

import msgspec

from node_agent.apps.dataflow.model import query as model
from node_agent.apps.dataflow.model.query import ErrorPolicy, OperatorSpec
from node_agent.apps.dataflow.model.query_problems import QueryProblem, query_problems
from node_agent.apps.dataflow.model.units import CountWindow, Each, SameTau, TimeWindow, UnitRule
from node_agent.apps.dataflow.operators.registry import OPERATORS, OperatorKind
from node_agent.apps.dataflow.query.errors import QueryError, place
from node_agent.apps.dataflow.query.functions import UserFunction

Function = UserFunction[..., Any] | str
"""A decorated function, or the name of a registered kind."""
OnError = Literal["stop", "dead_letter"] | ErrorPolicy


def count(size: int, slide: int | None = None) -> CountWindow:
    """A window of ``size`` tuples; the next one begins ``slide`` tuples later, by default where this one
    ends.
    """
    return CountWindow(size, size if slide is None else slide)


def seconds(size: float, slide: float | None = None) -> TimeWindow:
    """A window of what was captured within ``size`` seconds; windows begin every ``slide`` seconds, by
    default ``size``.
    """
    return TimeWindow(round(size * 1e9), round((size if slide is None else slide) * 1e9))


def retry(times: int, then: Literal["stop", "dead_letter"] = "stop") -> ErrorPolicy:
    """Calls a function that failed up to ``times`` times more."""
    return ErrorPolicy(times, then)


class Query:
    def __init__(self, name: str, *, reliability: model.Reliability = "best_effort") -> None:
        self._name = name
        self._reliability = reliability
        self._steps: list[OperatorSpec] = []
        self._places: list[str] = []
        self._kinds: list[OperatorKind] = []
        self._problems: list[str] = []
        self._whole = True

    def source(self, function: Function, /, *, name: str | None = None, **params: Any) -> "Stream":
        return self._add(function, "source", (), Each(), name, "stop", None, params)

    def build(self) -> model.Query:
        """Returns the query. Raises QueryError with everything that is wrong, and where."""
        query = model.Query(self._name, tuple(self._steps), self._reliability)
        problems = list(self._problems)
        if self._reliability not in get_args(model.Reliability):
            known = ", ".join(get_args(model.Reliability))
            problems.append(f"  there is no reliability {self._reliability!r}, but {known}")
        if self._whole:
            roles = {step.name: kind.role for step, kind in zip(self._steps, self._kinds, strict=True)}
            problems += [self._placed(problem) for problem in query_problems(query, roles)]
        if problems:
            many = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
            raise QueryError("\n".join([f"query {self._name}: {many}", *problems]))
        return query

    def _add(
        self,
        function: Function,
        role: str,
        after: tuple[str, ...],
        takes: UnitRule,
        name: str | None,
        on_error: OnError,
        buffer: int | None,
        params: dict[str, Any],
    ) -> "Stream":
        kind_name = function.kind if isinstance(function, UserFunction) else function
        step = name or getattr(function, "__name__", str(kind_name)).rpartition(".")[2]
        at = _caller()
        kind = OPERATORS.get(kind_name) if isinstance(kind_name, str) else None
        if kind is None:
            what = getattr(function, "__name__", repr(function))
            self._whole = False
            self._problems.append(
                f"  {at}, step {step}: {what} is no operator\n      decorate it with @{role}"
            )
            return Stream(self, (step,))
        self._check(kind, role, after, takes, params, f"{at}, step {step}, {_called(function)}")
        policy = on_error if isinstance(on_error, ErrorPolicy) else ErrorPolicy(then=on_error)
        buffers = {} if buffer is None else dict.fromkeys(after, buffer)
        self._steps.append(OperatorSpec(step, kind.name, after, params, takes, policy, buffers))
        self._places.append(f"{at}, step {step}")
        self._kinds.append(kind)
        return Stream(self, (step,))

    def _check(
        self,
        kind: OperatorKind,
        role: str,
        after: tuple[str, ...],
        takes: UnitRule,
        params: dict[str, Any],
        at: str,
    ) -> None:
        if kind.role != role:
            article = {"source": "a source", "operator": "an operator", "sink": "a sink"}
            self._problems.append(f"  {at}: this is {article[kind.role]}, not {article[role]}")
            return
        wanted = 1 if isinstance(takes, Each) else len(after)
        if role == "operator" and kind.inputs not in (None, wanted):
            gives = "one payload at a time" if isinstance(takes, Each) else _many(wanted, "input")
            takes_many = _many(kind.inputs or 0, "argument")
            self._problems.append(f"  {at}: the function takes {takes_many}, the step has {gives}")
        try:
            msgspec.convert(params, kind.params)
        except msgspec.ValidationError as error:
            self._problems.append(f"  {at}: {error}")

    def _placed(self, problem: QueryProblem) -> str:
        names = [step.name for step in self._steps]
        where = self._places[names.index(problem.at[0])] + ": " if problem.at else ""
        return f"  {where}{problem.message}" + (f"\n      {problem.hint}" if problem.hint else "")


class Stream:
    """The output of one step, or of several together; the next step is called on it."""

    def __init__(self, query: Query, steps: tuple[str, ...]) -> None:
        self._query = query
        self._after = steps

    def map(
        self,
        function: Function,
        /,
        *,
        name: str | None = None,
        on_error: OnError = "stop",
        buffer: int | None = None,
        **params: Any,
    ) -> "Stream":
        """Adds a step that takes tuples one by one: changes, multiplies or filters them."""
        return self._query._add(function, "operator", self._after, Each(), name, on_error, buffer, params)

    def window(
        self,
        window: CountWindow | TimeWindow,
        function: Function,
        /,
        *,
        name: str | None = None,
        on_error: OnError = "stop",
        buffer: int | None = None,
        **params: Any,
    ) -> "Stream":
        """Adds a step that takes one window at a time; of several inputs after ``union``."""
        return self._query._add(function, "operator", self._after, window, name, on_error, buffer, params)

    def join(
        self,
        *others: "Stream",
        using: Function,
        within: TimeWindow | None = None,
        name: str | None = None,
        on_error: OnError = "stop",
        buffer: int | None = None,
        **params: Any,
    ) -> "Stream":
        """Adds a step that takes what is at the same τ of all streams or, with ``within``, in the same
        window.
        """
        after = self.union(*others)._after
        takes: UnitRule = SameTau() if within is None else within
        return self._query._add(using, "operator", after, takes, name, on_error, buffer, params)

    def union(self, *others: "Stream") -> "Stream":
        """Returns these streams together, for the next step."""
        return Stream(self._query, self._after + tuple(step for other in others for step in other._after))

    def sink(
        self,
        function: Function = "sink",
        /,
        *,
        name: str | None = None,
        on_error: OnError = "stop",
        buffer: int | None = None,
        **params: Any,
    ) -> Query:
        """Adds the step that ends the stream."""
        self._query._add(function, "sink", self._after, Each(), name, on_error, buffer, params)
        return self._query


def _called(function: Function) -> str:
    return f"function {function!r}" if isinstance(function, UserFunction) else f"kind {function}"


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _caller() -> str:
    """Returns where in the user's file the step was added."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return place(frame.f_code.co_filename, frame.f_lineno)
