"""A mail server for tests: speaks enough SMTP to accept emails, or to reject them on request."""

from __future__ import annotations

import asyncio
import base64
import ssl
import threading
from dataclasses import dataclass, field
from typing import Self

from tests.waiting import wait_until


@dataclass
class SmtpServer:
    """Listens on a free port of the loopback interface in a separate thread."""

    #: Answers to commands, by their first word, in place of the usual ones.
    answers: dict[str, str] = field(default_factory=dict)
    #: Extensions that are announced.
    extensions: tuple[str, ...] = ("AUTH PLAIN",)
    #: With a certificate the server speaks TLS: from the first byte, or from STARTTLS on.
    tls: ssl.SSLContext | None = None
    starttls: ssl.SSLContext | None = None
    port: int = 0
    messages: list[bytes] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)
    #: Commands that arrived in clear text.
    overheard: list[str] = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="smtp")
        self._thread.start()
        wait_until(lambda: self.port != 0, what="the mail server to listen")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(self._finish())

    async def _finish(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 tests ESMTP\r\n")
        try:
            while line := await reader.readline():
                words = line.decode().strip().split(" ")
                command = words[0].upper()
                is_secret = writer.get_extra_info("ssl_object") is not None
                if not is_secret:
                    self.overheard.append(command)
                answer = await self._answer(command, words, reader, writer)
                writer.write(f"{answer}\r\n".encode())
                await writer.drain()
                if command == "STARTTLS" and self.starttls is not None:
                    await writer.start_tls(self.starttls)
                if command == "QUIT":
                    break
        except (ssl.SSLError, ConnectionError):
            return  # a client that does not trust the certificate hangs up
        finally:
            writer.close()

    async def _answer(
        self,
        command: str,
        words: list[str],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> str:
        if command in self.answers:
            return self.answers[command]
        match command:
            case "EHLO":
                offered = ["STARTTLS"] if self.starttls else []
                lines = ["tests", *self.extensions, *offered]
                return "\r\n".join(f"250-{line}" for line in lines[:-1]) + f"\r\n250 {lines[-1]}"
            case "STARTTLS" if self.starttls is not None:
                return "220 go on"
            case "AUTH":
                _, user, password = base64.b64decode(words[2]).decode().split("\0")
                self.logins.append((user, password))
                return "235 welcome"
            case "RCPT":
                self.recipients.append(words[1].removeprefix("TO:").strip("<>"))
                return "250 ok"
            case "DATA":
                writer.write(b"354 go on\r\n")
                self.messages.append(await reader.readuntil(b"\r\n.\r\n"))
                return "250 taken"
            case "QUIT":
                return "221 bye"
            case _:
                return "250 ok"
