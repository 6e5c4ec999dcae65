"""AODV (RFC 3561): a reactive routing protocol, whose routes are looked for when a packet needs one.

Left out, all optional in the RFC: local repair, subnets and multicast. A node that restarts begins with a
higher sequence number, taken from the clock, instead of keeping silent for a while.
"""
