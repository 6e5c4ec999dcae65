"""Puts items together to what an operator processes at once: single items, windows, joins. Pure.

Import ``assembler_for`` and ``Assembler`` from ``assembly``, ``Unit`` and ``Gaps`` from ``units``.
"""
