"""Finds everything that keeps a query from being run. Pure."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.model.units import CountWindow, Each, SameTau, TimeWindow

NAME_PATTERN = "[a-z0-9][a-z0-9_-]{0,62}"
_CLOSE_ENOUGH = 0.6


class QueryProblem(NamedTuple):
    """``at``: the operator, and its key that is wrong if it is one."""

    at: tuple[str, ...]
    message: str
    hint: str = ""


Operators = Mapping[str, OperatorSpec]
Roles = Mapping[str, str]
Findings = Iterator[QueryProblem]


def query_problems(query: Query, roles: Roles) -> list[QueryProblem]:
    """Returns all problems. ``roles``: whether each operator is a source, an operator or a sink."""
    if twice := [*_named_twice(query)]:
        return twice  # a name elsewhere could mean either of the two
    operators = {operator.name: operator for operator in query.operators}
    found = [problem for name in operators for problem in _unfit_name(name)]
    found += [problem for name in operators for problem in _inputs(name, operators, roles)]
    found += [problem for name in operators for problem in _settings(operators[name], roles[name])]
    found += [problem for name in operators for problem in _outputs(name, operators, roles)]
    for role in ("source", "sink"):
        if role not in roles.values():
            found.append(QueryProblem((), f"there is no {role}", f"add an operator whose kind is a {role}"))
    cycle = find_cycle({n: o.after if roles[n] != "source" else () for n, o in operators.items()})
    if cycle:
        text = f"the query runs in a circle: {' → '.join([*cycle, cycle[0]])}"
        hint = "tuples flow from sources to sinks, never back"
        found.append(QueryProblem((cycle[0], "after"), text, hint))
    # Streams are known only if the graph has no errors.
    return found or [*_streams(query, roles)]


def _named_twice(query: Query) -> Findings:
    names = query.names()
    for name in dict.fromkeys(name for index, name in enumerate(names) if name in names[:index]):
        yield QueryProblem((name,), f'there are two operators "{name}"', "give each step a name of its own")


def _unfit_name(name: str) -> Findings:
    if not re.fullmatch(NAME_PATTERN, name):
        text = f"{quoted(name)} cannot be a name: lower-case letters, digits, - and _, at most 63"
        yield QueryProblem((name,), text, "give the step another one: name=…")


def _inputs(name: str, operators: Operators, roles: Roles) -> Findings:
    after, at = operators[name].after, (name, "after")
    if roles[name] == "source":
        if after:
            yield QueryProblem(at, "a source has no input", "remove after")
        return
    if not after:
        hint = f"say whose output it consumes: after: {_someone(name, roles)}"
        yield QueryProblem((name,), f'"{name}" has no input', hint)
    for index, upstream in enumerate(after):
        if upstream in after[:index]:
            yield QueryProblem(at, f"{quoted(upstream)} is named twice")
        elif upstream not in operators:
            yield QueryProblem(
                at, f"there is no operator {quoted(upstream)}", _did_you_mean(upstream, operators)
            )
        elif roles[upstream] == "sink":
            yield QueryProblem(at, f'"{upstream}" is a sink: nothing comes after it')


def _settings(operator: OperatorSpec, role: str) -> Findings:
    name, takes = operator.name, operator.takes
    key = "join" if isinstance(takes, SameTau) else "window"
    if not isinstance(takes, Each) and role != "operator":
        article = "a source makes tuples one by one" if role == "source" else "a sink takes tuples one by one"
        yield QueryProblem((name, key), f"{article}: it has no {key}", f"put the {key} in between")
    if isinstance(takes, CountWindow) and min(takes.size, takes.slide) < 1:
        yield QueryProblem((name, key), "a window has at least one tuple, and slides by at least one")
    if isinstance(takes, TimeWindow) and min(takes.size_ns, takes.slide_ns) < 1:
        yield QueryProblem((name, key), "a window and its slide take some time")
    if isinstance(takes, SameTau) and len(operator.after) == 1:
        yield QueryProblem((name, key), "a join needs at least two inputs", "name them: after: [a, b]")
    for upstream, room in operator.buffers.items():
        if upstream not in operator.after:
            hint = _did_you_mean(upstream, operator.after)
            yield QueryProblem((name, "buffers"), f'{quoted(upstream)} is not an input of "{name}"', hint)
        elif room < 1:
            yield QueryProblem((name, "buffers"), f"a buffer holds at least one tuple, not {room}")
    if operator.on_error.retries < 0:
        yield QueryProblem((name, "on_error"), f"{operator.on_error.retries} retries are not possible")


def _outputs(name: str, operators: Operators, roles: Roles) -> Findings:
    if roles[name] == "sink" or any(name in operator.after for operator in operators.values()):
        return
    sinks = [other for other in operators if roles[other] == "sink"]
    hint = f"add it to the after of {sinks[0]}, or remove it" if sinks else ""
    yield QueryProblem((name,), f'nothing consumes the output of "{name}"', hint)


def _streams(query: Query, roles: Roles) -> Findings:
    """Yields where streams come together that cannot be combined."""
    origins = query.origins()
    numbering: dict[str, str] = {}
    for name in query.topological():
        operator = query.operator(name)
        inputs = {upstream: origins[upstream] for upstream in operator.after}
        match operator.takes:
            case Each():
                if roles[name] != "sink":  # a sink sends nothing on, so nothing can be confused
                    yield from _same_stream_twice(name, inputs)
                if not operator.after:
                    numbering[origins[name][0]] = "1, 2, 3, …"
            case CountWindow():
                yield from _uncountable(name, inputs, numbering)
                numbering[name] = "1, 2, 3, …"
            case TimeWindow(_, slide_ns):
                numbering[name] = f"by windows every {slide_ns / 1e9:g} s"
            case SameTau():
                yield from _unmatchable(name, inputs, numbering)
                numbering[name] = numbering[next(iter(inputs.values()))[0]]


def _same_stream_twice(name: str, inputs: Mapping[str, tuple[str, ...]]) -> Findings:
    first: dict[str, str] = {}
    for upstream, origins in inputs.items():
        for origin in origins:
            if origin in first:
                text = f'"{name}" gets the stream {origin} twice, from "{first[origin]}" and "{upstream}"'
                yield QueryProblem((name, "after"), text, "join them on tau, or process them apart")
            first.setdefault(origin, upstream)


def _uncountable(name: str, inputs: Mapping[str, tuple[str, ...]], numbering: Mapping[str, str]) -> Findings:
    streams = [origin for origins in inputs.values() for origin in origins]
    at, hint = (name, "window"), "use a time window"
    if len(streams) > 1:
        text = f"a window of so many tuples is of one stream, not of {len(streams)}: {', '.join(streams)}"
        yield QueryProblem(at, text, hint)
    elif "windows" in numbering[streams[0]]:
        text = f"the tuples of {streams[0]} are numbered {numbering[streams[0]]}: they cannot be counted"
        yield QueryProblem(at, text, hint)


def _unmatchable(name: str, inputs: Mapping[str, tuple[str, ...]], numbering: Mapping[str, str]) -> Findings:
    at, hint = (name, "join"), "use a time window over both"
    for upstream, origins in inputs.items():
        if len(origins) > 1:
            text = f'"{upstream}" sends {len(origins)} streams ({", ".join(origins)}): a τ stands in each'
            yield QueryProblem(at, text, hint)
    numbers = {numbering[origins[0]]: upstream for upstream, origins in inputs.items()}
    if len(numbers) > 1:
        kinds = "; ".join(f'"{upstream}" {kind}' for kind, upstream in numbers.items())
        yield QueryProblem(at, f"their tuples are numbered differently and cannot match: {kinds}", hint)


def quoted(name: str) -> str:
    """Returns a name that may be any text in one short line, without anything that a terminal would
    execute.
    """
    return json.dumps(name if len(name) <= 40 else name[:39] + "…", ensure_ascii=False)


def _someone(name: str, roles: Roles) -> str:
    others = [other for other, role in roles.items() if other != name and role != "sink"]
    return others[-1] if others else "NAME"


def _did_you_mean(word: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    scored = [(difflib.SequenceMatcher(None, word.lower(), name.lower()).ratio(), name) for name in known]
    score, best = max(scored, key=lambda pair: pair[0], default=(0.0, ""))
    return f'did you mean "{best}"?' if score >= _CLOSE_ENOUGH else ""


def find_cycle(after: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Returns one cycle in the direction of the flow, from its first operator in the query; empty if there is
    none.
    """
    open_inputs = {name: [up for up in ups if up in after] for name, ups in after.items()}
    while ready := [name for name, ups in open_inputs.items() if not any(up in open_inputs for up in ups)]:
        for name in ready:
            del open_inputs[name]
    if not open_inputs:
        return []
    # Every operator that is left has an input that is left: walking upstream must return to a visited one.
    walk = [next(iter(open_inputs))]
    while True:
        upstream = next(up for up in open_inputs[walk[-1]] if up in open_inputs)
        if upstream in walk:
            cycle = walk[walk.index(upstream) :][::-1]
            first = min(range(len(cycle)), key=lambda i: list(after).index(cycle[i]))
            return cycle[first:] + cycle[:first]
        walk.append(upstream)
