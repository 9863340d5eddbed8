"""The URLs of datasets in the control plane, below `/api/v1/`."""

from __future__ import annotations

from django.urls import URLPattern

from analytics.definitions import views

control_plane: list[URLPattern] = [*views.urlpatterns]
