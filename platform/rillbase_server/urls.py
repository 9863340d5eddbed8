"""The URLs of the server."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.generic import RedirectView

from aggregates.urls import control_plane as aggregates_control_plane
from analytics.urls import control_plane as analytics_control_plane
from documents.urls import control_plane as documents_control_plane
from realtime.clusters.views import urlpatterns as cluster
from realtime.delivery_trace.views import urlpatterns as why
from realtime.subscriptions.views import urlpatterns as subscriptions
from rillbase_server import console, documentation, overview, pages
from rillbase_server.staff.site import site
from sources.urls import control_plane as sources_control_plane
from storage_engine.urls import control_plane as topics_control_plane
from tenants.api.urls import control_plane, data_plane

urlpatterns: list[URLPattern | URLResolver] = [
    re_path(console.ADDRESSES, console.page),
    path("docs", RedirectView.as_view(url="/docs/")),
    re_path(documentation.ADDRESSES, documentation.page),
    path("favicon.ico", RedirectView.as_view(url="/static/rillbase/mark.svg", permanent=True)),
    path("api/openapi.json", pages.openapi),
    path("api/docs", pages.docs),
    path(
        "api/v1/",
        include(
            [
                *control_plane,
                *documents_control_plane,
                *topics_control_plane,
                *aggregates_control_plane,
                *analytics_control_plane,
                *sources_control_plane,
                *subscriptions,
                *why,
                *cluster,
                *overview.urlpatterns,
            ]
        ),
    ),
    path("v1/", include(data_plane)),
    path("staff/", site.urls),
]

handler400 = "foundation.api.problems.bad_request"
handler404 = "foundation.api.problems.not_found"
handler500 = "foundation.api.problems.server_error"
