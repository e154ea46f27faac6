"""Polite HTTP: few requests at a time, patience with a server in trouble, and whole bodies only.

One `Transport` serves all threads of a download. It spaces the requests out, waits as long as a
server asks for (``Retry-After``), tries again with growing and jittered pauses, and raises a typed
error in the end. A body shorter than its ``Content-Length`` counts as a broken connection.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from neoranging._version import __version__
from neoranging.exceptions import DownloadError, MissingDependencyError, ResourceNotFoundError

USER_AGENT: Final = f"neoranging/{__version__} (data-set builder; python-requests)"
"""How the client introduces itself."""

ABSENT: Final = frozenset({404, 410})
PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that another try may mend."""

NOT_MODIFIED: Final = 304
CHUNK: Final = 65_536
MAX_BYTES: Final = (
    256 * 2**20
)  # no file of the portal comes near it: a guard against endless bodies


@dataclass(frozen=True, kw_only=True)
class Politeness:
    """How much is asked of a server, and how patiently.

    Parameters
    ----------
    requests_per_second : float
        Over all threads together.
    concurrency : int
        Requests under way at the same time.
    timeout_s : float
        Longest silence of the server [s].
    transfer_s : float
        Longest time for one body [s], however steadily it drips.
    attempts : int
        Requests for one file before giving up.
    backoff_s : float
        Pause after the first failure [s]; doubles with each further one, times a random factor
        between 0.5 and 1.5.
    longest_wait_s : float
        Longest pause [s]. A server that asks for more is left alone: `DownloadError`.
    user_agent : str
        The ``User-Agent`` header.

    Raises
    ------
    ValueError
        If a number is not positive.
    """

    requests_per_second: float = 4.0
    concurrency: int = 2
    timeout_s: float = 60.0
    transfer_s: float = 600.0
    attempts: int = 5
    backoff_s: float = 1.0
    longest_wait_s: float = 300.0
    user_agent: str = USER_AGENT

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, str) and not value > 0:
                raise ValueError(f"{name} must be positive, got {value}")


class Reply(NamedTuple):
    """What a server sent.

    Attributes
    ----------
    content : bytes
        The whole body; empty if `not_modified`.
    not_modified : bool
        The server holds the version that was named in the request.
    etag, last_modified : str
        By which to name this version next time; "" where the server does not say.
    attempts : int
        Requests it took.
    """

    content: bytes
    not_modified: bool = False
    etag: str = ""
    last_modified: str = ""
    attempts: int = 1


class RateLimiter:
    """Spaces requests of several threads evenly, and holds all of them back on demand.

    Parameters
    ----------
    per_second : float
        Requests per second.
    clock, sleep : callable
        Monotonic time [s], and the pause in it.
    """

    def __init__(
        self,
        per_second: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Any] = time.sleep,
    ) -> None:
        self._interval = 1.0 / per_second
        self._clock, self._sleep = clock, sleep
        self._lock = threading.Lock()
        self._next = self._resume = clock()

    def wait(self, stopped: threading.Event | None = None) -> None:
        """Return when it is this thread's turn, or when all is stopped."""
        with self._lock:
            turn = max(self._next, self._resume, self._clock())
            self._next = turn + self._interval
        # a pause may be called while this thread waits for its turn
        while (left := max(turn, self._resume) - self._clock()) > 0.0:
            if stopped and stopped.is_set():
                return
            self._sleep(left)

    def pause(self, seconds: float) -> None:
        """Let no thread start a request for some time."""
        with self._lock:
            self._resume = max(self._resume, self._clock() + seconds)


