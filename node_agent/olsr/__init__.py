"""The OLSR routing protocol (RFC 3626) with link quality, compatible with olsrd.

``daemon.Olsr`` is the protocol without I/O; ``service.OlsrService`` runs it on a virtual host, ``process`` as
a daemon on a machine. Other rooms import these, ``config``, ``reader`` and ``wire``.
"""
