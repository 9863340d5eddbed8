"""The hub of a web process, around the native state machine that decides what clients are told.

process   the machine, its clock, its frames and what it wants done
logs      reads the notification logs
moving    follows the newest grid epoch
wishes    registers, renews, replays
watches   notices changed rules and deleted collections
documents the kind of subscription: queries of documents
"""
