"""The zip that goes to executors has all of Rove: Python imports it without any installed one."""

import subprocess
import sys
import zipfile
from pathlib import Path

from orchestrator.spark.shipping import code_archive

PROGRAM = """
import sys
sys.path[:] = [path for path in sys.path if "site-packages" not in path] + [{packages!r}]
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
from importlib.metadata import version
import orchestrator.backends.sim.worker, orchestrator.sweeps.driver, node_agent
print(orchestrator.backends.sim.worker.__file__, node_agent.__file__, version("rove-testbed"))
"""


def test_executors_import_rove_from_the_zip(tmp_path: Path) -> None:
    archive = code_archive(tmp_path)
    names = set(zipfile.ZipFile(archive).namelist())
    assert {"orchestrator/cli/app.py", "orchestrator/cli/app.pyc", "node_agent/py.typed"} <= names
    assert not any("__pycache__" in name for name in names)
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(packages=packages)],
        env={"PYTHONPATH": str(archive)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    simulator, agent, version = ended.stdout.split()
    # Compiled already: nothing is compiled for each run.
    assert simulator == f"{archive}/orchestrator/backends/sim/worker.pyc"
    assert agent.startswith(str(archive))
    assert version.startswith("0.")
