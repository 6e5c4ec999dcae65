"""Implements the siege: hostile messages for every parser, and attacks on a live network of agents.

``parsers`` has a target for each parser of foreign bytes, listed in ``table``; ``live`` the attacks on
processes, listed in ``live.siege`` and ``live.routing``; ``liar`` what a node may claim when the run is over.
A new attack is one function and one line in such a list.
"""
