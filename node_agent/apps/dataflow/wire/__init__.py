"""What replicas of a dataflow send each other, on top of ``node_agent.transport``.

``codec.CODEC`` and ``admission.PlanAdmission`` are given to connections and servers; ``messages`` are what
they carry; ``notices`` are the datagrams between routers. May be imported by all rooms of the dataflow but
``model``; imports ``model`` and ``transport`` only.
"""
