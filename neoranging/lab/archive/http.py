"""Polite HTTP: few requests at a time, patience with a server in trouble, and whole bodies only.

requests asks, and the policy of urllib3 (`urllib3.util.Retry`) says what is worth another try and
after which pause. The loop around them is here because theirs ends at the headers: it would take a
body that breaks off for a final failure, would not count its own requests for the rate, and would
not let one thread's ``Retry-After`` hold back the others.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from neoranging._version import __version__
from neoranging.exceptions import DownloadError, ResourceNotFoundError, extra

if TYPE_CHECKING:
    from requests import Response

USER_AGENT: Final = f"neoranging/{__version__} (data-set builder; python-requests)"
"""``User-Agent`` header by which the client introduces itself."""

ABSENT: Final = (404, 410)
NOT_MODIFIED: Final = 304
PASSING: Final = (408, 425, 429, 500, 502, 503, 504)
"""Statuses of HTTP that another try may mend."""

CHUNK_BYTES: Final = 65_536
MAX_BYTES: Final = 256 * 2**20  # far above any file of the portal: a guard against endless bodies


@dataclass(frozen=True, kw_only=True)
class Politeness:
    """Limits to what is asked of a server, and patience with it.

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
        Pause after the first failure [s]; doubles with each further one, and up to as much again
        is added at random to those.
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
    """Answer of a server to a request for a file.

    Attributes
    ----------
    content : bytes or None
        The whole body; None if the server holds the version that the request named.
    etag, last_modified : str
        By which to name this version next time; "" where the server does not say.
    attempts : int
        Requests it took.
    """

    content: bytes | None
    etag: str = ""
    last_modified: str = ""
    attempts: int = 1


class StoppedError(Exception):
    """End of a download that was called off; it says nothing about the file."""


