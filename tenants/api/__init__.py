"""The control-plane API over tenants: one file per resource."""
