"""Tenants: who owns data, who may access it, with which credentials and within which limits.

Users, tenants, memberships, invitations, personal tokens, API keys, token issuers, plans and
quotas, usage, the audit log and webhooks, with the control-plane API over them.
"""
