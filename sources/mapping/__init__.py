"""What becomes of a row: its columns as text, as PostgreSQL shows them, and a document."""
