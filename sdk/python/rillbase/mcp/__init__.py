"""A server of the Model Context Protocol: assistants query a tenant's data with its tools.

    RILLBASE_URL=http://127.0.0.1:8080 RILLBASE_KEY=rbk_… python -m rillbase.mcp

The guide is `docs/guide/assistants.md` in the repository.
"""
