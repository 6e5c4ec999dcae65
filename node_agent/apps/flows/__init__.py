"""Traffic between nodes, as iperf makes it: UDP at a rate, TCP as fast as it goes, on and off, from a trace.

``application`` is what agents run; ``model`` is what the orchestrator hands a node; ``events`` are its
telemetry; ``delays`` reads the histograms in them. Other modules are the run-time's own.
"""
