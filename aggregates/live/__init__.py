"""Subscriptions to an aggregate's rows.

wanted  what a subscriber says
feed    watches in the storage node, over one connection a tenant
rows    what a subscriber holds, and what it has to be told
kind    the kind of subscription that `aggregate` names
frames  what subscribers are told, as JSON text
tokens  with which they come back
"""
