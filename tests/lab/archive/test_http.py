"""HTTP against a server in every mood."""

from __future__ import annotations

import functools
import gzip
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from neoranging._version import __version__
from neoranging.exceptions import DownloadError, MissingDependencyError, ResourceNotFoundError
from neoranging.lab.archive.http import (
    Politeness,
    StoppedError,
    Transport,
)

pytest.importorskip("requests")

PATH = "mpcobs/433.rwo"
CONTENT = b"x" * 200_000


@pytest.fixture
def url(portal) -> str:
    portal.put(PATH, CONTENT)
    return f"{portal.url}/{PATH}"


def test_a_file_and_the_version_of_it(portal, url, make_transport):
    transport = make_transport()
    reply = transport.get(url)
    assert reply.content == CONTENT
    assert reply.attempts == 1
    again = transport.get(url, etag=reply.etag)
    assert again.content is None


def test_the_user_agent_names_the_package(portal, url, make_transport):
    make_transport().get(url)
    assert portal.requests[0][2]["User-Agent"].startswith(f"neoranging/{__version__} ")


@pytest.mark.parametrize(
    "mishap", ["hang_up", "no_http", "cut", "cut_at_once", "429", "500", "502", "503", "504"]
)
def test_passing_failures_are_tried_again(portal, url, mishaps, make_transport, mishap):
    what = {
        "hang_up": mishaps.hang_up,
        "no_http": mishaps.no_http,
        "cut": mishaps.cut(0.7),
        "cut_at_once": mishaps.cut(0.0),
    }.get(mishap) or mishaps.status(int(mishap))
    portal.goes_wrong(PATH, what, what)
    reply = make_transport().get(url)
    assert reply.content == CONTENT
    assert reply.attempts == 3


@pytest.mark.parametrize("mishap", ["hang_up", "no_http", "cut", "status"])
def test_gives_up_with_a_typed_error(portal, url, mishaps, make_transport, mishap):
    made = {"cut": mishaps.cut(), "status": mishaps.status(503)}
    portal.goes_wrong(PATH, *[made.get(mishap) or getattr(mishaps, mishap)] * 3)
    with pytest.raises(DownloadError, match="at the last of 3 attempts") as caught:
        make_transport().get(url)
    assert caught.value.attempts == 3
    assert caught.value.url == url
    assert caught.value.status == (503 if mishap == "status" else None)
    assert "object at 0x" not in str(caught.value)
    assert portal.asked[PATH] == 3


