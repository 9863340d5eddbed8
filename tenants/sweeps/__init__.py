"""Periodic work over all tenants: expiry, retention, roll-up, removal.

Each sweep may run twice, be interrupted anywhere, and run concurrently with itself: it never
repeats completed work, and the next run continues with the rest. Each run processes a bounded
amount; under a backlog the next run continues.
"""
