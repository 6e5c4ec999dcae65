"""Contacts: who can talk with whom when, as a value.

Import ``plan.ContactPlan``; a topology with ``radio: {model: contacts}`` makes one (``spec.contacts``).
``schedules`` makes contacts from a rule, ``traces`` reads them from files, ``chart`` draws them.
"""
