"""Publishes the writes of native collections.

The storage node's log has each write once, in the order in which the writes became visible. The
feed reads it and appends the after-images to write streams of their own, with ticks that prove the
streams complete up to a position of the log.

- `publisher.py`: what is read and appended, in which order; where a feed continues.
- `servers.py`: the storage node and the event layer.
- `loop.py`: runs the feed while this process's relay holds the lease.
- `progress.py`: how far it has published the log, as any process can read it.
"""
