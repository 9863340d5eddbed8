"""The staff admin at /staff/: for the people who run the installation, not for tenants."""
