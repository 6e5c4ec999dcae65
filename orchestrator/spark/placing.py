"""Spark's settings that depend on where its executors are, and those that users give."""

import os
import sys
from collections.abc import Sequence

from orchestrator.errors import BadInput
from orchestrator.spark.cluster import HERE, Master

_OURS = ("spark.master", "spark.local.dir", "spark.driver.extraJavaOptions", "spark.submit.deployMode")


def parse_conf(given: Sequence[str]) -> dict[str, str]:
    """Reads settings that users write as ``KEY=VALUE``. Raises BadInput."""
    settings = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.startswith("spark."):
            raise BadInput(f"{text!r} is no setting of Spark: write spark.executor.memory=4g")
        if key in _OURS:
            raise BadInput(f"{key} cannot be set here: Rove sets it itself")
        settings[key] = value
    return settings


def settings_at(master: Master, address: str) -> dict[str, str]:
    """Returns the settings that depend on where executors are. They connect to ``address``."""
    settings = {
        "spark.master": master.url,
        "spark.driver.bindAddress": address,
        "spark.driver.host": address,
    }
    if master == HERE:
        return {**settings, "spark.default.parallelism": "2"}
    if master.is_local:
        return settings
    return {
        **settings,
        "spark.executor.memory": "1g",
        # A cell's archive is one result.
        "spark.driver.maxResultSize": "1g",
    }


def executors_python(master: Master) -> str:
    """Returns the Python that executors start: that of PYSPARK_PYTHON on a cluster, else this one."""
    return sys.executable if master.is_local else os.environ.get("PYSPARK_PYTHON") or sys.executable
