"""What contributes to the analysis is declared once and can be used; what cannot is one clear error."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from node_agent.extensions import ExtensionError
from orchestrator.results import docs, registry
from orchestrator.results.columns import TEXT
from orchestrator.results.contribution import Contribution, Figures, Later, Metric, Table
from orchestrator.results.expectations import parse_expectation
from orchestrator.results.registry import ANALYTICS

NOTHING = Figures(lambda reading: {}, lambda subject, rows: {}, (Metric("goodput_fps", "of another kind"),))


@pytest.fixture
def registered() -> Iterator[Callable[[Contribution], None]]:
    """Registers a contribution called ``mine`` until the test ends."""

    def register(contribution: Contribution) -> None:
        ANALYTICS.register("mine", contribution)

    yield register
    if "mine" in ANALYTICS:
        ANALYTICS.unregister("mine")


def functions(contribution: Contribution) -> Iterator[Callable[..., object]]:
    yield from (table.make for table in contribution.tables)
    yield from (drawing.draw for drawing in contribution.drawings)
    yield from (section.render for section in contribution.sections)
    for figures in contribution.figures:
        yield from (figures.frames, figures.values)


@pytest.mark.parametrize("name", list(ANALYTICS))
def test_what_is_imported_later_is_there(name: str) -> None:
    for function in functions(ANALYTICS[name]):
        assert not isinstance(function, Later) or callable(function.function())


def test_the_lists_in_the_docs_are_those_that_are_declared() -> None:
    assert docs.written(docs.FILE.read_text()) == docs.FILE.read_text()


def test_the_example_in_the_docs_is_a_contribution(registered: Callable[[Contribution], None]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", docs.FILE.read_text(), flags=re.DOTALL)
    defined: dict[str, Any] = {}
    exec(example, defined)
    registered(defined["CONTRIBUTION"])
    assert registry.tables()["queues"].make is defined["queues"]
    assert parse_expectation("queue_max < 10").metric == "queue_max"
    assert defined["values"](None, {"longest": [{"max(length)": 7}]}) == {"queue_max": 7}


def test_a_metric_of_the_same_name_is_an_error_in_one_kind(
    registered: Callable[[Contribution], None],
) -> None:
    registered(Contribution(kind="query", figures=(NOTHING,)))
    with pytest.raises(ExtensionError, match="'goodput_fps' is declared by 'query' and by 'mine'"):
        registry.contributions()


def test_a_metric_of_the_same_name_is_none_in_two_kinds(registered: Callable[[Contribution], None]) -> None:
    registered(Contribution(kind="flows", figures=(NOTHING,)))
    assert registry.metrics("flows")["goodput_fps"].text == "of another kind"
    assert registry.metrics("query")["goodput_fps"].text != "of another kind"


def test_a_table_of_the_same_name_is_an_error(registered: Callable[[Contribution], None]) -> None:
    tuples = registry.tables()["tuples"]
    registered(Contribution(kind="flows", tables=(replace(tuples),)))
    with pytest.raises(ExtensionError, match="the table 'tuples' is declared by 'query' and by 'mine'"):
        registry.contributions()


def test_a_table_without_the_columns_that_it_needs_is_refused(
    registered: Callable[[Contribution], None],
) -> None:
    def make(ingest: object) -> None:
        raise AssertionError

    table = Table("mine", "nothing", {"run": TEXT}, ("t_ns",), make)
    with pytest.raises(ExtensionError, match="mine: the table 'mine' has no column app, t_ns"):
        registered(Contribution(kind="query", tables=(table,)))


def test_something_else_is_refused() -> None:
    with pytest.raises(ExtensionError, match="mine is not a Contribution"):
        ANALYTICS.register("mine", object())


@pytest.mark.parametrize(("path", "short"), [("replicas", "k"), ("apps.faces.replicas", "k"), ("seed", None)])
def test_a_factor_is_known_by_its_place_in_the_file(path: str, short: str | None) -> None:
    found = registry.factor_of(path)
    assert (found.short if found else None) == short
