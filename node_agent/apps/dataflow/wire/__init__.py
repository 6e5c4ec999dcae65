"""What replicas of a dataflow send each other, on top of ``node_agent.transport``.

Connections and servers are given ``codec.CODEC`` and ``admission.PlanAdmission``; ``messages`` are what they
carry, ``notices`` the datagrams between routers. Of the dataflow's rooms it imports only ``model``.
"""
