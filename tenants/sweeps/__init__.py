"""What is done by the clock, over all tenants: expiry, retention, roll-up, removal.

Each sweep may run twice, be cut off anywhere, and run beside itself: what it has done it does not
do again, and what it left the next run finds. Each takes only so much at a time; under a backlog
it is the next run that goes on.
"""
