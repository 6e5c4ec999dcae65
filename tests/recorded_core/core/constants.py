"""As in CORE."""

COREDPY_VERSION = "9.2.1"
