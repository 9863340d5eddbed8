"""Keeps views in step with their collections.

A separate process reads the write streams, as the grid nodes do:

    streams         the write streams of a grid epoch, read without gaps
    shape           what a document contributes to a view
    backfill        the existing documents, in one snapshot
    generation      one build of a view's rows in the storage node
    view            one view, and its next step
    updater         carries the entries of streams to views
    stream_follower the main loop for the views of one backend
    follower        the service; of several processes, one follows
    health          the state of views for probes, scrapers and people

The storage node keeps, for each document, the last version that it has seen and its contribution.
It skips versions that are not newer, so images may arrive twice and in any order, from the backfill
and from the streams at once. It also stores how far each stream has been read, so a follower that
was killed resumes there. When a stream has been trimmed past that position, or the streams have
been replaced (a grid epoch, a restored backup, an emptied Valkey; for native collections also a
storage node that was killed), what was missed is unknown: a new generation is filled beside the old
one, which answers until then.
"""
