"""The hubs of a web process, around the native state machine that decides what clients receive.

process             the hubs of a process: one for the shared grid, one for each dedicated grid
running_hub         one of them: the machine, its clock, its frames and its requests
logs                reads the notification logs
next_grid           which grid epoch a hub follows next
hub_requests        registers, renews, replays
collection_watcher  notices changed rules and deleted collections
query_subscriptions the subscription kind for live queries
"""
