"""Captured traffic of the routing daemons: layers for scapy, and a listing for people."""
