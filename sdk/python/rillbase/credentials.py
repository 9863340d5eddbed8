"""The client's credentials, over HTTP and over the socket."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from rillbase.errors import TokenUnavailable

GetToken: TypeAlias = Callable[[], str | Awaitable[str]]
PUBLISHABLE = "rbp_"


@dataclass(slots=True)
class Credentials:
    """Holds the current token and fetches new ones."""

    #: A secret key (`rbk_…`) or a publishable key (`rbp_…`).
    key: str | None = None
    #: A JWT of an end user, with a publishable key, or a personal token, with `tenant`.
    token: str | None = None
    tenant: str | None = None
    #: Called when a token is needed, and again when it was rejected.
    get_token: GetToken | None = None
    _cached_token: str | None = field(default=None, init=False)

    @property
    def can_renew(self) -> bool:
        return self.get_token is not None

    def forget(self) -> None:
        """Forget the current token: the server rejected it."""
        self._cached_token = None

    async def headers(self) -> dict[str, str]:
        """Return the headers of a call."""
        headers = {}
        bearer = await self._token()
        if self.key is not None and self.key.startswith(PUBLISHABLE):
            headers["Rillbase-Key"] = self.key
        elif bearer is None:
            bearer = self.key
        if bearer is not None:
            headers["Authorization"] = f"Bearer {bearer}"
        if self.tenant is not None:
            headers["Rillbase-Tenant"] = self.tenant
        return headers

    async def hello(self) -> dict[str, str]:
        """Return the members of `hello` and `auth`."""
        token = await self._token()
        key = self.key
        if key is not None and not key.startswith(PUBLISHABLE):
            key, token = None, token or key
        members = {"token": token, "key": key, "tenant": self.tenant}
        return {name: text for name, text in members.items() if text is not None}

    async def _token(self) -> str | None:
        if self.get_token is None:
            return self.token
        if self._cached_token is None:
            self._cached_token = await self._fetch(self.get_token)
        return self._cached_token

    async def _fetch(self, get_token: GetToken) -> str:
        try:
            token = get_token()
            return await token if inspect.isawaitable(token) else token
        except Exception as error:
            # The caller's code: any exception means that there is no token now.
            raise TokenUnavailable from error
