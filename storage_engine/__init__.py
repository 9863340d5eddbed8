"""Topics, and tools for databases of the storage engine.

The engine itself is Rust. Topics reach it through the storage node (`node/`), a separate process;
`tool` opens a database directly.
"""
