"""Backup of a whole installation that the launcher runs, and its restoration.

A backup contains PostgreSQL, the storage node, the files of datasets and the secrets, all at one
point in time (`consistent_point`). Everything is encrypted before it is written (`sealing`) into a
repository (`repository`), a folder that may be on another disk or a mounted bucket.
"""
