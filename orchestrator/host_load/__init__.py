"""Whether machines kept up with a run in real time: their load is measured, summed up and judged.

Backends start a probe (``local.HostWatch``, or one over SSH) and ask ``judgement`` and ``files`` at the end.
"""
