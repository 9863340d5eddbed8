"""Request bodies of sources."""

from __future__ import annotations

import re

from rest_framework import serializers

from foundation.api.bodies import BodySerializer
from tenants.api.forms import PatternField

MAX_KEY_COLUMNS, MAX_COLUMNS = 8, 500


class SqlName(PatternField):
    """An SQL name as in the catalogue, case-sensitive and without quotes, of at most 63 bytes."""

    pattern = re.compile(r"[^\x00]{1,63}")
    complaint = "A name as in the database's catalogue, of at most 63 characters."


class SourceChange(BodySerializer):
    """The fields of a source that can be changed."""

    connection = serializers.CharField(
        max_length=2048,
        help_text="`postgresql://user:password@host:5432/database?sslmode=require`. The user must "
        "be allowed to replicate, and to read and publish the table. Responses omit the password.",
    )
    paused = serializers.BooleanField(
        default=False, help_text="Whether changes wait in the database's log."
    )


class SourceCreation(SourceChange):
    """The fields of a new source."""

    schema = SqlName(default="public")
    table = SqlName()
    key = serializers.ListField(
        child=SqlName(),
        min_length=1,
        max_length=MAX_KEY_COLUMNS,
        allow_null=True,
        default=None,
        help_text="Columns of a unique index that form the document's `_id`; null: the primary "
        "key.",
    )
    columns = serializers.ListField(
        child=SqlName(),
        min_length=1,
        max_length=MAX_COLUMNS,
        allow_null=True,
        default=None,
        help_text="Columns that documents contain; null: all.",
    )
