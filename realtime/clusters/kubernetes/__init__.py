"""Tenants' clusters on Kubernetes, in the order of the steps that create one.

desired_spec      derives a cluster's specification from its row and the settings
cluster_spec      the specification: the only input of the objects
objects/          the objects, a pure function of the specification
server            the API server; `connection` finds it
differences       compares an object's actual and desired state
steps             brings the objects to the desired state, and reports each step
events            comments on objects, for people with kubectl
progress_printer  progress and status on a terminal
conditions        the conditions of the cluster, and their reasons
reconcile         one run for one tenant, and the result in its row
tasks             the schedule of reconciliations
"""
