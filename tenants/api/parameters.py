"""Reads query parameters of the control plane."""

from __future__ import annotations

import datetime

from django.http import HttpRequest
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from foundation.errors import FieldProblem, InvalidParameter

#: Within these, neither sums of intervals nor time zone offsets overflow.
YEARS = range(2000, 2200)


def moment(request: HttpRequest, name: str) -> datetime.datetime | None:
    """Return a time, or None if the parameter is missing."""
    text = request.GET.get(name)
    if text is None:
        return None
    try:
        value = parse_datetime(text)
    except ValueError:
        value = None
    if value is None or timezone.is_naive(value):
        raise invalid(name, "A time has the form 2026-11-21T10:00:00Z.")
    if value.year not in YEARS:
        raise invalid(name, f"The year must be from {YEARS.start} to {YEARS.stop - 1}.")
    return value.astimezone(datetime.UTC)


def invalid(name: str, detail: str) -> InvalidParameter:
    """Return the error for a parameter that is not valid."""
    return InvalidParameter(errors=[FieldProblem(name, "invalid", detail)])
