"""Placement ``explicit``: the file names the nodes of each operator."""

from collections.abc import Mapping

from orchestrator.apps.dataflow.planning.arrangement import Slot
from orchestrator.apps.dataflow.planning.placement_policy import PlacementPolicy, Site
from orchestrator.apps.dataflow.spec.placement import ExplicitPlacement


def listed_nodes(site: Site, counts: Mapping[str, int]) -> dict[Slot, str]:
    settings = site.settings
    assert isinstance(settings, ExplicitPlacement)
    return {
        (name, i): node
        for name, k in counts.items()
        for i, node in enumerate(settings.nodes.get(name, ())[:k])
    }


POLICY = PlacementPolicy(listed_nodes, "nodes by operator, one for each replica", ExplicitPlacement)
