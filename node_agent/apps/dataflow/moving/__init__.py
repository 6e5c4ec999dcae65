"""Operators of a dataflow that move to other nodes while tuples flow: carries ``node_agent.migration.live``.

``node.MovingParts`` is what one node does for it, ``state`` what an operator must offer.
"""
