"""The URLs of topics in the control plane, below `/api/v1/`."""

from __future__ import annotations

from django.urls import URLPattern

from storage_engine.topics import views

control_plane: list[URLPattern] = [*views.urlpatterns]
