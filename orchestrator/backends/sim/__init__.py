"""The backend ``sim``: the same agents on a modelled radio, in one process that jumps from event to event.

``kind`` registers it. Other rooms import nothing else, except benchmarks and tests: ``simulation``.
"""
