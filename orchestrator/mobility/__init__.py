"""How nodes move: every model becomes a ``Trace``, the same for the same seed in every backend."""
