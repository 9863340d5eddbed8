"""Background tasks that neither a crash nor an absent broker loses.

A task starts as a row of the outbox, written in the transaction whose effect it is
(`run_after_commit`). After the commit, a thread of the same process sends it to the broker
(`dispatcher`); the relay (`relay`) sends what that thread could not, and what is due later. The row
stays until the task has ended (`completion`), so a broker that loses its data loses no task. A task
that fails is sent again after a growing delay; after its last attempt it becomes a dead letter
(`definition`, `failures`). Tasks run at least once, so they are idempotent.
"""

from foundation.tasks.dead_letters import AlreadyRequeued, requeue
from foundation.tasks.definition import task
from foundation.tasks.outbox import run_after_commit

__all__ = ["AlreadyRequeued", "requeue", "run_after_commit", "task"]
