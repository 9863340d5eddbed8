"""A team's tasks: the server checks each write, and pushes a live query to browsers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from os import environ
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi import Path as PathParameter
from fastapi.responses import JSONResponse
from fastapi.sse import EventSourceResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, Field, StringConstraints

from rillbase import AsyncClient, AsyncCollection, ObjectId, RillbaseError


class NewTask(BaseModel):
    title: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class Progress(BaseModel):
    done: bool


class Task(BaseModel):
    id: str = Field(serialization_alias="_id")
    title: str
    done: bool


class Board(BaseModel):
    state: str
    tasks: list[Task]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with AsyncClient(environ["RILLBASE_URL"], key=environ["RILLBASE_KEY"]) as client:
        app.state.tasks = client.collection("published-tasks")
        yield


def collection(request: Request) -> AsyncCollection:
    tasks: AsyncCollection = request.app.state.tasks
    return tasks


Tasks = Annotated[AsyncCollection, Depends(collection)]
TaskId = Annotated[str, PathParameter(pattern="^[0-9a-f]{24}$")]
app = FastAPI(title="Tasks", lifespan=lifespan)


@app.get("/tasks/live", response_class=EventSourceResponse)
async def live(tasks: Tasks) -> AsyncIterator[Board]:
    """Send the newest tasks, and send them again after each change."""
    async for snapshot in tasks.sort("created", descending=True).limit(20).watch():
        if snapshot.has_answer:
            yield Board(
                state=snapshot.state, tasks=[_task(document) for document in snapshot.documents]
            )


@app.post("/tasks", status_code=201)
async def add(task: NewTask, tasks: Tasks) -> Task:
    """Add a task. Check your users' session and rights here."""
    document = {"title": task.title, "done": False, "created": datetime.now(UTC)}
    written = await tasks.insert(document)
    return _task({**document, "_id": written.id})


@app.patch("/tasks/{task_id}", status_code=204)
async def set_done(task_id: TaskId, progress: Progress, tasks: Tasks) -> None:
    """Mark a task as done or not."""
    await tasks.update(ObjectId(task_id), {"$set": {"done": progress.done}})


@app.exception_handler(RillbaseError)
async def rejected(_: Request, error: RillbaseError) -> JSONResponse:
    if error.code == "not_found":
        return JSONResponse({"detail": "There is no such task."}, 404)
    return JSONResponse({"detail": error.code}, 503 if error.is_temporary else 500)


def _task(document: dict[str, Any]) -> Task:
    return Task(id=str(document["_id"]), title=document["title"], done=document["done"])


HERE = Path(__file__).parent
app.mount("/shared", StaticFiles(directory=HERE.parent / "shared" / "public"))
app.mount("/", StaticFiles(directory=HERE / "page", html=True))
