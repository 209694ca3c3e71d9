"""Tests of what the status page serves, and to whom."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

import pytest

from jobinfo_cache import Cluster, JobInfoCache
from jobinfo_cache.statuspage import StatusPage, serve
from jobinfo_cache.testing import FakeClock
from tests.support import CLUSTER, START, Core, make_info, not_found, unavailable
from tests.unit.statuspage.visits import ask, document, json_of

ATTACK = "\"'><img src=x onerror=alert(1)>&<script>alert(2)</script>"


class Tags(HTMLParser):
    """The elements of a document, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[str] = []
        self.references: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.references += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        self.text += data


class TestPage:
    """The page for people."""

    def test_shows_jobs_and_clusters(self, core: Core, page: StatusPage) -> None:
        """The page is HTML with a row for each cluster and each job."""
        core.dashboard.script("b", unavailable())
        core.add("a", "b")
        core.poll()
        answer = ask(page)
        text = Tags(answer.text).text

        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        assert text.count("ns/one") == 3  # one cluster, two jobs
        assert "http://127.0.0.1:1" in text
        assert "RUNNING" in text
        assert "unavailable × 1 for 0.0 s" in text
        assert "refused" in text

    def test_is_the_same_for_a_head(self, core: Core, page: StatusPage) -> None:
        """HEAD gets the headers of GET, and no body."""
        core.add("a")
        head, full = ask(page, method="HEAD"), ask(page)

        assert (head.status, head.text) == (200, "")
        assert head.headers.items() == full.headers.items()
        assert head.headers["Content-Length"] == str(len(full.text.encode()))

    @pytest.mark.parametrize(
        ("seconds", "shown"),
        [
            (0.04, "0.0 s"),
            (9.9, "9.9 s"),
            (59.4, "59 s"),
            (59.6, "60 s"),
            (3_570.0, "1 h 0 min"),
            (3_600.0 * 47.5, "47 h 30 min"),
            (86_400.0 * 3 + 7_200.0, "3 d 2 h"),
        ],
    )
    def test_durations_have_two_units_at_most(
        self, clock: FakeClock, seconds: float, shown: str
    ) -> None:
        """A duration is shown in the units that a reader would choose."""
        core = Core(clock, "RUNNING", expiry=31e6)
        core.add("a")
        core.poll()
        clock.advance(seconds)
        with serve(core.cache) as page:
            assert f'data-heading="Answer’s age">{shown}<' in document(page)

    def test_age_is_of_answers_that_may_change(self, core: Core, page: StatusPage) -> None:
        """An old answer is marked if reads refuse it; what has ended has no age."""
        core.dashboard.script("b", "SUCCEEDED")
        core.add("a", "b")
        core.poll()
        core.clock.advance(70.0)
        html = document(page)

        assert 'data-heading="Answer’s age">1 min<small>too old</small>' in html
        assert html.count('data-heading="Answer’s age"><span class="nothing">') == 1

    def test_says_for_how_long_a_job_runs(self, core: Core, page: StatusPage) -> None:
        """Until now for a live job, until its end for an ended one, and nothing without a start."""
        start = START.timestamp() * 1000
        core.dashboard.script("a", make_info(start_time=start))
        ended = make_info("FAILED", start_time=start, end_time=start + 5_000, driver_exit_code=3)
        core.dashboard.script("b", ended)
        core.dashboard.script("c", make_info("STOPPED", start_time=start))
        core.add("a", "b", "c")
        core.poll()
        core.clock.advance(20.0)
        html = document(page)

        assert 'data-heading="Runs for">20 s<' in html
        assert 'data-heading="Runs for">5.0 s<' in html
        assert html.count('data-heading="Runs for"><span class="nothing">') == 1
        assert "exit code 3" in html

    def test_links_to_each_status(self, core: Core, page: StatusPage) -> None:
        """Each status has a link to the jobs that have it, with how many there are."""
        core.dashboard.script("b", "SUCCEEDED")
        core.add("a", "b")
        core.poll()
        core.add("c")
        html = document(page, "/?q=x&limit=7")

        assert (
            'href="?q=SUCCEEDED&amp;limit=7"><span class="status good">SUCCEEDED</span> 1' in html
        )
        assert 'href="?q=no+answer+yet&amp;limit=7"' in html
        assert 'href="?q=&amp;limit=7">all jobs' in html
        assert "c" in [row["job_id"] for row in json_of(page, "?q=no+answer+yet")["jobs"]]

    def test_offers_more_of_what_it_found(self, core: Core, page: StatusPage) -> None:
        """What is left out is counted, with a link to more of it, as long as there is one."""
        core.add(*[f"job-{number}" for number in range(5)])

        assert "2 of 5" in document(page, "/?limit=2")
        assert 'href="?q=job&amp;limit=1000"' in document(page, "/?q=job&limit=2")
        assert 'href="?q=&amp;limit=10000"' not in document(page, "/?limit=5")
        assert "Show up to" not in document(page, "/?limit=5")

    def test_says_that_the_cache_is_too_small(self, clock: FakeClock) -> None:
        """The page tells an operator what to raise."""
        core = Core(clock, cache_size=1)
        with serve(core.cache) as page:
            core.add("a")
            assert "cache_size" not in document(page)
            core.add("b")
            assert "cache_size" in document(page)

    def test_loads_nothing_from_elsewhere(self, page: StatusPage) -> None:
        """All that the page refers to is served beside it, under relative names."""
        references = Tags(document(page)).references

        assert references == ["data:,", "page.css", "page.js"]
        assert "{" in document(page, "/page.css")
        assert ask(page, "/page.css").headers["Content-Type"] == "text/css; charset=utf-8"
        assert ask(page, "/page.js").headers["Content-Type"] == "text/javascript; charset=utf-8"

    def test_policy_allows_no_script_in_the_page(self, page: StatusPage) -> None:
        """Headers forbid inline scripts, frames, guesses about the type, and copies."""
        headers = ask(page).headers
        policy = dict(
            part.split(maxsplit=1) for part in headers["Content-Security-Policy"].split(";")
        )

        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert {"style", "onclick", "onload"}.isdisjoint(Tags(document(page)).attributes)


