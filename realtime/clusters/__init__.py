"""Grids of tenants' own: what the control plane says of them, and what runs them on Kubernetes.

forms, views   the `cluster` resource in the control plane
actions        it is wanted, changed and given up; the row is all that these write
describe       a cluster as the API shows it
grids          which grids there are, and how their nodes stand

Everything else makes the world look like the row, in `kubernetes/`.
"""
