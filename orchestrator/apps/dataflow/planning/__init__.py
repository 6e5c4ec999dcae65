"""Plans a dataflow: how many replicas, on which nodes, with which buffers and CPU; draws the plan.

The room ``apps.dataflow`` imports ``placement``, ``buffers``, ``replication`` and the drawings. Policies are
defined with ``placement_policy`` and listed in ``apps.dataflow.spec.placement``.
"""
