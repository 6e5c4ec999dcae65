"""Operators and a ready-made query of somebody else, named in experiment files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.operators.registry import OPERATORS, QUERIES, Context, OperatorKind
from node_agent.apps.dataflow.windows.units import Unit
from tests.extension.harness import Rove, installed, refused, registered, run_of, written


class RepeatParams(Struct, frozen=True, forbid_unknown_fields=True):
    factor: int = 2


class Repeat:
    def __init__(self, params: RepeatParams, context: Context) -> None:
        self._factor = params.factor

    async def process(self, unit: Unit) -> Sequence[bytes]:
        return [payload * self._factor for payload in unit.payloads()]


REPEAT = OperatorKind("repeat", "operator", RepeatParams, Repeat)


def long_chain(factor: int = 2) -> Query:
    """A camera whose pictures are repeated."""
    return Query(
        "long_chain",
        (
            OperatorSpec("camera", "synthetic_source", (), {"rate": 5.0, "payload": 100}),
            OperatorSpec("longer", "repeat", ("camera",), {"factor": factor}),
            OperatorSpec("screen", "sink", ("longer",)),
        ),
    )


def chain(kind: str, **params: Any) -> dict[str, Any]:
    return {
        "operators": {
            "camera": {"kind": "synthetic_source", "rate": "5 fps", "payload": "100 B"},
            "longer": {"kind": kind, "after": "camera", **params},
            "screen": {"kind": "sink", "after": "longer"},
        }
    }


def delivered_sizes(run: Path) -> set[int]:
    lines = [line for file in run.glob("nodes/*/segments/*.jsonl") for line in file.read_text().splitlines()]
    found = [json.loads(line) for line in lines if '"tuple_delivered"' in line]
    return {record["size"] // record.get("tuples", 1) for record in found}


def test_registered_in_this_process(rove: Rove, tmp_path: Path) -> None:
    with registered(OPERATORS, repeat=REPEAT), registered(QUERIES, long_chain=long_chain):
        said = refused(rove, written(tmp_path, query=chain("repeat", factor="many")))
        assert 'query.operators.longer.factor: "many": expected a whole number' in said
        assert delivered_sizes(run_of(rove, written(tmp_path, query=chain("repeat", factor=3)))) == {300}
        named = written(tmp_path, query={"name": "long_chain", "factor": 4})
        assert delivered_sizes(run_of(rove, named)) == {400}


def test_a_decorated_function_of_a_package(rove: Rove, tmp_path: Path) -> None:
    (tmp_path / "somebodys_operators.py").write_text(
        "from node_agent.query import operator\n\n\n@operator\n"
        "def twice(payload: bytes, *, times: int = 2) -> bytes:\n    return payload * times\n"
    )
    with installed(tmp_path, OPERATORS, {"twice": "somebodys_operators:twice"}):
        assert delivered_sizes(run_of(rove, written(tmp_path, query=chain("twice", times=5)))) == {500}


def test_what_is_wrong_with_it(rove: Rove, tmp_path: Path) -> None:
    (tmp_path / "somebodys_operators.py").write_text("import no_such_module\n")
    with installed(tmp_path, OPERATORS, {"twice": "somebodys_operators:twice"}):
        said = refused(rove, written(tmp_path, query=chain("twice")))
        assert "'twice' of somebodys (somebodys_operators:twice) cannot be loaded" in said
        assert "somebodys_operators.py, line 1: ModuleNotFoundError" in said
    (tmp_path / "somebodys_operators.py").write_text("twice = 2\n")
    (tmp_path / "somebodys-1.0.dist-info").rename(tmp_path / "old")
    with installed(tmp_path, OPERATORS, {"twice": "somebodys_operators:twice"}):
        said = refused(rove, written(tmp_path, query=chain("twice")))
        assert "the operator twice is int, neither an OperatorKind nor a decorated function" in said
    said = refused(rove, written(tmp_path, query=chain("my_operators.py:twice")))
    assert "operators of a file are named by its own queries" in said
