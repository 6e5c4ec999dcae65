"""What our routing daemons have in common: who belongs to the ad-hoc network, and seals of their messages.

``olsr``, ``aodv`` and the orchestrator import ``membership``, ``seal`` and ``process`` from it.
"""
