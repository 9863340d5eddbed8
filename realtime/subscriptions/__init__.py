"""What the control plane shows of subscriptions, over all processes, and how a member ends one.

records  each process tells of its own, in short-lived records in Valkey
reading  puts them together
views    `/api/v1/tenants/{tenant}/subscriptions`
"""
