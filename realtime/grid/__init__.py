"""The grid: its nodes, where they run, and their supervision.

layout      the nodes of a grid epoch, according to the database
node        one node: a native loop, and its process
documents   the documents that a node reads when it is rebuilt
launcher    starts nodes: as child `processes`, or as jobs of a `spark` cluster
supervisor  starts and restarts nodes, ends expired queries, exports metrics
"""
