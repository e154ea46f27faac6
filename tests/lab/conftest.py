"""A portal on the loopback interface that serves the client well, or goes wrong on demand."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from astropy.table import QTable

from neoranging.lab.archive.http import Politeness, Transport
from neoranging.observations.rwo.write import format_rwo
from neoranging.samples import sample

CATALOGUE_HEAD = """\
format  = 'OEF2.0'       ! file format
rectype = '1L'           ! record type (1L/ML)
elem    = 'KEP'          ! type of orbital elements
refsys  = ECLM J2000     ! default reference system
END_OF_HEADER
! Name, Epoch(MJD), a, e, i, long. node, arg. peric., mean anomaly, absolute magnitude, slope param.
"""
ORBIT_HEAD = """\
format  = 'OEF2.0'       ! file format
rectype = 'ML'           ! record type (1L/ML)
refsys  = ECLM J2000     ! default reference system
END_OF_HEADER
"""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address) -> None:
        # a client that is killed between two requests resets the connection it kept open
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class LoopbackPortal:
    """Files by path, and for each path what goes wrong before they are served."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.mishaps: dict[str, list[Callable[[BaseHTTPRequestHandler, bytes], None]]] = (
            defaultdict(list)
        )
        self.delay_s = 0.0
        self.requests: list[tuple[str, float, dict[str, str]]] = []
        self.etags = True
        self.under_way = self.most_under_way = 0
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}/~neodys2"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}
        )
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def put(self, path: str, content: bytes | str) -> None:
        self.files[path] = content.encode() if isinstance(content, str) else content

    def goes_wrong(self, path: str, *mishaps) -> None:
        """Let the next requests for a path go wrong, one after the other."""
        self.mishaps[path].extend(mishaps)

    @property
    def asked(self) -> Counter[str]:
        return Counter(path for path, _, _ in self.requests)

    def _handler(portal) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = self.path.removeprefix("/~neodys2/")
                with portal._lock:
                    portal.requests.append((path, time.monotonic(), dict(self.headers)))
                    portal.under_way += 1
                    portal.most_under_way = max(portal.most_under_way, portal.under_way)
                    mishap = portal.mishaps[path].pop(0) if portal.mishaps[path] else serve
                try:
                    time.sleep(portal.delay_s)
                    mishap(self, portal.files.get(path, b""))
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True
                finally:
                    with portal._lock:
                        portal.under_way -= 1

            def log_message(self, *_) -> None:
                pass

        def serve(handler: BaseHTTPRequestHandler, content: bytes) -> None:
            etag = f'"{hash(content) & 0xFFFFFFFF:x}"' if portal.etags else ""
            if not content:
                answer(handler, 404, b"<html>no such file</html>")
            elif etag and handler.headers.get("If-None-Match") == etag:
                answer(handler, 304, b"")
            else:
                answer(handler, 200, content, {"ETag": etag} if etag else {})

        return Handler


def answer(handler, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
    handler.send_response(status)
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def status(code: int, **headers: str):
    """Answer with a status; Retry_After stands for Retry-After."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, content: answer(handler, code, b"busy", named)


def cut(share: float = 0.5, *, announced: bool = True):
    """Close the connection in the middle of the body."""

    def mishap(handler, content: bytes) -> None:
        handler.send_response(200)
        if announced:
            handler.send_header("Content-Length", str(len(content)))
        else:
            handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(content[: int(share * len(content))])
        handler.close_connection = True

    return mishap


def body(content: bytes, headers: dict[str, str] | None = None):
    """Serve something else, with status 200."""
    return lambda handler, _: answer(handler, 200, content, headers)


def no_http(handler, content: bytes) -> None:
    handler.wfile.write(b"\x00\xffthis is no HTTP\r\n\r\n")
    handler.close_connection = True


def hang_up(handler, content: bytes) -> None:
    handler.close_connection = True


def silence(seconds: float):
    return lambda handler, content: time.sleep(seconds)


@pytest.fixture
def mishaps():
    """Mishaps: functions that make entries for ``LoopbackPortal.goes_wrong``."""
    import types

    return types.SimpleNamespace(
        status=status, cut=cut, body=body, no_http=no_http, hang_up=hang_up, silence=silence
    )


@pytest.fixture
def portal(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackPortal]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    loopback = LoopbackPortal()
    yield loopback
    loopback.close()


class FakeTime:
    """A clock that runs only while someone sleeps; `set_on` a transport, it is its time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sleeps: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps += [seconds] if seconds else []
        self.now += seconds

    def set_on(self, transport: Transport) -> Transport:
        transport._clock, transport._sleep = self.clock, self.sleep
        transport._next_turn = self.now
        return transport


@pytest.fixture
def fake_time() -> FakeTime:
    return FakeTime()


FAST = Politeness(
    requests_per_second=5000.0, timeout_s=5.0, backoff_s=1e-3, longest_wait_s=2.0, attempts=3
)


@pytest.fixture
def fast() -> Politeness:
    """Limits under which a test does not take long."""
    return FAST


@pytest.fixture
def make_transport():
    transports = []

    def make(politeness: Politeness = FAST) -> Transport:
        transports.append(Transport(politeness))
        return transports[-1]

    yield make
    for transport in transports:
        transport.close()


def rwo_text(name: str = "2024 YR4", *, version: int = 3) -> str:
    """A file of observations as OrbFit writes it, of tracklets in the package."""
    table = QTable.read(sample("2024YR4" if name == "2024 YR4" else "impactors"))
    table = table[table["designation"] == name]
    table.meta["version"] = version
    text = format_rwo(table, version=version)
    head = f"version = {version:3d}\nerrmod  = 'vfcc17'\nRMSast  =   3.56997E-01\n"
    if "END_OF_HEADER" not in text:
        text = head + "END_OF_HEADER\n" + text
    return text


@pytest.fixture
def make_rwo():
    return rwo_text


def catalogue_line(name: str, elements, epoch: float = 61000.0, h_mag: float = 20.0) -> str:
    a, ecc, inc, raan, argp, mean = elements
    quoted = f"'{name}'"
    return (
        f"{quoted:<16}{epoch:13.6f} {a:23.16E} {ecc:23.16E} {inc:23.16E} {raan:23.16E} "
        f"{argp:23.16E} {mean:23.16E} {h_mag:6.2f} {0.15:5.2f}   0\n"
    )


@pytest.fixture
def make_catalogue():
    """Catalogue of a mapping of names to six elements [au, deg]."""

    def make(elements, **options) -> str:
        lines = [catalogue_line(name, values, **options) for name, values in elements.items()]
        return CATALOGUE_HEAD + "".join(lines)

    return make


@pytest.fixture
def make_orbit():
    """Single-object file of Keplerian elements [au, deg]."""

    def make(name: str, elements, epoch: float = 60000.0, extra: str = "") -> str:
        numbers = " ".join(f"{value:.16E}" for value in elements)
        return (
            f"{ORBIT_HEAD}{name}\n! Keplerian elements\n KEP {numbers}\n"
            f" MJD {epoch:.9f} TDT\n MAG  22.100  0.150\n{extra}"
        )

    return make


@pytest.fixture(scope="session")
def scheduler() -> Iterator[str]:
    """Address of a scheduler of Dask on this machine, with two workers."""
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sockets and loops of the cluster
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster:
            yield cluster.scheduler_address
