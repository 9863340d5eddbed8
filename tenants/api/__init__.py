"""The control-plane API over tenants: one file a resource."""
