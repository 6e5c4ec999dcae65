"""Operators and how a replica runs them. Importing this package registers the built-in kinds."""

from node_agent.dataflow import combining as combining
from node_agent.dataflow import synthetic as synthetic
from node_agent.vision import operators as _video_operators  # noqa: F401
from node_agent.vision import queries as _video_queries  # noqa: F401
