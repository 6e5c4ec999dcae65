"""Runs planned experiments: drives a backend through the phases, judges the run, takes everything down.

Import ``invocation.Invocation`` for one `rove run` or `rove sweep`, ``resumption`` to go on with a sweep,
``teardown`` for `rove down`, ``rejudging.rejudge`` for `rove collect`, ``standing_network.hold`` for
`rove up`.
"""
