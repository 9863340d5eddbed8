"""Telling tenants' servers what happened: events, signatures, the handshake and deliveries."""
