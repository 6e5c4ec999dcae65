"""Operators and how a replica runs them. Importing this package registers the built-in kinds."""

from node_agent.dataflow import combining as combining
from node_agent.dataflow import synthetic as synthetic
