"""Background tasks that neither a crash nor an absent broker loses.

A task begins as a row of the outbox, written in the transaction whose effect it is
(`run_after_commit`). After the commit a thread of the same process hands it to the broker
(`dispatcher`); what that thread could not hand over, and what is due later, the relay hands over
(`relay`). The row stays until the task has ended (`completion`), so a broker that loses its data
loses no task. One that fails is handed over again after a growing delay; after its last attempt it
becomes a dead letter (`definition`, `failures`).

Everything is at least once: tasks are written so that running twice does what running once does.
"""

from foundation.tasks.dead_letters import AlreadyRequeued, requeue
from foundation.tasks.definition import task
from foundation.tasks.outbox import run_after_commit

__all__ = ["AlreadyRequeued", "requeue", "run_after_commit", "task"]
