"""Plans which broker runs an operator when (MigCEP), for any application whose operators can move.

Values in, values and messages out: ``time_graph`` and ``shortest_path`` make a plan, ``planner`` and
``reservations`` agree on plans between operators and with brokers, ``mobility`` and ``learned`` foretell
where mobiles are, ``policies`` plan although that is uncertain, ``live`` moves an operator.
"""
