"""The paper's figures by our runs: which cells each needs, running and keeping them, statistics, pages.

``benchmarks.paper_figures`` and ``benchmarks.beyond`` use it.
"""
