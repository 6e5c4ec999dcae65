"""What an experiment can name: operator kinds with checked parameters, and ready-made queries."""

from collections.abc import Sequence

import msgspec
import pytest

from node_agent.apps.dataflow.operators.registry import OPERATORS, QUERIES, Context, OperatorKind
from node_agent.apps.dataflow.operators.synthetic import Sink, SinkParams, pattern
from node_agent.apps.dataflow.windows.units import Unit
from node_agent.extensions import ExtensionError


def test_the_chain_is_the_face_recognition_query_in_shape() -> None:
    chain = QUERIES["synthetic_chain"]()
    assert chain.topological() == ("camera", "detect", "recognise", "screen")
    assert chain.inner() == ("detect", "recognise")
    assert [OPERATORS[o.kind].role for o in chain.operators] == ["source", "operator", "operator", "sink"]


@pytest.mark.parametrize("operators", [1, 3, 10])
def test_chains_of_other_lengths(operators: int) -> None:
    chain = QUERIES["synthetic_chain"](operators=operators)
    inner = tuple(f"op{i}" for i in range(1, operators + 1))
    assert chain.topological() == ("camera", *inner, "screen")


def test_a_chain_without_operators_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one operator"):
        QUERIES["synthetic_chain"](operators=0)


def test_the_parameters_of_a_ready_made_query_fit_its_kinds() -> None:
    for operator in QUERIES["synthetic_chain"](rate=30, payload=100, cpu=0).operators:
        msgspec.convert(operator.params, OPERATORS[operator.kind].params)


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("synthetic_source", {"rate": 0}),
        ("synthetic_source", {"payload": -1}),
        ("synthetic_source", {"limit": "many"}),
        ("work", {"cpu": -0.1}),
        ("work", {"outptu": 5}),
        ("sink", {"anything": 1}),
    ],
)
def test_bad_parameters_are_refused(kind: str, params: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(params, OPERATORS[kind].params)


def test_payloads_are_repeatable_and_differ() -> None:
    assert pattern("camera/0", 1, 1000) == pattern("camera/0", 1, 1000)
    assert len({pattern(origin, tau, 100) for origin in ("a/0", "b/0") for tau in range(50)}) == 100
    assert [len(pattern("a/0", 1, size)) for size in (0, 1, 64, 8192)] == [0, 1, 64, 8192]


def test_a_name_can_be_registered_once() -> None:
    class Other:
        def __init__(self, params: SinkParams, context: Context) -> None:
            pass

        async def process(self, unit: Unit) -> Sequence[bytes]:
            return ()

    with pytest.raises(ExtensionError, match="there is a kind of operator 'sink' already"):
        OPERATORS.register("sink", OperatorKind("sink", "sink", SinkParams, Other))
    assert OPERATORS["sink"].factory is Sink