class TestUntrustedText:
    """Whatever a name or an answer holds, it is shown as text."""

    @pytest.mark.parametrize(
        ("job_id", "cluster", "answer"),
        [
            (ATTACK, CLUSTER, make_info()),
            ("a", Cluster(ATTACK, ATTACK, ATTACK), make_info()),
            ("a", CLUSTER, make_info(ATTACK)),
            ("a", CLUSTER, make_info(submission_id=ATTACK, error_type=ATTACK)),
            ("a", CLUSTER, not_found(ATTACK)),
        ],
        ids=["job", "cluster", "status", "fields", "error"],
    )
    def test_becomes_no_element(
        self, core: Core, page: StatusPage, job_id: str, cluster: Cluster, answer: Any
    ) -> None:
        """Markup from outside makes no element and no attribute of the page."""
        if isinstance(answer, Exception):
            answer.args = (ATTACK,)
        core.dashboard.script(job_id, answer)
        client = core.cache.client(core.dashboard.client, cluster)
        client.lookup(job_id)
        core.engine.poller.poll_cluster(cluster)
        tags = Tags(document(page))

        assert ATTACK in tags.text
        assert "img" not in tags.names
        assert tags.names.count("script") == 1
        assert "onerror" not in tags.attributes

    def test_search_is_shown_as_text(self, page: StatusPage) -> None:
        """What was searched for comes back in the page, as text only."""
        html = document(page, f"/?q={quote(ATTACK)}")

        assert "&lt;img src=x" in html
        assert "img" not in Tags(html).names

    def test_half_a_character_does_not_spoil_the_page(self, core: Core, page: StatusPage) -> None:
        """A text that cannot be encoded spoils neither the page nor the JSON."""
        core.dashboard.script("a", make_info("\ud800X", error_type="\ud801"))
        client = core.cache.client(core.dashboard.client, Cluster("n\ud802s", "b", "u"))
        client.lookup("a")
        core.engine.poller.poll_cluster(client.cluster)

        assert "n?s/b" in document(page)
        assert json_of(page)["jobs"][0]["status"] == "X"

    def test_endless_texts_are_cut(self, core: Core, page: StatusPage) -> None:
        """No text of a dashboard makes the page long."""
        endless = "x" * 100_000
        core.dashboard.script("a", make_info(endless, submission_id=endless, error_type=endless))
        core.add("a")
        core.poll()

        assert len(document(page)) < 20_000
        assert len(document(page, "/statusz.json")) < 20_000

    def test_secrets_are_not_shown(self, core: Core, page: StatusPage) -> None:
        """What a user attached to a job, and what it printed, is on no page."""
        secret = "s3cret"
        info = make_info(
            "FAILED",
            entrypoint=f"run --key {secret}",
            message=f"logs: {secret}",
            metadata={"key": secret},
            runtime_env={"env_vars": {"KEY": secret}},
            driver_info={"id": secret},
        )
        core.dashboard.script("a", info)
        core.add("a")
        core.poll()

        assert "FAILED" in document(page)
        assert secret not in document(page)
        assert secret not in document(page, "/statusz.json")


