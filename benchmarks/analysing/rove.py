"""Analyses a sweep with the product, as `rove analyze` does:
``python -m benchmarks.analysing.rove SWEEP``.
"""

import sys
from pathlib import Path

from orchestrator.analytics.pipeline import analyze

if __name__ == "__main__":
    analyze([Path(sys.argv[1])])
