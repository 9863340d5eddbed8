"""The connection layer that all products share: WebSockets, server-sent events, tickets.

consumer             accepts WebSockets and hands their messages over
connection           the life of one WebSocket
connection_state     its states, and the table of legal transitions
event_stream, event_stream_consumer
                     one subscription as server-sent events
greeting, callers, tickets
                     authentication of clients: by header, `hello`, `auth` or ticket
messages, frames     what clients send, and what they receive
message_calls        messages that correspond to REST calls; products register them
subscriptions        what can be subscribed to, how subscriptions are admitted, and those that a
                     connection has
outgoing             the queue of frames to one client
connection_registry  all connections of the process: re-checks credentials, sends heartbeats
server_channel       receives the messages of other server processes
credential_rechecks  re-checks connections whose credentials have changed elsewhere
quotas               counts a tenant's connections and subscriptions over all processes
penalty_delay        reads clients that keep sending rejected requests more slowly
write_order          runs writes of one document in the order in which they were sent
"""
