"""Moves a running operator to another host (Alg. 4.4): pure state machines, one a role, messages in and out.

``Host`` (old and new), ``Upstream``, ``Downstream`` and ``Coordinator`` are for applications, ``Movable`` is
what an operator must offer.
"""
