"""What is wrong with an operator or a query, in one sentence each; nothing is created before all is
right."""

import math
from collections.abc import Iterator, Mapping
from graphlib import CycleError

from node_agent.apps.mcep.graph import CONSUMER, OperatorGraph
from node_agent.apps.mcep.model import McepError, Query
from node_agent.apps.mcep.windows import (
    Both,
    ByEvents,
    ByTime,
    Count,
    Either,
    Full,
    Open,
    Operator,
    Predicate,
    Span,
    Window,
    dependency_order,
)

NODES = 1000
"""The most sources and operators of a graph."""


def check_operator(operator: Operator) -> None:
    """Raises ``McepError`` for windows that have no meaning."""
    name = operator.name
    windows = {window.name: window for window in operator.windows}
    if not windows or len(windows) < len(operator.windows):
        raise McepError(f"operator {name}: it needs windows, each with a name of its own")
    for window in operator.windows:
        _check_window(operator, window)
    length, shift = operator.restriction.length, operator.restriction.shift
    if not 0 <= length < math.inf:
        raise McepError(
            f"operator {name}: the restriction window needs a length of 0 s or more, not {length!r}"
        )
    moves = shift.events if isinstance(shift, ByEvents) else shift.seconds
    if not 0 < moves < math.inf:
        raise McepError(f"operator {name}: the restriction window must move forwards, not by {moves!r}")
    if operator.restriction.stream not in (None, *operator.streams):
        raise McepError(
            f"operator {name}: its restriction window follows an unknown stream {operator.restriction.stream}"
        )
    _check_predicate(operator, operator.when, windows)
    _check_dependencies(operator, windows)
    _check_reuse(operator)
    part = operator.partition
    if part and part.by == "region" and not part.cell > 0:
        raise McepError(
            f"operator {name}: partitions by region need a cell size above 0 m, not {part.cell!r}"
        )
    if part and part.by == "attribute" and not part.attribute:
        raise McepError(f"operator {name}: partitions by attribute need its name")


def _check_window(operator: Operator, window: Window) -> None:
    where = f"operator {operator.name}, window {window.name}"
    match window.length:
        case Count(events) if events < 1:
            raise McepError(f"{where}: it must hold at least 1 event, not {events}")
        case Span(seconds) if not 0 < seconds < math.inf:
            raise McepError(f"{where}: it needs a length above 0 s, not {seconds!r}")
        case Open() if operator.ends is None or window.begin == "newest":
            raise McepError(
                f"{where}: an open window begins at the oldest event, and the operator must say where it ends"
            )
    match window.shift:
        case ByEvents(0) | ByTime(0):
            raise McepError(f"{where}: a shift by 0 goes nowhere; use Stay()")
        case ByTime() if not isinstance(window.length, Span):
            raise McepError(f"{where}: only a window with a span can shift by time")


def _check_predicate(operator: Operator, predicate: Predicate, windows: Mapping[str, Window]) -> None:
    match predicate:
        case Both(parts) | Either(parts):
            for each in parts:
                _check_predicate(operator, each, windows)
        case _ if predicate.window not in windows:
            raise McepError(
                f"operator {operator.name}: its predicate names an unknown window {predicate.window}"
            )
        case Full(window) if not isinstance(windows[window].length, Count):
            raise McepError(
                f"operator {operator.name}: window {window} counts no events, so it is never full"
            )


def _check_dependencies(operator: Operator, windows: Mapping[str, Window]) -> None:
    bound: set[tuple[str, str]] = set()
    for each in operator.dependencies:
        where = f"operator {operator.name}, window {each.window}"
        for name in (each.window, each.other):
            if name not in windows:
                raise McepError(f"operator {operator.name}: a dependency names an unknown window {name}")
        is_open = isinstance(windows[each.window].length, Open)
        slot = (each.window, each.point if is_open else "")
        if slot in bound:
            raise McepError(
                f"{where}: it depends on two windows; let it depend on one"
                + (" at each end" if is_open else "")
            )
        bound.add(slot)
        if is_open and isinstance(windows[each.other].length, Open):
            raise McepError(f"{where}: an open window cannot depend on another open window, {each.other}")
    try:
        dependency_order(operator)
    except CycleError as error:
        raise McepError(
            f"operator {operator.name}: its windows depend on each other in a circle: "
            f"{' → '.join(error.args[1])}"
        ) from None


