"""The runtime of replicas whose query promises nothing: short buffers, no acknowledgements.

``dataflow.replicas`` builds ``replica.ReplicaRuntime``; ``dispatcher.Limits`` is part of the configuration.
"""
