"""Keeps views in step with their collections.

A separate process reads the write streams, as the grid nodes do:

    streams    the write streams of a grid epoch, read without gaps
    shape      the contribution of a document to a view
    backfill   the existing documents, in one snapshot
    generation one build of a view's rows in the storage node
    view       one view, and its next step
    follower   the main loop; of several processes, one follows
    health     the state of views for probes, metrics and operators

The storage node keeps, for each document, the last version that it has seen and its contribution.
It skips versions that are not newer, so images may arrive twice and in any order, from the backfill
and from the streams at once. It also stores the position in each stream, so a killed follower
resumes there. If a stream has been trimmed past that position, or the streams have been replaced (a
grid epoch, a restored backup, an emptied Valkey), the missed writes are unknown. Then a new
generation is filled, while the old one serves queries.
"""
