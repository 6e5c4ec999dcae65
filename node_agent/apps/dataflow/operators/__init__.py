"""Operators: the registry of kinds and how one is run. Importing it registers the built-in kinds."""

# isort: off
from node_agent.apps.dataflow.windows import combining as combining
from node_agent.apps.dataflow.operators import synthetic as synthetic
from node_agent.apps.dataflow.faces import operators as _video_operators  # noqa: F401
from node_agent.apps.dataflow.faces import queries as _video_queries  # noqa: F401
