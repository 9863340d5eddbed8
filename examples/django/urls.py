"""The page, its token, and Django's own pages for signing in and out."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path
from views import tasks, token

urlpatterns = [
    path("", tasks),
    path("token", token),
    path("accounts/login/", LoginView.as_view(), name="login"),
    path("accounts/logout/", LogoutView.as_view(next_page="/"), name="logout"),
]
