"""EMANE's own Python, of which the driver uses the shell."""
