"""Switching policies of your own: what a policy is given, what it answers, and how it is declared.

This is what files of users import; ``node_agent.apps.dataflow.switching`` implements it.
"""

from node_agent.apps.dataflow.model.decision import Candidate, Rule, Situation, Threshold
from node_agent.apps.dataflow.switching.policy import SwitchingPolicy
from node_agent.apps.dataflow.switching.route import Choice, Hop, spread

__all__ = ["Candidate", "Choice", "Hop", "Rule", "Situation", "SwitchingPolicy", "Threshold", "spread"]
