"""The process of Spark's driver for statements.

It has no secrets but that of Spark itself, and lives as long as its standard input. Its argument is
its niceness. A line of the input is a JSON object; so is a line of its standard output.

    parent  {"start": {"master", "secret", "memory_mib"}}   driver  {"started": true}
    parent  {"run": NAME, "statement": {…}}                 driver  {"ran": NAME, "result": {…}}
    parent  {"cancel": NAME}

A result has the files with the rows, or "problem" (an error of the statement), "unsupported" (what
Spark cannot do in the same way) or "gone" (a file was removed).
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, TypedDict

import pyarrow.parquet as pq
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 -- as in every program of Spark
from pyspark.sql import types as T  # noqa: N812

from analytics.query.plan_json import read_plan
from analytics.schema import AnalyticsTable, tables_of
from analytics.sql.parameters import bound
from analytics.sql.spark.grammar import Untranslatable
from analytics.sql.spark.later_rows import LaterRows, LaterRowsTask, in_folder, run_task
from analytics.sql.spark.table_views import SparkViews, columns_of, needed_tables
from analytics.sql.spark.translation import SparkStatement, translate
from analytics.sql.tables import SqlTable, sql_tables
from foundation.errors import ApiError, EvaluationFailed, QueryTooExpensive
from foundation.json_types import JsonObject, JsonValue
from foundation.sandbox.problems import problem_json, reported
from foundation.spark import SparkApplication

logger = logging.getLogger(__name__)

#: Threads that wait for Spark: more than the statements that the parent sends at once.
_THREADS = 8
_OUT_OF_MEMORY_SCORE = "500"
#: Above this limit, sorted rows are not kept in the driver's memory.
_TOP_ROWS = 100_000
_SETTINGS: Mapping[str, str] = {
    "spark.scheduler.mode": "FAIR",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    # A statement's text is never parsed, and what is parsed refers to nothing outside.
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.execution.topKSortFallbackThreshold": str(_TOP_ROWS),
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.crossJoin.enabled": "true",
    # Scales are those of DuckDB.
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    # What is sent to all executors is in the driver's memory first.
    "spark.driver.maxResultSize": "256m",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
_JAVA_OPTIONS = "-XX:+UseParallelGC -XX:-UsePerfData -XX:+ExitOnOutOfMemoryError"
#: How long tasks of a cancelled statement may continue. Spark interrupts them between rows.
_CANCEL_S, _CANCEL_POLL_S = 10.0, 0.2
_FILES = "part-*.parquet"


class StatementJson(TypedDict):
    """A statement to execute."""

    sql: str
    parameters: list[JsonValue] | dict[str, JsonValue]
    definition: str
    plans: dict[str, dict[str, Any]]
    state: int
    limit: int
    #: The dataset's folder, and the new one for the result.
    folder: str
    target: str


class _Driver:
    """One Spark application, and the statements that it executes."""

    def __init__(self, output: IO[str], start: Mapping[str, Any]) -> None:
        self._output = output
        self._writing = threading.Lock()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="statements")
        self._running: set[str] = set()
        self._cancelled: set[str] = set()
        warehouse = Path(os.environ["TMPDIR"]) / "warehouse"
        self._application = SparkApplication(
            "rillbase-sql",
            start["master"],
            secret=start["secret"],
            settings={
                **_SETTINGS,
                "spark.sql.warehouse.dir": str(warehouse),
            },
            memory_mib=start["memory_mib"],
        )
        # What Spark logs of statements is about their plans and values; errors are in results.
        self._application.context.setLogLevel("FATAL")
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        self._session = SparkSession(self._application.context)
        self.reply({"started": True})

    def reply(self, message: JsonObject) -> None:
        with self._writing:
            self._output.write(json.dumps(message) + "\n")
            self._output.flush()

    def run(self, name: str, statement: StatementJson) -> None:
        self._running.add(name)
        self._threads.submit(self._run, name, statement)

    def cancel(self, name: str) -> None:
        if name not in self._running:
            return
        self._cancelled.add(name)
        with suppress(Py4JError, OSError):
            self._application.context.cancelJobGroup(name)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._application.close()

    def _run(self, name: str, statement: StatementJson) -> None:
        try:
            result = self._result(name, statement)
        except Untranslatable as error:
            result = {"unsupported": str(error)}
        except ApiError as error:
            result = {"problem": problem_json(error)}
        except FileNotFoundError:
            result = {"gone": True}
        except Exception as error:
            logger.exception("a statement failed: %s", name)
            self._exit_without_spark()
            result = {"failed": type(error).__name__}
        if name in self._cancelled:
            self._await_tasks(name)
        self._running.discard(name)
        self._cancelled.discard(name)
        self.reply({"ran": name, "result": result})

    def _await_tasks(self, name: str) -> None:
        """Wait for the tasks of a cancelled statement; end this process if they continue."""
        until_s = time.monotonic() + _CANCEL_S
        try:
            while self._active_tasks(name):
                if time.monotonic() > until_s:
                    logger.warning("a cancelled statement continues: Spark is restarted")
                    self._exit()
                time.sleep(_CANCEL_POLL_S)
        except (Py4JError, OSError):
            self._exit_without_spark()

    def _active_tasks(self, name: str) -> int:
        tracker = self._application.context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(name)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return sum(stage.numActiveTasks for stage in stages if stage)

    def _exit_without_spark(self) -> None:
        """End this process if Spark has stopped. Its parent starts another one."""
        try:
            if not self._application.stopped:
                return
        except (Py4JError, OSError):
            pass
        self._exit()

    def _exit(self) -> None:
        self._application.kill()
        os._exit(1)

    def _result(self, name: str, statement: StatementJson) -> JsonObject:
        tables = tables_of(statement["definition"])
        named = sql_tables(tables)
        translated = translate(statement["sql"], _columns(named), bound(statement["parameters"]))
        context = self._application.context
        # The datasets' statements have equal shares; within a pool, the first one has precedence.
        context.setLocalProperty("spark.scheduler.pool", Path(statement["folder"]).name)
        context.setJobGroup(name, name, interruptOnCancel=True)
        if name in self._cancelled:
            raise EvaluationFailed("The statement was cancelled.")
        try:
            return self._execute(statement, tables, named, translated)
        except (AnalysisException, ParseException) as error:
            logger.info("Spark does not execute a statement: %s", error.getCondition())
            raise Untranslatable(_FORM) from None
        except (PySparkException, Py4JJavaError) as error:
            raise _explained(error) from None

    def _execute(
        self,
        statement: StatementJson,
        tables: Mapping[str, AnalyticsTable],
        named: Mapping[str, SqlTable],
        translated: SparkStatement,
    ) -> JsonObject:
        folder, target = statement["folder"], statement["target"]
        # The driver may have been lost while it wrote.
        shutil.rmtree(target, ignore_errors=True)
        needed = needed_tables(named, translated.tables, translated.columns)
        if not needed.keys() <= statement["plans"].keys():
            raise Untranslatable(_FORM)
        plans = {
            table: read_plan(statement["state"], in_folder(statement["plans"][table], folder))
            for table in needed
        }
        later = self._later(statement, needed)
        session = self._session.newSession()
        views = SparkViews(session, tables, plans, later)
        for name in translated.tables:
            one = named[name]
            views.create(one, columns_of(one, translated.columns) or [*one.table.key])
        result = session.sql(translated.text, args=dict(translated.texts))
        rows = _storable(result).limit(statement["limit"] + 1)
        output = f"{target}/rows"
        rows.write.parquet(output)
        files = sorted(path.name for path in Path(output).glob(_FILES))
        if translated.needs_rows and not any(_rows_in(Path(output) / file) for file in files):
            raise Untranslatable("ROLLUP and CUBE without rows are not available on Spark.")
        return {"files": [f"rows/{file}" for file in files]}

    def _later(
        self, statement: StatementJson, needed: Mapping[str, list[str]]
    ) -> dict[str, LaterRows]:
        """Return the files of the rows that are not in the authority yet, by table."""
        tasks = {
            table: LaterRowsTask(
                statement["definition"],
                table,
                columns,
                statement["state"],
                statement["plans"][table],
                statement["folder"],
                f"{statement['target']}/later",
            )
            for table, columns in needed.items()
            if statement["plans"][table]["later"] or statement["plans"][table]["id_keys"]
        }
        if not tasks:
            return {}
        texts = [json.dumps(asdict(task)) for task in tasks.values()]
        context = self._application.context
        answers = context.parallelize(texts, len(texts)).map(run_task).collect()
        later = {}
        for table, answer in zip(tasks, map(json.loads, answers), strict=True):
            if "gone" in answer:
                raise FileNotFoundError
            if "problem" in answer:
                raise reported(answer["problem"], (QueryTooExpensive, EvaluationFailed))
            if answer["later"] is not None:
                later[table] = LaterRows(**answer["later"])
        return later


def _rows_in(file: Path) -> int:
    return int(pq.read_metadata(file).num_rows)


def _columns(named: Mapping[str, SqlTable]) -> dict[str, dict[str, str]]:
    """Return the columns of the tables that Spark can read: those without composite keys."""
    return {
        name: {column: one.table.shown[column] for column in one.view.columns}
        for name, one in named.items()
        if not one.table.parts
    }


def _storable(result: DataFrame) -> DataFrame:
    """Return rows that Parquet can store, with columns named by their places."""
    columns = result.toDF(*(f"c{number}" for number in range(len(result.columns))))
    selected = []
    for field in columns.schema.fields:
        if isinstance(field.dataType, T.NullType):
            selected.append(F.lit(None).cast("string").alias(field.name))
        elif isinstance(field.dataType, _INTERVALS):
            raise Untranslatable("Intervals in results are not available on Spark.")
        else:
            selected.append(F.col(field.name))
    return columns.select(*selected)


_INTERVALS = (T.DayTimeIntervalType, T.YearMonthIntervalType, T.CalendarIntervalType)


def _explained(error: PySparkException | Py4JJavaError) -> Exception:
    """Return why a statement has no result, without Spark's own text."""
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    if condition in _CONDITIONS:
        return EvaluationFailed(_CONDITIONS[condition])
    if condition == _NO_ZONE:
        return Untranslatable("The time zone is not available on Spark.")
    if condition == _RAISED and isinstance(error, PySparkException):
        # The texts are those of rules.
        return EvaluationFailed(str((error.getMessageParameters() or {}).get("errorMessage")))
    text = str(error)
    logger.warning("a statement failed on Spark: %s", text[:2_000])
    if "OutOfMemoryError" in text or "Cannot grow BufferHolder" in text:
        return QueryTooExpensive("The statement takes more memory than Spark has.")
    if isinstance(error, Py4JJavaError) and "SparkException" not in text:
        # Spark's optimizer fails for some statements, such as correlated subqueries over unions.
        return Untranslatable(_FORM)
    return EvaluationFailed("A value of the statement could not be computed.")


