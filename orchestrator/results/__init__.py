"""Defines tables, metrics and report sections, for applications and the core that contribute them.

``contribution`` has the types, ``registry`` the known contributions, ``inputs`` a run that can be analysed,
``views`` and ``markup`` the building blocks of sections. Nothing in here starts or imports Spark.
"""
