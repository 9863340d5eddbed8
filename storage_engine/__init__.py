"""What stands on the storage engine: topics, and tools for its databases.

The engine itself is Rust. Topics reach it through the storage node (`node/`), a separate process;
`tool` opens a database directly.
"""
