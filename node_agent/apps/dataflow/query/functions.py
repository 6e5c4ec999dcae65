"""Makes operators of plain or async functions: ``@operator``, ``@source`` and ``@sink``.

A function's keyword-only parameters are the operator's parameters; one called ``context`` gets the node's
clock and core. Decorating registers the function under the name of its module and its own.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import product
from typing import Any, Generic, Literal, ParamSpec, TypeVar, get_type_hints, overload

import msgspec

from node_agent.apps.dataflow.model.units import Each, SameTau
from node_agent.apps.dataflow.operators.pace import Pace, Rate
from node_agent.apps.dataflow.operators.registry import Context, OperatorKind, Role, register_function
from node_agent.apps.dataflow.query.errors import OperatorError, QueryError, failed_at, place
from node_agent.apps.dataflow.windows.units import Unit

P = ParamSpec("P")
R = TypeVar("R")
Key = Callable[[bytes], Any]

CONTEXT = "context"
RESERVED = frozenset(
    ("name", "kind", "after", "window", "join", "on_error", "buffer", "buffers", "using", "within")
)


class UserFunction(Generic[P, R]):
    """The decorated function, which can still be called as before; queries name it by ``kind``."""

    def __init__(
        self, function: Callable[P, R], role: Role, key: Key | None, extra: dict[str, tuple[Any, Any]]
    ) -> None:
        self.function = function
        self.role = role
        self.key = key
        self.file = inspect.getsourcefile(function) or "?"
        self.place = place(self.file, function.__code__.co_firstlineno)
        self.name = self.__name__ = function.__name__
        self.kind = f"{function.__module__}.{function.__qualname__}"
        self.__doc__ = function.__doc__
        self._parameters = _keywords(self)
        self.inputs = _positional(self)
        made = [(name, annotation, default) for name, (annotation, default) in self._parameters.items()]
        fields = [field for field in made if field[0] != CONTEXT]
        fields += [(name, *extra[name]) for name in extra if name not in self._parameters]
        fields.sort(key=lambda field: field[2] is msgspec.NODEFAULT, reverse=True)
        params = msgspec.defstruct(self.name, fields, frozen=True, forbid_unknown_fields=True)
        factory = _FunctionSource if role == "source" else _FunctionOperator
        inputs = self.inputs if role == "operator" else None
        kind = OperatorKind(
            self.kind,
            role,
            params,
            lambda params, context: factory(self, params, context),
            inputs,
            self.place,
        )
        register_function(kind)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"{self.name} ({self.place})"

    def keywords(self, params: msgspec.Struct, context: Context) -> dict[str, Any]:
        given = {name: getattr(params, name) for name in self._parameters if name != CONTEXT}
        return {**given, CONTEXT: context} if CONTEXT in self._parameters else given

    async def call(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function. Raises OperatorError for whatever it raises."""
        try:
            result: Any = self.function(*args, **kwargs)
            return await result if isinstance(result, Awaitable) else result
        except Exception as error:
            at = failed_at(error, self.file) or self.place
            raise OperatorError(f"{self.name} ({at}): {type(error).__name__}: {error}") from error

    def unfit(self, result: Any) -> OperatorError:
        allowed = "bytes or None" if self.role == "source" else "bytes, a list of bytes, None or a bool"
        return OperatorError(f"{self.name} ({self.place}) returned {type(result).__name__}, not {allowed}")


def _signature(function: UserFunction[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function.function).parameters.values())


def _positional(function: UserFunction[..., Any]) -> int | None:
    """Returns how many inputs the function is made for; None: any number."""
    parameters = _signature(function)
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return None
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    if count == 0:
        what = "its τ" if function.role == "source" else "what it is to process"
        raise QueryError(f"{function!r} takes nothing: its first parameter is {what}")
    return count


def _keywords(function: UserFunction[..., Any]) -> dict[str, tuple[Any, Any]]:
    hints = get_type_hints(function.function)
    found: dict[str, tuple[Any, Any]] = {}
    for parameter in _signature(function):
        if parameter.kind is parameter.VAR_KEYWORD:
            raise QueryError(f"{function!r}: **{parameter.name} cannot be a parameter of an operator")
        if parameter.kind is parameter.KEYWORD_ONLY:
            if parameter.name in RESERVED:
                raise QueryError(f"{function!r}: a parameter cannot be called {parameter.name}")
            if parameter.name != CONTEXT and parameter.name not in hints:
                raise QueryError(f"{function!r}: say of which type the parameter {parameter.name} is")
            default = msgspec.NODEFAULT if parameter.default is parameter.empty else parameter.default
            found[parameter.name] = (hints.get(parameter.name), default)
    return found


