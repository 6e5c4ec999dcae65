"""Loads extensions from a user's Python file, ``my_policy.py:decide``. Naming the file permits to run it."""

import importlib.machinery
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType

from node_agent.extensions.errors import ExtensionError, check_version, explain, failing_line
from node_agent.extensions.time_limit import Interrupted, OutOfTime, limited

IMPORT_S = 30.0
"""Processor time that importing a file may take."""


def is_reference(name: str) -> bool:
    """Whether ``name`` refers to a file, ``my_policy.py:decide``, and not to something registered."""
    return name.partition(":")[0].endswith(".py")


def split_reference(reference: str) -> tuple[Path, str]:
    """Returns the file and the attribute. Raises ExtensionError if one of them is missing."""
    file, _, attribute = reference.rpartition(":")
    if not file.endswith(".py") or not attribute.isidentifier():
        raise ExtensionError(f"{reference} names no part of a Python file: write it like my_policy.py:decide")
    return Path(file), attribute


def short_name(name: str) -> str:
    """Returns a reference without the folder, as people and records name it; any other name as it is."""
    return name.rpartition("/")[2] if is_reference(name) else name


def load_module(path: Path) -> ModuleType:
    """Imports the Python file ``path``, once for each content that it has had. Raises ExtensionError."""
    try:
        return _load(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise ExtensionError(f"{path.name}: {(error.strerror or 'cannot be read').lower()}") from None


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Compiles the file as it is. Bytecode beside it is not believed, and none is written: a run's directory
    keeps what was put there.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


@cache
def _load(path: Path, changed_ns: int) -> ModuleType:
    if path.suffix != ".py":
        raise ExtensionError(f"{path.name} is not a Python file")
    loader = _SourceLoader(path.stem, str(path))
    spec = importlib.util.spec_from_file_location(path.stem, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    hidden = sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # annotations are looked up there
    try:
        limited(IMPORT_S, lambda: loader.exec_module(module))
    except (ExtensionError, Interrupted):
        raise
    except OutOfTime as error:
        place = failing_line(error, str(path))
        raise ExtensionError(f"{place or path.name}: importing it takes more than {IMPORT_S:g} s") from None
    except BaseException as error:  # a script may also raise SystemExit or KeyboardInterrupt
        raise ExtensionError(explain(error, str(path))) from error
    finally:
        if hidden is not None:
            sys.modules[path.stem] = hidden
    check_version(module, path.name)
    return module


def load_attribute(path: Path, attribute: str) -> object:
    """Returns what the file defines as ``attribute``. Raises ExtensionError."""
    module = load_module(path)
    if not hasattr(module, attribute):
        raise ExtensionError(f"{path.name} defines no {attribute}")
    found: object = getattr(module, attribute)
    return found
