"""Tenants' dedicated grids: their state in the control plane, and what runs them on Kubernetes.

forms, views   the `cluster` resource in the control plane
actions        create, change and delete a cluster; they write its row only
describe       a cluster as the API shows it
grids          the existing grids and the state of their nodes

Everything else reconciles Kubernetes with the row, in `kubernetes/`.
"""
