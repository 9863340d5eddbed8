"""The URLs of documents in the control plane, below `/api/v1/`."""

from __future__ import annotations

from django.urls import URLPattern

from documents.collections import views

control_plane: list[URLPattern] = [*views.urlpatterns]
