"""Answers queries as olsrd's plug-ins jsoninfo, txtinfo and netjson do, so that tools for olsrd work with our
daemon.

``server.InfoServer`` is started by ``olsr.process``; nothing else is imported from here.
"""