def _check_reuse(operator: Operator) -> None:
    each = [
        Window(window.name, window.stream, Count(1), ByEvents(1), "oldest") for window in operator.windows[:1]
    ]
    alone = list(operator.windows) == each and operator.consumption.what == "all" and not operator.partition
    if operator.reuse == "local" and not (alone and operator.restriction.shift == ByEvents(1)):
        raise McepError(
            f"operator {operator.name}: it is declared local, but does not look at one event at a time; "
            "build it like filter_operator, or declare it independent"
        )


def check_graph(graph: OperatorGraph) -> None:
    """Raises ``McepError`` if the graph has no meaning."""
    names = [*(each.name for each in graph.sources), *(each.name for each in graph.operators)]
    if not graph.sources or not graph.operators or len(names) > NODES:
        raise McepError(f"an operator graph needs sources and operators, at most {NODES} together")
    for name in names:
        if not name or not name.isprintable() or " " in name or name == CONSUMER or names.count(name) > 1:
            raise McepError(
                f"{name!r} cannot name a source or operator: use one word, once, and not {CONSUMER!r}"
            )
    for problem in _stream_problems(graph, names):
        raise McepError(problem)
    try:
        order = graph.order
    except CycleError as error:
        raise McepError(f"the operators feed each other in a circle: {' → '.join(error.args[1])}") from None
    for name in order:
        if name not in graph.outputs:
            raise McepError(f"nothing takes the events of {name}: add a stream from it, or leave it out")
    for operator in graph.operators:
        check_operator(operator)
        _check_partition(graph, operator)


def _stream_problems(graph: OperatorGraph, names: list[str]) -> Iterator[str]:
    ends = [(stream.producer, stream.successor) for stream in graph.streams]
    if len(set(ends)) < len(ends):
        yield "there are two streams between the same two; join their restrictions"
    for producer, successor in ends:
        if producer not in names:
            yield f"a stream begins at {producer}, which is not in the graph"
        if successor not in graph.by_name and successor != CONSUMER:
            yield f"a stream ends at {successor}, which is no operator; the consumer is {CONSUMER!r}"
    if CONSUMER not in graph.inputs:
        yield f"no stream leads to {CONSUMER!r}"
    for operator in graph.operators:
        given = {stream.producer for stream in graph.inputs.get(operator.name, ())}
        wanted = set(operator.streams)
        if given != wanted:
            yield (
                f"operator {operator.name} has windows on {_listed(wanted)}, but streams from "
                f"{_listed(given)}: each stream needs a window, and each window a stream"
            )


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def _check_partition(graph: OperatorGraph, operator: Operator) -> None:
    if operator.partition is None or operator.partition.by == "attribute":
        return
    for stream in graph.inputs[operator.name]:
        before = graph.by_name.get(stream.producer)
        if before and before.reuse != "local" and before.partition != operator.partition:
            raise McepError(
                f"operator {operator.name} is partitioned by {operator.partition.by}, but "
                f"{before.name} before it is not and looks at several events at once: partition both alike, "
                "or by an attribute"
            )


def check_query(query: Query, ttl: Mapping[str, float] | float) -> None:
    """Raises ``McepError`` with the first reason why a query cannot run; creates nothing."""
    check_graph(query.graph)
    _check_history(query, ttl)
    if query.policy.suppression and not query.policy.is_strict:
        raise McepError(
            f"query {query.name}: suppression needs complete epochs, since it leaves out what the last one "
            "brought; switch it off, or do not ask for best effort"
        )


def _check_history(query: Query, ttl: Mapping[str, float] | float) -> None:
    if not 0 <= query.history < math.inf:
        raise McepError(f"query {query.name}: history must be 0 s or more, not {query.history!r}")
    for source in query.graph.sources:
        kept = ttl if isinstance(ttl, int | float) else ttl.get(source.name, 0.0)
        windows = query.graph.additional_time(source.name)
        if not kept >= query.history + windows:
            raise McepError(
                f"query {query.name}: events of {source.name} are kept for {kept:g} s, but a switch needs "
                f"{query.history + windows:g} s of them: {query.history:g} s of history and {windows:g} s "
                "for the operators' restriction windows; keep them longer, or ask for less history"
            )
