"""What runs on every node of a Rove testbed. Never imports ``orchestrator``."""

__version__ = "0.1.0.dev0"
