"""Rove's own placement policies: one file each, with its function and the value ``POLICY``.

They are listed in ``apps.dataflow.spec.placement``; nothing else imports them.
"""
