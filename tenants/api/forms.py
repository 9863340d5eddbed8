"""Fields that several request bodies share."""

from __future__ import annotations

from ipaddress import ip_network
from urllib.parse import urlsplit

from django.core.validators import RegexValidator
from rest_framework import serializers

from tenants.models.tenant import SLUG_PATTERN

NAME_PATTERN = r"[a-z][a-z0-9_-]{0,62}"


class SlugField(serializers.CharField):
    """A tenant's slug."""

    def __init__(self, **options: object) -> None:
        super().__init__(max_length=48, trim_whitespace=False, **options)
        self.validators.append(
            RegexValidator(
                rf"\A{SLUG_PATTERN}\Z",
                "2 to 48 characters: a lower-case letter, then letters, digits and single dashes.",
                "invalid_name",
            )
        )


class NameField(serializers.CharField):
    """A machine-readable name."""

    def __init__(self, **options: object) -> None:
        super().__init__(max_length=63, trim_whitespace=False, **options)
        self.validators.append(
            RegexValidator(
                rf"\A{NAME_PATTERN}\Z",
                "1 to 63 characters: a lower-case letter, then letters, digits, _ and -.",
                "invalid_name",
            )
        )


class LabelField(serializers.CharField):
    """A name for people: one line, without control characters."""

    def __init__(self, **options: object) -> None:
        options.setdefault("max_length", 100)
        super().__init__(**options)
        self.validators.append(
            RegexValidator(r"\A[^\x00-\x1f\x7f]*\Z", "Control characters are not allowed.")
        )


class OriginField(serializers.CharField):
    """An origin as browsers send it: scheme, host, port, nothing else."""

    def to_internal_value(self, data: object) -> str:
        text: str = super().to_internal_value(data)
        try:
            parts = urlsplit(text)
            valid = (
                parts.scheme in ("https", "http")
                and bool(parts.hostname)
                and text == f"{parts.scheme}://{parts.netloc}"
                and "@" not in parts.netloc
                and "*" not in parts.netloc
                and (parts.port is None or parts.port > 0)
            )
        except ValueError:
            valid = False
        if not valid:
            raise serializers.ValidationError(
                "An origin has the form https://app.example.com.", "invalid_origin"
            )
        return text.lower()


class NetworkField(serializers.CharField):
    """A network in CIDR notation, or one address."""

    def to_internal_value(self, data: object) -> str:
        text: str = super().to_internal_value(data)
        try:
            return str(ip_network(text))
        except ValueError:
            raise serializers.ValidationError(
                "A network has the form 192.0.2.0/24 or 2001:db8::/32.", "invalid_network"
            ) from None
