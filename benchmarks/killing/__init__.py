"""Kills real agents: schedules, and queries whose results show what they were made from."""
