"""From a committed write to the event layer: at least once, and provably complete.

images       what a transaction tells the event layer
entries      its bytes in a stream
events       the Valkey function through which everybody appends
publisher    appends right after the commit, in the process that wrote
relay        appends what publishers could not, and the ticks that prove streams complete

docs/protocol.md explains the rules and which race forced each of them.
"""
