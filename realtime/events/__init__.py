"""The event layer of the grid: leases, notification log, request stream and registry.

grid.lua  the Valkey function through which all of them change
layer its interface for Python
"""
