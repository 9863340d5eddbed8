"""What the control plane shows of subscriptions, over all processes, and how a member ends one.

records            each process reports its subscriptions, in short-lived records in Valkey
subscription_list  puts them together
views              `/api/v1/tenants/{tenant}/subscriptions`
"""
