"""Datasets in the control plane.

forms validation of request bodies checks what the parts of a definition demand of one another
actions making, changing and dropping, with quota and audit log describe a dataset as the API shows
it views the calls removal what goes with a dropped dataset: files, and tables in Iceberg's
catalogue cleaner what goes with a tenant
"""