class Transport:
    """Files over HTTP, for all threads of a download.

    Parameters
    ----------
    politeness : Politeness, optional

    Attributes
    ----------
    stopped : threading.Event
        While it is set, all threads that wait or begin a request leave with `StoppedError`.

    Raises
    ------
    MissingDependencyError
        If requests is not installed.
    """

    def __init__(self, politeness: Politeness | None = None) -> None:
        with extra("lab", "downloads"):
            import requests
            from urllib3.util import Retry
        limits = self.politeness = politeness or Politeness()
        self.stopped = threading.Event()
        self._turns = threading.Lock()
        self._next_turn = self._clock()
        self._retries = Retry(
            limits.attempts - 1,
            status_forcelist=PASSING,
            backoff_factor=limits.backoff_s,
            backoff_jitter=limits.backoff_s,
            backoff_max=limits.longest_wait_s,
        )
        # serves all threads: connections and cookies are locked, and nothing else of it changes
        self._session = requests.Session()
        self._session.headers["User-Agent"] = limits.user_agent
        self._session.hooks["response"].append(_refuse_other_hosts)

    def close(self) -> None:
        """Close all connections."""
        self._session.close()

    def get(self, url: str, etag: str = "", last_modified: str = "") -> Reply:
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
            After `stopped` was set.
        """
        from requests import RequestException
        from urllib3.exceptions import HTTPError, MaxRetryError

        version = {"If-None-Match": etag, "If-Modified-Since": last_modified}
        headers = {name: value for name, value in version.items() if value}
        retries = self._retries
        while True:
            attempts = len(retries.history) + 1
            self._wait_for_turn(url, attempts - 1)
            try:
                with self._session.get(
                    url, headers=headers, timeout=self.politeness.timeout_s, stream=True
                ) as response:
                    status = response.status_code
                    if not retries.is_retry("GET", status):
                        return self._reply(url, response, bool(headers), attempts)
                    failure = f"HTTP {status} {response.reason}"
                    self._hold_back(response.headers.get("Retry-After", ""))
            except (RequestException, HTTPError) as error:
                failure, status = _plain_words(error), None
                if isinstance(error, ValueError):  # of requests: no address, or not of HTTP
                    raise DownloadError(f"{url}: {failure}; check the address", url) from error
            try:
                retries = retries.increment("GET", url)
            except MaxRetryError as error:
                msg = f"{url}: {failure}, at the last of {attempts} attempts; try again later"
                raise DownloadError(msg, url, status, attempts) from error
            # urllib3 would ask again at once the first time
            self._sleep(max(retries.get_backoff_time(), self.politeness.backoff_s))

    def _reply(self, url: str, response: Response, may_be_old: bool, attempts: int) -> Reply:
        status = response.status_code
        if status in ABSENT:
            msg = f"{url}: the server has no such file (HTTP {status}); check the name"
            raise ResourceNotFoundError(msg, url, status, attempts)
        if status != 200 and not (status == NOT_MODIFIED and may_be_old):
            msg = f"{url}: the server refuses (HTTP {status} {response.reason})"
            raise DownloadError(msg, url, status, attempts)
        return Reply(
            None if status == NOT_MODIFIED else self._body(url, response),
            response.headers.get("ETag", ""),
            response.headers.get("Last-Modified", ""),
            attempts,
        )

    def _body(self, url: str, response: Response) -> bytes:
        """Whole body; one shorter than its ``Content-Length`` is an error of urllib3."""
        from urllib3.exceptions import HTTPError

        end = self._clock() + self.politeness.transfer_s
        body = bytearray()
        # read1 takes what there is: iter_content would wait for a full chunk however slow it comes
        while part := response.raw.read1(CHUNK_BYTES, decode_content=True):
            body += part
            if len(body) > MAX_BYTES:
                raise DownloadError(f"{url}: more than {MAX_BYTES} bytes, not a file of ours", url)
            if self._clock() > end:
                raise HTTPError(f"no end of the body within {self.politeness.transfer_s:g} s")
        return bytes(body)

    def _wait_for_turn(self, url: str, attempts: int) -> None:
        """Wait until this thread may ask: at the agreed rate, and not in a pause of the server."""
        longest = self.politeness.longest_wait_s
        with self._turns:
            turn = self._clock()
            # the server may ask for a pause while this thread sleeps
            while (pause := self._next_turn - self._clock()) > 0.0:
                turn = self._next_turn
                if pause > longest:
                    raise DownloadError(
                        f"{url}: the server asks to come back in {pause:.0f} s, longer than the "
                        f"{longest:g} s this client waits; run again later, nothing is lost",
                        url,
                        attempts=attempts,
                    )
                self._sleep(pause)
            self._sleep(0.0)  # leaves if all is stopped
            turn += 1.0 / self.politeness.requests_per_second
            self._next_turn = max(self._next_turn, turn)

    def _hold_back(self, retry_after: str) -> None:
        """Let no thread ask before the time of a ``Retry-After`` header, seconds or a date."""
        from urllib3.exceptions import InvalidHeader

        try:
            pause = self._retries.parse_retry_after(retry_after) if retry_after else 0.0
        except InvalidHeader:
            pause = 0.0  # the usual pause of this thread has to do
        self._next_turn = max(self._next_turn, self._clock() + pause)

    def _clock(self) -> float:
        return time.monotonic()

    def _sleep(self, seconds: float) -> None:
        if self.stopped.wait(seconds):
            raise StoppedError


def _refuse_other_hosts(response: Response, *_: Any, **__: Any) -> None:
    """Stop before a redirect is followed to where nobody was asked to trust."""
    if not response.is_redirect:
        return
    target = urljoin(response.url, response.headers["Location"])
    before, after = urlsplit(response.url), urlsplit(target)
    if after.netloc != before.netloc or after.scheme not in (before.scheme, "https"):
        raise DownloadError(
            f"{response.url}: the server sends on to another one, {target}, which is not asked; if "
            "that is the new place of the portal, give its address as the base address",
            response.url,
            response.status_code,
        )


def _plain_words(error: Exception) -> str:
    """Message of an error, without the nest of exceptions of requests and urllib3."""
    reason: Any = error.args[0] if error.args else error
    reason = getattr(reason, "reason", reason)
    return f"{type(error).__name__}: {str(reason).split('): ')[-1]}"
