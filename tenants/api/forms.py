"""Fields shared by several request bodies."""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import ClassVar
from urllib.parse import urlsplit

from rest_framework import serializers

from foundation.names import NAME_PATTERN
from tenants.models.tenant import SLUG_PATTERN


class PatternField(serializers.CharField):
    """A string that must match a pattern. White space is not trimmed but rejected."""

    pattern: ClassVar[re.Pattern[str]]
    complaint: ClassVar[str]

    def run_validation(self, data: object = serializers.empty) -> object:
        text = super().run_validation(data)
        if isinstance(text, str) and not self.pattern.fullmatch(text):
            raise serializers.ValidationError(self.complaint, "invalid_name")
        return text


class SlugField(PatternField):
    """A tenant's slug."""

    pattern = re.compile(SLUG_PATTERN)
    complaint = "2 to 48 characters: a lower-case letter, then letters, digits and single dashes."


class NameField(PatternField):
    """A machine-readable name."""

    pattern = re.compile(NAME_PATTERN)
    complaint = "1 to 63 characters: a lower-case letter, then letters, digits, _ and -."


class LabelField(PatternField):
    """A display name: one line, at most 100 characters, none of them a control character."""

    pattern = re.compile(r"[^\x00-\x1f\x7f]{0,100}")
    complaint = "At most 100 characters on one line, without control characters."


class OriginField(serializers.CharField):
    """An origin as browsers send it: scheme, host, port, nothing else."""

    def to_internal_value(self, data: object) -> str:
        text = str(super().to_internal_value(data))  # type: ignore[arg-type]
        if not _is_origin(text):
            raise serializers.ValidationError(
                "An origin has the form https://app.example.com.", "invalid_origin"
            )
        return text.lower()


def _is_origin(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return (
            parts.scheme in ("https", "http")
            and bool(parts.hostname)
            and text == f"{parts.scheme}://{parts.netloc}"
            and not set(parts.netloc) & set("@*")
            and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        return False


class NetworkField(serializers.CharField):
    """A network in CIDR notation, or one address."""

    def to_internal_value(self, data: object) -> str:
        text = str(super().to_internal_value(data))  # type: ignore[arg-type]
        try:
            return str(ip_network(text))
        except ValueError:
            raise serializers.ValidationError(
                "A network has the form 192.0.2.0/24 or 2001:db8::/32.", "invalid_network"
            ) from None
