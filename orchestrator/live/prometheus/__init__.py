"""What Prometheus gets of runs: samples as text, targets, its configuration and rules, and back-fills.

The server imports ``handlers``, `rove serve --prometheus` ``service``, and `rove export` ``backfill``.
"""
