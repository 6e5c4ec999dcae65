"""Reads captured traffic of the routing daemons: layers for scapy, and a listing for people.

``python -m orchestrator.captures FILE.pcap`` lists packets; tests and notebooks import ``olsr``.
"""