class Transport:
    """Fetches files over HTTP.

    Parameters
    ----------
    politeness : Politeness, optional
    clock, sleep : callable, optional
        Time [s] and the pause in it; tests put their own.
    seed : int, optional
        Of the jitter.

    Raises
    ------
    MissingDependencyError
        If requests is not installed.
    """

    def __init__(
        self,
        politeness: Politeness | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Any] | None = None,
        seed: int | None = None,
    ) -> None:
        self._requests = _import_requests()
        self.politeness = politeness or Politeness()
        self._stopped = threading.Event()
        sleep = sleep or self._stopped.wait
        self._clock, self._sleep = clock, sleep
        self._random = random.Random(seed)
        self._limiter = RateLimiter(self.politeness.requests_per_second, clock, sleep)
        self._closed = (-math.inf, "")  # until when the server wants no visit, and what it said
        self._sessions: list[Any] = []
        self._local = threading.local()  # a session of requests is not made for several threads

    def close(self) -> None:
        """Close all connections."""
        while self._sessions:
            self._sessions.pop().close()

    def stop(self) -> None:
        """Let all threads that pause or start a request give up, with `StoppedError`."""
        self._stopped.set()

    def start(self) -> None:
        """Undo `stop`."""
        self._stopped.clear()

    def get(self, url: str, *, etag: str = "", last_modified: str = "") -> Reply:
        """Fetch one file.

        Parameters
        ----------
        url : str
        etag, last_modified : str
            The version at hand; the server need not send it again.

        Returns
        -------
        Reply

        Raises
        ------
        ResourceNotFoundError
            If the server has no such file (404, 410).
        DownloadError
            If it refuses, fails at every try, or asks for too long a pause.
        StoppedError
            After `stop`.
        """
        if self._clock() < self._closed[0]:
            raise DownloadError(self._closed[1], url, attempts=0)
        headers = _version_headers(etag, last_modified)
        for attempt in range(1, self.politeness.attempts + 1):
            self._limiter.wait(self._stopped)
            if self._stopped.is_set():
                raise StoppedError(url)
            try:
                return self._once(url, headers)._replace(attempts=attempt)
            except _PassingError as failure:
                self._prepare_next(url, attempt, failure)
        raise AssertionError("unreachable: the last attempt raises")

    def _prepare_next(self, url: str, attempt: int, failure: _PassingError) -> None:
        """Pause before the next attempt, or give up."""
        limits = self.politeness
        asked = failure.retry_after_s
        if asked is not None and asked > limits.longest_wait_s:
            msg = (
                f"{url}: {failure}; the server asks to come back in {asked:.0f} s, longer than the "
                f"{limits.longest_wait_s:g} s this client waits; run again later, nothing is lost"
            )
            self._closed = (self._clock() + asked, msg)
            raise DownloadError(msg, url, failure.status, attempt) from failure
        if asked:
            self._limiter.pause(asked)  # the server is in trouble with all of us, not this thread
        if attempt == limits.attempts:
            msg = f"{url}: {failure}, at the last of {attempt} attempts; try again later"
            raise DownloadError(msg, url, failure.status, attempt) from failure
        backoff = limits.backoff_s * 2.0 ** (attempt - 1) * self._random.uniform(0.5, 1.5)
        self._sleep(max(min(backoff, limits.longest_wait_s), asked or 0.0))

    def _once(self, url: str, headers: Mapping[str, str]) -> Reply:
        errors = self._requests.exceptions
        passing = (errors.ConnectionError, errors.Timeout, errors.ChunkedEncodingError)
        try:
            with self._session().get(
                url, headers=headers, timeout=self.politeness.timeout_s, stream=True
            ) as response:
                return self._reply(url, response, may_be_old=bool(headers))
        except (*passing, errors.ContentDecodingError) as error:
            raise _PassingError(_plain_words(error)) from error
        except errors.RequestException as error:
            raise DownloadError(f"{url}: {_plain_words(error)}; check the address", url) from error

    def _reply(self, url: str, response: Any, *, may_be_old: bool) -> Reply:
        status = int(response.status_code)
        if status in ABSENT:
            msg = f"{url}: the server has no such file (HTTP {status}); check the name"
            raise ResourceNotFoundError(msg, url, status)
        if status in PASSING:
            asked = retry_after_s(response.headers.get("Retry-After", ""))
            raise _PassingError(f"HTTP {status} {response.reason}", status, asked)
        if status != 200 and not (status == NOT_MODIFIED and may_be_old):
            msg = f"{url}: the server refuses (HTTP {status} {response.reason})"
            raise DownloadError(msg, url, status)
        return Reply(
            content=b"" if status == NOT_MODIFIED else self._body(url, response),
            not_modified=status == NOT_MODIFIED,
            etag=response.headers.get("ETag", ""),
            last_modified=response.headers.get("Last-Modified", ""),
        )

    def _body(self, url: str, response: Any) -> bytes:
        end = self._clock() + self.politeness.transfer_s
        parts, size = [], 0
        for part in response.iter_content(CHUNK):
            parts.append(part)
            size += len(part)
            if size > MAX_BYTES:
                raise DownloadError(f"{url}: more than {MAX_BYTES} bytes, not a file of ours", url)
            if self._clock() > end:
                raise _PassingError(f"no end of the body within {self.politeness.transfer_s:g} s")
        # urllib3 checks this as well, from its version 2 on
        announced = response.headers.get("Content-Length", "")
        received = response.raw.tell()
        if announced.isdigit() and received < int(announced):
            raise _PassingError(f"cut short: {received} of {announced} bytes")
        return b"".join(parts)

    def _session(self) -> Any:
        if not hasattr(self._local, "session"):
            session = self._local.session = self._requests.Session()
            session.headers["User-Agent"] = self.politeness.user_agent
            session.hooks["response"].append(_refuse_other_hosts)
            self._sessions.append(session)
        return self._local.session


