"""Topics as a product.

forms, actions, views            the control plane
api                              publish, subscribe, list: the calls of the data plane
live                             the subscription kind and the event streams
facts                            what a call needs to know about its topic
publish, subscribe               requests, and the commands for the storage node
places, positions                places, positions and names of subscriptions, as the API has them
topic_json                       topics, publications and subscriptions in responses
webhook_delivery, deliveries     subscriptions that deliver to webhooks
removal, cleaner                 tasks for dropped topics and deleted tenants
"""
