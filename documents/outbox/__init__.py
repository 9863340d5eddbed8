"""From a committed write to the event layer: at least once, and provably complete.

after_images  what a transaction sends to the event layer
entries       its bytes in a stream
events        the Valkey function through which all entries are appended
publisher     appends right after the commit, in the process that wrote
machine       the relay: appends what publishers could not, and ticks that prove streams complete

docs/protocol.md explains the rules and which race forced each of them.
"""
