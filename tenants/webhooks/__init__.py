"""Notifying tenants' servers: events, signatures, the handshake and deliveries."""
