"""PostgreSQL for the hot path: pipelined, prepared, binary, on the event loop.

Control-plane code uses Django's ORM. Reading and writing documents goes through here: several
statements travel in one round trip, results arrive as bytes, and nothing is parsed twice.
"""

from foundation.postgres.pool import SessionPool
from foundation.postgres.session import PostgresSession, Statement, StatementResult, StatementRunner

__all__ = ["PostgresSession", "SessionPool", "Statement", "StatementResult", "StatementRunner"]
