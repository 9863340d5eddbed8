"""Keeps views in step with their collections.

A process of its own reads the write streams, as the nodes of the grid do:

    streams    the write streams of a grid epoch, and reading on without a gap
    shape      what a document adds to a view
    backfill   the documents that were there before, in one snapshot
    generation one filling of a view's rows in the storage node
    view       one view, and what of it has to be done next
    follower   the loop around them; of several processes one follows
    health     what is said of them to probes, scrapers and people

The storage node keeps, for each document, the version that it has seen last and what it added. It
passes over versions that are not newer, so images may come twice and in any order, from the
back-fill and from the streams at once; and with them it keeps how far each stream has been read,
so a follower that was killed goes on where it was. When a stream has been trimmed behind that
place, or the streams are others (a grid epoch, a restored backup, an emptied Valkey), nobody knows
what was missed: a new generation is filled beside the old one, which answers until then.
"""
