"""Event detection over links that come and go (Comet): what patterns mean, and what nodes do to detect them.

Shared values: ``events``, ``patterns`` (``grammar`` reads them), ``conjuncts``; ``reference`` says which
detections there are. A node is a ``machine`` that does what a ``node_plan`` says; ``journal`` keeps it.
"""