_FORM = "The statement has a form that is not available on Spark."
_CONDITIONS: Mapping[str | None, str] = {
    "ARITHMETIC_OVERFLOW": "A number is out of the range of its type.",
    "CAST_OVERFLOW": "A number is out of the range of its type.",
    "NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION": "A number is out of the range of its type.",
    "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION": "A number is out of the range of its type.",
    "SCALAR_SUBQUERY_TOO_MANY_ROWS": "More than one row returned by a subquery.",
}
_RAISED, _NO_ZONE = "USER_RAISED_EXCEPTION", "INVALID_TIMEZONE"


def main() -> None:
    """Serve the parent until it closes standard input."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    os.nice(int(sys.argv[1]))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OUT_OF_MEMORY_SCORE)
    os.environ["JAVA_TOOL_OPTIONS"] = _JAVA_OPTIONS
    # What the JVM and libraries print must not end up among the replies.
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    driver: _Driver | None = None
    try:
        for line in sys.stdin:
            message = json.loads(line)
            if "start" in message:
                driver = _Driver(output, message["start"])
            elif driver is not None and "run" in message:
                driver.run(message["run"], message["statement"])
            elif driver is not None and "cancel" in message:
                driver.cancel(message["cancel"])
    finally:
        if driver is not None:
            driver.close()


if __name__ == "__main__":
    main()
