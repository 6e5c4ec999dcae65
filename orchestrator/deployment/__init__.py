"""Deploys Rove to nodes: packs what each node needs and unpacks it there, without internet.

Import ``facts.probe`` for what a node is, ``bundle.bundle_for`` for what it gets, ``deploy.deploy`` to send
it, ``place.put`` for a run's files, ``wheels.supply`` to download wheels.
"""
