"""Traffic between nodes, as iperf makes it: its section of the file, plan, tables, metrics and report.

``application`` is what the registry knows. Other rooms import nothing from here.
"""