@pytest.mark.parametrize("packed", [False, True])
def test_a_body_in_chunks_without_a_length(portal, url, make_transport, packed):
    def chunks(handler, content, *, n: int = 3, whole: bool = True) -> None:
        body = gzip.compress(content, mtime=0) if packed else content
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        if packed:
            handler.send_header("Content-Encoding", "gzip")
        handler.end_headers()
        for part in (body[: len(body) // n], body[len(body) // n :])[: 1 + whole]:
            handler.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        handler.wfile.write(b"0\r\n\r\n" if whole else b"")
        handler.close_connection = not whole

    portal.goes_wrong(PATH, functools.partial(chunks, whole=False), chunks)
    reply = make_transport().get(url)
    assert reply.content == CONTENT
    assert reply.attempts == 2


def test_a_silent_server_times_out(portal, url, mishaps, make_transport):
    limits = Politeness(requests_per_second=1000, timeout_s=0.05, attempts=2, backoff_s=1e-3)
    portal.goes_wrong(PATH, mishaps.silence(0.3))
    assert make_transport(limits).get(url).attempts == 2


def test_a_body_that_drips_is_given_up(portal, url, make_transport):
    def drip(handler, content) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b"x")
            time.sleep(0.01)

    portal.goes_wrong(PATH, drip)
    limits = Politeness(requests_per_second=1000, transfer_s=0.1, attempts=1)
    with pytest.raises(DownloadError, match="no end of the body"):
        make_transport(limits).get(url)
    assert time.monotonic() - portal.requests[0][1] < 0.9


@pytest.mark.parametrize("code", [404, 410])
def test_a_missing_file_is_not_asked_for_twice(portal, url, mishaps, make_transport, code):
    portal.goes_wrong(PATH, mishaps.status(code))
    with pytest.raises(ResourceNotFoundError) as caught:
        make_transport().get(url)
    assert caught.value.status == code
    assert portal.asked[PATH] == 1


@pytest.mark.parametrize("code", [400, 401, 403, 418, 304])
def test_a_refusal_is_not_asked_for_twice(portal, url, mishaps, make_transport, code):
    portal.goes_wrong(PATH, mishaps.status(code))
    with pytest.raises(DownloadError, match=f"HTTP {code}"):
        make_transport().get(url)
    assert portal.asked[PATH] == 1


def test_an_address_that_is_none(make_transport):
    with pytest.raises(DownloadError, match="check the address"):
        make_transport().get("neodys/433.rwo")


def test_no_server_there(make_transport):
    with pytest.raises(DownloadError, match="at the last of 3 attempts"):
        make_transport().get("http://127.0.0.1:9/433.rwo")


# Patience -----------------------------------------------------------------------------------------


def limits(**changes) -> Politeness:
    return Politeness(**{"requests_per_second": 10.0, "attempts": 4, "backoff_s": 2.0} | changes)


def test_pauses_double_and_are_jittered(portal, url, mishaps, make_transport, fake_time):
    portal.goes_wrong(PATH, *[mishaps.status(500)] * 3)
    transport = fake_time.set_on(make_transport(limits()))
    transport.get(url)
    first, *others = fake_time.sleeps
    assert first == 2.0
    for pause, nominal in zip(others, (4.0, 8.0), strict=True):
        assert nominal < pause < nominal + 2.0


def test_pauses_have_a_ceiling(portal, url, mishaps, make_transport, fake_time):
    portal.goes_wrong(PATH, *[mishaps.status(500)] * 3)
    transport = fake_time.set_on(make_transport(limits(longest_wait_s=3.0)))
    transport.get(url)
    assert max(fake_time.sleeps) == 3.0


@pytest.mark.parametrize("code", [429, 503])
@pytest.mark.parametrize("as_date", [False, True])
def test_retry_after_is_honoured(portal, url, mishaps, make_transport, fake_time, code, as_date):
    header = "60"
    if as_date:
        header = format_datetime(datetime.now(UTC) + timedelta(seconds=60.9), usegmt=True)
    portal.goes_wrong(PATH, mishaps.status(code, Retry_After=header))
    transport = fake_time.set_on(make_transport(limits()))
    transport.get(url)
    assert 58.0 < sum(fake_time.sleeps) < 62.0


def test_a_pause_asked_for_holds_back_all_requests(portal, url, mishaps, make_transport, fake_time):
    portal.goes_wrong(PATH, mishaps.status(503, Retry_After="60"))
    transport = fake_time.set_on(make_transport(limits(attempts=1)))
    with pytest.raises(DownloadError):
        transport.get(url)
    assert fake_time.now == 0.0
    transport.get(url)
    assert fake_time.now == pytest.approx(60.0)


def test_a_server_that_wants_no_visit_today_gets_none(
    portal, url, mishaps, make_transport, fake_time
):
    portal.goes_wrong(PATH, mishaps.status(503, Retry_After="7200"))
    transport = fake_time.set_on(make_transport(limits()))
    for _ in range(3):
        with pytest.raises(DownloadError, match=r"come back in 7\d+ s"):
            transport.get(url)
    assert portal.asked[PATH] == 1
    fake_time.now += 7201.0
    assert transport.get(url).content == CONTENT


@pytest.mark.parametrize("header", ["", "soon", "-5", "1.5", "Fri, 31 Dec 1999 23:59:59 GMT"])
def test_a_retry_after_that_asks_for_nothing(
    portal, url, mishaps, make_transport, fake_time, header
):
    portal.goes_wrong(PATH, mishaps.status(503, Retry_After=header))
    transport = fake_time.set_on(make_transport(limits()))
    assert transport.get(url).attempts == 2
    assert fake_time.sleeps == [2.0]


def test_requests_are_spaced(portal, url, make_transport, fake_time):
    transport = fake_time.set_on(make_transport(limits(requests_per_second=4.0)))
    for _ in range(9):
        transport.get(url)
    assert fake_time.now == pytest.approx(2.0)
    fake_time.now += 100.0  # idle time is no credit
    transport.get(url)
    transport.get(url)
    assert fake_time.now == pytest.approx(102.25)


def test_threads_share_the_rate(portal, url, make_transport):
    transport = make_transport(Politeness(requests_per_second=200.0))
    threads = [threading.Thread(target=transport.get, args=(url,)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times = sorted(when for _, when, _ in portal.requests)
    assert len(times) == 20
    assert times[-1] - times[0] > 19 / 200.0 * 0.8


def test_stopping_wakes_those_who_wait(portal, url, mishaps, make_transport):
    portal.goes_wrong(PATH, mishaps.status(503, Retry_After="30"))
    transport = make_transport(Politeness())
    errors: list[Exception] = []

    def get() -> None:
        try:
            transport.get(url)
        except StoppedError as error:
            errors.append(error)

    thread = threading.Thread(target=get)
    thread.start()
    while not portal.requests:
        threading.Event().wait(0.001)
    transport.stopped.set()
    thread.join(5.0)
    assert not thread.is_alive()
    assert len(errors) == 1


@pytest.mark.parametrize("name", ["requests_per_second", "timeout_s", "attempts", "backoff_s"])
def test_limits_are_positive(name):
    with pytest.raises(ValueError, match=name):
        Politeness(**{name: 0})


def test_without_requests_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "requests", None)
    with pytest.raises(MissingDependencyError, match=r"requests.*\[lab\]"):
        Transport()
