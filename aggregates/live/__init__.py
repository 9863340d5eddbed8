"""Subscriptions to an aggregate's rows.

subscribe_request  parses the subscribe message
feed               watches in the storage node, over one connection per tenant
rows               what a subscriber holds, and what has to be sent to it
kind               the subscription kind that `aggregate` names
frames             the frames for subscribers, as JSON text
tokens             resume tokens
"""
