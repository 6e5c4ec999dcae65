"""Links between replicas: how tuples cross from one node to the next."""
