"""The backend ``ssh``: every node is a machine of its own."""
