"""The durable record of what an agent did: writing it on the node, reading and checking it afterwards."""
