"""Reuse on brokers: what connects operators and brokers to the decisions in ``reuse``.

``SharedSelections`` from ``on_broker`` is what a broker has of it; ``Offering`` from ``offering`` is an
operator whose selections a manager decides about.
"""
