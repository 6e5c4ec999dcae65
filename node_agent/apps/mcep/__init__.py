"""Situations around moving objects (mobile complex event processing): queries whose region of interest
moves.

Values: ``geometry``, ``model``, ``windows``, ``graph``. State machines without input and output:
``range_query`` on a server, ``execution`` of an operator, ``delivery`` to the consumer, ``switching`` of
the interest.
"""
