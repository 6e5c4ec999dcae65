"""Seeded schedules of faults over whole agents in virtual time."""
