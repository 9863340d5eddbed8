"""The queues, and the routing of tasks.

Webhooks wait for tenants' servers and mails for a mail server; separate queues let an installation
give each its own workers, so that neither delays the rest. Expiry has to be on time: a worker takes
from its queues in turn, so expiry never waits behind a backlog of other work. Clusters need workers
with permissions that the others must not have.
"""

from __future__ import annotations

DEFAULT = "default"
QUEUES = (DEFAULT, "webhooks", "mail", "expiry", "clusters")


def queue_of(task_name: str) -> str:
    """Return the queue of a task: determined by a part of its name, else the default queue."""
    return next((part for part in task_name.split(".") if part in QUEUES), DEFAULT)
