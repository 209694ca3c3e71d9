"""Tests of the status page in a process that forks, is signalled, or ends."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

import pytest

from jobinfo_cache.statuspage import StatusPage, serve
from tests.support import TIMEOUT, Core
from tests.threads.support import run_child
from tests.unit.statuspage.visits import ask, connected, document, rest
from tests.unit.test_fork import in_child

_PROGRAM = """
    import os, signal, socket, sys, threading
    from jobinfo_cache import Cluster, JobInfoCache
    from jobinfo_cache.statuspage import serve
    from urllib.request import urlopen

    cache = JobInfoCache()
    client = cache.client("http://127.0.0.1:9", Cluster("ns", "one"))
    client.lookup("a")
    page = serve(cache)
    visitor = socket.create_connection(("127.0.0.1", page.port))
    visitor.sendall(b"GET / HT")
    assert b"ns/one" in urlopen(page.url).read()
"""


def test_program_that_forgets_to_close() -> None:
    """An interpreter ends with its own exit code and says nothing, whoever visits."""
    child = run_child(_PROGRAM + "    sys.exit(7)\n")
    assert (child.returncode, child.stdout, child.stderr) == (7, "", "")


def test_page_that_nobody_keeps() -> None:
    """A page whose object was thrown away is served until the program ends."""
    child = run_child(
        _PROGRAM
        + "    url = page.url\n    del page\n    urlopen(url).read()\n    print('served')\n"
    )
    assert (child.returncode, child.stdout, child.stderr) == (0, "served\n", "")


def test_close_in_a_signal_handler() -> None:
    """A handler may close page and cache, whatever it interrupts."""
    child = run_child(
        _PROGRAM
        + """
    def end(*_):
        page.close()
        ended = cache.close(5.0)
        left = [each.name for each in threading.enumerate() if each.name.startswith("jobinfo")]
        print(ended, left, flush=True)
        os._exit(3)

    signal.signal(signal.SIGTERM, end)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
    while True:
        urlopen(page.url).read()
    """
    )
    assert child.stderr == ""
    assert (child.returncode, child.stdout) == (3, "True []\n")


def test_importing_it_is_left_to_those_who_serve() -> None:
    """The library alone does not load the page."""
    child = run_child("import sys, jobinfo_cache; print('jobinfo_cache.statuspage' in sys.modules)")
    assert child.stdout == "False\n"


@contextlib.contextmanager
def child_that_waits() -> Iterator[None]:
    """A forked child that lives meanwhile."""
    inside, gate = os.pipe()
    ready, begun = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(gate)
        os.close(begun)
        os.read(inside, 1)
        os._exit(0)
    os.close(inside)
    os.close(begun)
    assert os.read(ready, 1) == b""  # the child has done what each child does first
    os.close(ready)
    try:
        yield
    finally:
        os.close(gate)
        os.waitpid(child, 0)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
class TestFork:
    """A process that forks while it serves a page."""

    def test_child_has_no_page(self, core: Core, page: StatusPage) -> None:
        """In the child the page is closed, and may be served anew; the parent's goes on."""
        document(page)

        def check() -> bool:
            page.close()
            with serve(core.cache) as own:
                return own.port != page.port and ask(own).status == 200

        assert in_child(check) == 0
        assert document(page)

    def test_child_does_not_keep_the_port(self, core: Core) -> None:
        """While a child lives on, the parent's page is served, and refuses once it is closed."""
        page = serve(core.cache)
        document(page)
        with child_that_waits():
            assert document(page)
            page.close()
            with pytest.raises(ConnectionRefusedError):
                connected(page)

    def test_fork_in_the_middle_of_a_visit(self, page: StatusPage) -> None:
        """A visit that is under way is the parent's alone, and ends while the child lives on."""
        with connected(page) as visitor:
            visitor.sendall(b"GET /healthz HTTP/1.1\r\n")
            document(page)
            with child_that_waits():
                visitor.sendall(b"Host: localhost\r\n\r\n")
                assert rest(visitor).endswith(b"ok\n")


def test_close_from_several_threads(core: Core) -> None:
    """Whoever closes it, each waits until it is closed."""
    page = serve(core.cache)
    alive: list[bool] = []

    def close() -> None:
        page.close()
        alive.append(page._server._thread.is_alive())

    closers = [threading.Thread(target=close) for _ in range(4)]
    for closer in closers:
        closer.start()
    for closer in closers:
        closer.join(TIMEOUT)

    assert alive == [False] * 4
