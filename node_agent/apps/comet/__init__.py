"""Event detection over links that come and go (Comet): events, patterns, and what a pattern means.

``events`` and ``patterns`` are the values both halves share; ``grammar`` reads and prints patterns;
``reference`` says which detections there are; ``conjuncts`` is the form that nodes and the planner work on.
"""
