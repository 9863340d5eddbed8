"""Lists subscriptions of all processes in the control plane, and ends them for members.

records            each process reports its subscriptions, in short-lived records in Valkey
subscription_list  combines the records
views              `/api/v1/tenants/{tenant}/subscriptions`
"""
