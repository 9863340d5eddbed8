"""A write as a call, and its effect on documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rillbase import ejson
from rillbase.http import ApiRequest
from rillbase.ids import key
from rillbase.local.pending import Confirmation, LocalWrites, UnconfirmedWrite, WriteOperation
from rillbase.shapes import Document


@dataclass(frozen=True, slots=True)
class WriteJob:
    """One call that writes."""

    request: ApiRequest
    operations: Sequence[WriteOperation]

    def lanes(self) -> list[str]:
        """Return the lane of the job, by what it writes to: jobs of a lane are sent one after the
        other.
        """
        return list({f"{one.collection}/{key(one.id)}": None for one in self.operations})

    def text(self) -> str:
        """Return the job as text for `read_job`."""
        operations = [asdict(operation) for operation in self.operations]
        return ejson.dumps({"request": asdict(self.request), "operations": operations})


def read_job(text: str) -> WriteJob:
    content = ejson.loads(text)
    operations = [WriteOperation(**operation) for operation in content["operations"]]
    return WriteJob(ApiRequest(**content["request"]), operations)


def confirm(local: LocalWrites, pending: Sequence[UnconfirmedWrite], answer: object) -> None:
    """Pass the server's response to a job to the local view."""
    content = answer if isinstance(answer, dict) else {}
    results: Sequence[Document] = content.get("results", [content])
    for one, result in zip(pending, results, strict=False):
        # In a bulk call with independent operations, some may have been rejected.
        if "error" in result:
            local.undo([one])
        else:
            local.confirm(one, Confirmation(result.get("version"), result.get("document")))