class TestJson:
    """The same for programs."""

    def test_has_all_of_a_job(self, core: Core, page: StatusPage) -> None:
        """A job's row says what a snapshot says, times in ISO 8601."""
        start = START.timestamp() * 1000
        core.dashboard.script("a", make_info(submission_id="a", start_time=start), unavailable())
        core.add("a")
        core.poll()
        core.clock.advance(3.0)
        core.poll()
        core.clock.advance(1.0)

        assert json_of(page)["jobs"] == [
            {
                "namespace": "ns",
                "cluster": "one",
                "uid": "uid-1",
                "job_id": "a",
                "submission_id": "a",
                "status": "RUNNING",
                "terminal": False,
                "fresh": False,
                "age": 4.0,
                "fetched_at": "2026-01-01T00:00:00+00:00",
                "start_time": "2026-01-01T00:00:00+00:00",
                "end_time": None,
                "error_type": None,
                "driver_exit_code": None,
                "failures": 1,
                "failing_since": core.client.peek("a").failing_since.isoformat(),  # type: ignore[union-attr]
                "error_kind": "unavailable",
                "error": "refused",
            }
        ]

    def test_has_all_of_a_cluster(self, core: Core, page: StatusPage) -> None:
        """A cluster's row says how many jobs it has, and how its dashboard fares."""
        core.dashboard.script("b", "SUCCEEDED")
        core.add("a", "b")
        row = {
            "namespace": "ns",
            "name": "one",
            "uid": "uid-1",
            "url": "http://127.0.0.1:1",
            "jobs": 2,
            "live": 2,
            "reached": False,
            "failing": None,
            "failures": 0,
            "retry_after": None,
        }
        assert json_of(page)["clusters"] == [row]
        core.poll()
        assert json_of(page)["clusters"] == [{**row, "live": 1, "reached": True}]
        core.dashboard.script("a", unavailable())
        core.clock.advance(3.0)
        core.poll()
        core.clock.advance(1.0)
        failing = {**row, "live": 1, "reached": True, "failing": "unavailable", "failures": 1}
        assert json_of(page)["clusters"] == [{**failing, "retry_after": 2.0}]

    def test_has_the_figures(self, core: Core, page: StatusPage) -> None:
        """The figures are those of `stats`, and the moment is that of the cache's clock."""
        core.add("a", "b")
        core.poll()
        found = json_of(page, "?q=a&limit=5")

        assert found["stats"] == vars(core.cache.stats())
        assert found["at"] == "2026-01-01T00:00:00+00:00"
        assert found["statuses"] == {"RUNNING": 2}
        assert (found["query"], found["limit"], found["closed"]) == ("a", 5, False)

    @pytest.mark.parametrize("limit", ["", "-1", "x", "1e3", "10001", "9" * 5000, "²", "1%00"])
    def test_refuses_an_impossible_limit(self, page: StatusPage, limit: str) -> None:
        """What is no number from 0 to 10,000 is refused with a word, not guessed at."""
        answer = ask(page, f"/statusz.json?q=&limit={quote(limit, safe='%')}")

        if limit == "":  # as if it were not there
            assert answer.status == 200
        else:
            assert answer.status == 400
            assert "a whole number to 10000" in answer.text
            assert len(answer.text) < 200

    def test_limit_of_none(self, core: Core, page: StatusPage) -> None:
        """With limit=0 there are the figures, and no rows."""
        core.add("a")
        found = json_of(page, "?limit=0")

        assert (found["jobs"], found["jobs_found"]) == ([], 1)
        assert (found["clusters"], found["clusters_found"]) == ([], 1)