def _refuse_other_hosts(response: Any, *_: Any, **__: Any) -> None:
    """Stop before a redirect is followed to where nobody was asked to trust."""
    if not response.is_redirect:
        return
    target = urljoin(response.url, response.headers["Location"])
    before, after = urlsplit(response.url), urlsplit(target)
    same = (after.scheme, after.netloc) == (before.scheme, before.netloc)
    is_upgrade = (before.scheme, after.scheme) == ("http", "https")
    is_upgrade &= before.hostname == after.hostname and before.port is after.port is None
    if not (same or is_upgrade):
        raise DownloadError(
            f"{response.url}: the server sends on to another one, {target}, which is not asked; if "
            "that is the new place of the portal, give its address as the base address",
            response.url,
            int(response.status_code),
        )


class StoppedError(Exception):
    """The download was called off; no word about the file."""


class _PassingError(Exception):
    """A failure that another try may mend."""

    def __init__(
        self, message: str, status: int | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s


def retry_after_s(header: str, now: datetime | None = None) -> float | None:
    """Pause [s] that a ``Retry-After`` header asks for, in seconds or until a date.

    Returns
    -------
    float or None
        Not negative; None if the header is missing or says nothing intelligible.
    """
    header = header.strip()
    if header.isdigit():
        return float(header)
    try:
        until = parsedate_to_datetime(header)
    except ValueError:
        return None
    if until.tzinfo is None:  # the grammar demands GMT, and some servers write -0000
        until = until.replace(tzinfo=UTC)
    return max((until - (now or datetime.now(UTC))).total_seconds(), 0.0)


def _version_headers(etag: str, last_modified: str) -> dict[str, str]:
    named = {"If-None-Match": etag, "If-Modified-Since": last_modified}
    return {name: value for name, value in named.items() if value}


def _plain_words(error: Exception) -> str:
    """Say what happened without the nest of exceptions of urllib3."""
    reason: Any = error.args[0] if error.args else error
    reason = getattr(reason, "reason", reason)
    text = str(reason)
    return f"{type(error).__name__}: {text.split('): ', 1)[-1] if 'object at' in text else text}"


def _import_requests() -> ModuleType:
    try:
        import requests
    except ImportError as error:
        raise MissingDependencyError.of("downloads", "requests", "remote") from error
    return requests
