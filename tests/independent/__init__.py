"""Random small runs whose truth is known, and their analysis in plain Python, by docs/telemetry.md alone.

``world`` and what it uses write run directories; ``recomputed`` and what it uses read them. Neither imports
the analysis.
"""
