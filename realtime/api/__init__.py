"""The real-time side of the HTTP data plane: tickets, and live queries as Server-Sent Events."""
