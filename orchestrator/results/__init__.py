"""What tables, metrics and report sections are, for applications and the core that contribute them.

``contribution`` has the types, ``registry`` the contributions that there are, ``inputs`` a run that can be
analysed, ``views`` and ``markup`` what sections are made of. Nothing in here starts or imports Spark.
"""
