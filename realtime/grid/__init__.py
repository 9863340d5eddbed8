"""The grid: which nodes there are, where they run, and how they are kept running.

layout      the nodes of a grid epoch, as the database says
node        one node: a native loop, and its process
documents   what a node reads of the database when it is rebuilt
launcher    what starts nodes: `processes` beside this one, or jobs of a `spark` cluster
supervisor  starts nodes, starts them again, lets queries end, measures
"""
