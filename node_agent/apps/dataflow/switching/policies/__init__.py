"""Rove's own switching policies: one file each, with its function, its words, and the value ``POLICY``.

They are listed in ``switching.policy``; nothing else imports them.
"""
