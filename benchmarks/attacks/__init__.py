"""What the siege does: hostile messages for every parser, and attacks on a live network of agents.

``parsers`` has one target for each parser of foreign bytes, ``live`` the attacks on processes, ``liar`` what a
node may claim when the run is over. ``table`` lists all of them: a new attack is one entry there.
"""
