"""Subscriptions to an aggregate's rows.

subscribe_request  parses the subscribe message
feed               watches in the storage node, over one connection per tenant
rows               the rows that a subscriber has, and the differences to send
kind               the subscription kind that `aggregate` names
frames             the frames for subscribers, as JSON text
tokens             resume tokens
"""
