"""The storage engine for people: the command line over what `native/engine` does.

The engine itself is Rust and is used through `rillbase_native.Engine`; nothing here is on the way
of a read or a write.
"""
