"""Loading a user's file: what is run is its source, and nothing is left beside it."""

import py_compile
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from node_agent.extensions.files import load_module


def test_bytecode_beside_a_file_is_neither_believed_nor_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file, other = tmp_path / "mine.py", tmp_path / "other.py"
    file.write_text("WHO = 'mine'\n")
    assert load_module(file).WHO == "mine"
    assert list(tmp_path.iterdir()) == [file]
    other.write_text("WHO = 'evil'\n")
    planted = Path(cache_from_source(str(other)))
    py_compile.compile(
        str(other), str(planted), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    other.write_text("WHO = 'good'\n")
    assert load_module(other).WHO == "good"