class TestWho:
    """Which requests are answered at all."""

    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "get"])
    def test_can_only_be_read(self, page: StatusPage, method: str) -> None:
        """All methods but GET and HEAD are refused."""
        answer = ask(page, method=method, body=b"x" * 100)

        assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")

    @pytest.mark.parametrize("path", ["/x", "//", "/../etc/passwd", "/page.py", "/%2f", "*"])
    def test_there_is_nothing_else(self, page: StatusPage, path: str) -> None:
        """Other paths are not found."""
        assert ask(page, path).status == 404

    @pytest.mark.parametrize(
        "host", ["localhost", "LOCALHOST:80", "127.0.0.1:1", "127.3.2.1", "[::1]:9"]
    )
    def test_loopback_names_are_answered(self, page: StatusPage, host: str) -> None:
        """A forwarded port may have any number."""
        assert ask(page, host=host).status == 200

    @pytest.mark.parametrize(
        "host",
        [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:80",
            "10.0.0.1",
            "",
            "[",
        ],
    )
    def test_other_names_are_refused(self, page: StatusPage, host: str) -> None:
        """A name that somebody made to lead here gets nothing, whatever the path."""
        assert ask(page, host=host).status == 421
        assert ask(page, "/healthz", host=host).status == 421

    def test_any_name_is_answered_elsewhere(
        self, page: StatusPage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Beyond loopback a page has names that it cannot know."""
        monkeypatch.setattr(page, "_is_local", False)

        assert ask(page, host="pod.example").status == 200


class TestMetrics:
    """The figures for Prometheus."""

    def test_are_those_of_the_cache(self, core: Core, page: StatusPage) -> None:
        """With the extra there are the figures of this cache, each time anew."""
        pytest.importorskip("prometheus_client")
        assert "\njobinfo_cache_entries 0.0\n" in document(page, "/metrics")
        core.add("a", "b")
        answer = ask(page, "/metrics")

        assert "\njobinfo_cache_entries 2.0\n" in answer.text
        assert answer.headers["Content-Type"].startswith("text/plain; version=")

    @pytest.mark.parametrize("missing", ["prometheus_client", "jobinfo_cache.metrics"])
    def test_are_not_there_without_the_extra(
        self, page: StatusPage, monkeypatch: pytest.MonkeyPatch, missing: str
    ) -> None:
        """Without the extra it is not found, and the rest goes on."""
        monkeypatch.setitem(sys.modules, missing, None)
        monkeypatch.delitem(sys.modules, "prometheus_client.exposition", raising=False)

        answer = ask(page, "/metrics")

        assert answer.status == 404
        assert "jobinfo-cache[prometheus]" in answer.text
        assert ask(page).status == 200


class TestLife:
    """From `serve` to `close`."""

    def test_closed_cache(self, core: Core, page: StatusPage) -> None:
        """The page of a closed cache says so, and has no rows."""
        core.add("a")
        core.cache.close(0.0)
        core.engine.store.close()

        assert "The cache is closed" in document(page)
        found = json_of(page)
        assert (found["closed"], found["jobs"], found["jobs_found"]) == (True, [], 0)

    def test_close_is_final_and_may_be_repeated(self, core: Core) -> None:
        """Afterwards nobody answers on the port, and the cache goes on."""
        page = serve(core.cache)
        page.close()
        page.close()

        with pytest.raises(ConnectionRefusedError):
            ask(page)
        core.add("a")
        assert core.cache.stats().entries == 1

    def test_port_can_be_had_again(self, core: Core) -> None:
        """A page may be closed and served again on the same port."""
        with serve(core.cache) as first:
            document(first)
            port = first.port
        with serve(core.cache, port=port) as second:
            assert second.url == f"http://127.0.0.1:{port}"
            assert document(second)

    def test_port_in_use(self, core: Core, page: StatusPage) -> None:
        """A port that is taken is an error at once, in the caller's thread."""
        with pytest.raises(OSError, match="in use"):
            serve(core.cache, port=page.port)

    def test_empty_host(self, core: Core) -> None:
        """Nobody listens on all addresses by mistake."""
        with pytest.raises(ValueError, match="host is empty"):
            serve(core.cache, "")

    def test_refused_thread_is_an_error_unchanged(
        self, core: Core, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """If the thread cannot be started the error is raised, and no socket is left."""
        fault = RuntimeError("can't start new thread")

        def refuse(thread: object) -> None:
            raise fault

        with monkeypatch.context() as patch:
            patch.setattr("threading.Thread.start", refuse)
            with pytest.raises(RuntimeError) as raised:
                serve(core.cache)
        assert raised.value is fault

    def test_thread_has_a_name(self, page: StatusPage) -> None:
        """There is one thread, a daemon, however many ask."""
        for _ in range(3):
            document(page)
        thread = page._server._thread

        assert (thread.name, thread.daemon) == ("jobinfo-statuspage", True)

    @pytest.mark.parametrize(
        ("host", "url"),
        [("0.0.0.0", "http://127.0.0.1:"), ("::", "http://[::1]:"), ("::1", "http://[::1]:")],
    )
    def test_url_leads_there(
        self, page: StatusPage, monkeypatch: pytest.MonkeyPatch, host: str, url: str
    ) -> None:
        """The URL names an address that can be asked, also when all are listened on."""
        monkeypatch.setattr(page, "_host", host)

        assert page.url == f"{url}{page.port}"


def test_fault_of_the_page_is_logged(
    page: StatusPage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A page that cannot be made is an error 500, and the log says why; probes go on."""
    monkeypatch.setattr(JobInfoCache, "stats", lambda cache: 1 / 0)

    assert ask(page).status == 500
    assert ask(page, "/healthz").status == 200
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert caplog.records[0].exc_info
