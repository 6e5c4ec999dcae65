"""Connections to real nodes over SSH: commands, programs, files, host keys.

Other rooms import ``connection.Connection``, ``fleet.on_all``, ``host_keys``, ``enrolment`` and ``errors``.
It knows neither runs nor experiments, except for the inventory's ``Host``.
"""
