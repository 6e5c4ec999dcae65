from tests.extension.harness import rove

__all__ = ["rove"]