class _FunctionSource:
    def __init__(self, function: UserFunction[..., Any], params: Any, context: Context) -> None:
        self._function = function
        self._keywords = function.keywords(params, context)
        self._pace = Pace(params.rate, context)

    async def next(self, tau: int) -> bytes | None:
        await self._pace.until_due(tau)
        result = await self._function.call(tau, **self._keywords)
        if result is None or isinstance(result, bytes):
            return result
        raise self._function.unfit(result)


class _FunctionOperator:
    def __init__(self, function: UserFunction[..., Any], params: Any, context: Context) -> None:
        if context.spec is None:
            raise QueryError(f"{function!r} can run in a query only")
        self._function = function
        self._spec = context.spec
        self._keywords = function.keywords(params, context)

    async def process(self, unit: Unit) -> Sequence[bytes]:
        payloads: list[bytes] = []
        for inputs in self._calls(unit):
            payloads += self._read(await self._function.call(*inputs, **self._keywords), inputs)
        return payloads

    def _calls(self, unit: Unit) -> Iterator[tuple[Any, ...]]:
        """Yields the arguments of each call that ``unit`` needs."""
        inputs = [
            [payload for item in unit.inputs.get(name, ()) for payload in item.payloads]
            for name in self._spec.after
        ]
        if isinstance(self._spec.takes, Each):
            yield from ((payload,) for payloads in inputs for payload in payloads)
        elif self._function.key is not None:
            yield from self._matches(self._function.key, inputs)
        elif isinstance(self._spec.takes, SameTau):
            yield from product(*inputs)
        else:
            yield tuple(inputs)

    def _matches(self, key: Key, inputs: list[list[bytes]]) -> Iterator[tuple[bytes, ...]]:
        """Yields one payload of each input, all with the same key, in the order of the first input."""
        groups: list[dict[Any, list[bytes]]] = []
        for payloads in inputs:
            groups.append({})
            for payload in payloads:
                groups[-1].setdefault(key(payload), []).append(payload)
        for payload in inputs[0]:
            same = key(payload)
            yield from product([payload], *(group.get(same, []) for group in groups[1:]))

    def _read(self, result: Any, inputs: tuple[Any, ...]) -> Sequence[bytes]:
        match result:
            case None | False:
                return ()
            case True if isinstance(inputs[0], bytes) and len(inputs) == 1:
                return (inputs[0],)
            case bytes():
                return (result,)
            case list() | tuple() if all(isinstance(payload, bytes) for payload in result):
                return result
            case _ if self._function.role == "sink":
                return ()
            case _:
                raise self._function.unfit(result)


@overload
def operator(function: Callable[P, R], /) -> UserFunction[P, R]: ...
@overload
def operator(*, key: Key | None = None) -> Callable[[Callable[P, R]], UserFunction[P, R]]: ...
def operator(function: Callable[..., Any] | None = None, /, *, key: Key | None = None) -> Any:
    """A function from a payload to a payload, None or False (filtered out), True (kept) or a list of them.

    Over a window it gets a list of payloads; a join, one argument for each input. With a ``key``, a join is
    called for each combination of payloads that have the same key.
    """
    return _decorate(function, "operator", key, {})


@overload
def source(function: Callable[P, R], /) -> UserFunction[P, R]: ...
@overload
def source(*, rate: Rate = 10.0) -> Callable[[Callable[P, R]], UserFunction[P, R]]: ...
def source(function: Callable[..., Any] | None = None, /, *, rate: Rate = 10.0) -> Any:
    """A function from τ = 1, 2, … to a payload, ``rate`` times a second, or with ``"saturate"`` as soon as
    there is room for the next one. None ends the stream.
    """
    return _decorate(function, "source", None, {"rate": (Rate, rate)})


@overload
def sink(function: Callable[P, R], /) -> UserFunction[P, R]: ...
@overload
def sink() -> Callable[[Callable[P, R]], UserFunction[P, R]]: ...
def sink(function: Callable[..., Any] | None = None, /) -> Any:
    """A function that takes a payload; what it returns is ignored."""
    return _decorate(function, "sink", None, {})


def _decorate(
    function: Callable[..., Any] | None,
    role: Literal["source", "operator", "sink"],
    key: Key | None,
    extra: dict[str, tuple[Any, Any]],
) -> Any:
    def decorate(function: Callable[..., Any]) -> UserFunction[..., Any]:
        return UserFunction(function, role, key, extra)

    return decorate if function is None else decorate(function)
