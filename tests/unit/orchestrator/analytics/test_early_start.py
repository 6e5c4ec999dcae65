"""The JVM starts before this process imports what takes long."""

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.unit, pytest.mark.timeout(60)]

HEAVY = ("pyspark", "pyarrow", "numpy", "pandas")
_LIGHT = """
import sys
import orchestrator.analytics.kept, orchestrator.analytics.pipeline, orchestrator.analytics.place
import orchestrator.spark.session
from orchestrator.results import registry
registry.tables()
print(*(name for name in sys.argv[1:] if name in sys.modules))
"""


def test_what_runs_before_the_jvm_starts_imports_neither_arrow_nor_spark() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LIGHT, *HEAVY], capture_output=True, text=True, timeout=50, check=True
    )
    assert not done.stdout.split()
