"""`/v1/realtime`: the WebSocket protocol of the data plane.

endpoint    accepts connections, next to the HTTP data plane
connection  the life of one connection: greeted, open, expired, closing
callers     who is at the other end, by header, `hello`, `auth` or ticket
messages    what clients say        frames    what they are told
requests    writes and queries, by the same handlers as their REST calls
outgoing    frames on their way to one client
crowd       all connections of the process: credentials looked at again, goodbye
patience    whoever asks for what is refused, again and again, is read more slowly
quotas      how many connections and subscriptions a tenant has over all processes
"""
