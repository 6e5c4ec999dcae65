"""The AODV routing protocol (RFC 3561), which searches for a route when a packet needs one.

``service.AodvService`` runs it on a virtual host, ``process`` as a daemon on a machine; other rooms import
these, ``config`` and ``reader``. Not implemented, all optional in the RFC: local repair, subnets, multicast.
After a restart a node uses a higher sequence number, taken from the clock, instead of staying silent.
"""
