"""Carries messages between nodes for any application: authenticated connections (TCP) and datagrams (UDP).

An application describes its messages with a ``codec.Codec`` and says who may connect with an
``admission.Admission``. Then it uses ``OutgoingConnection`` (``outgoing``), ``ConnectionServer`` (``server``)
and ``Datagrams`` (``datagrams``), with the ``Credentials`` (``authentication``) that the agent gives it.
This room imports ``model`` and ``ports`` only; it knows nothing of tuples, plans or queries.
"""
