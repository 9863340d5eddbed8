"""Datasets in the control plane.

forms      validation of request bodies
checks     cross-checks between the parts of a definition
actions    create, change and drop, with quota and audit log
describe   a dataset as the API shows it
views      the calls
removal    removes a dropped dataset's files, and its tables in the Iceberg catalogue
cleaner    removes a tenant's datasets
"""
