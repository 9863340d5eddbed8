"""Tenants' clusters on Kubernetes, in the order in which one comes about.

wish         makes of a row and of settings what a cluster shall be
wanted       which is this: all that its objects are made of
objects/     the objects, a pure function of that
server       the API server; `connection` finds it
differences  between an object as it is and as it shall be
steps        makes what is there be what is wanted, and tells each step
events       comments on objects, for people with kubectl
conditions   what holds of the cluster, and why
reconcile    one run for one tenant, and what of it is written into the row
tasks        who is looked after when
"""
