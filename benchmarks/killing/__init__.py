"""Agents killed for real: schedules, and queries whose results tell what they were made of."""
