"""The status page in a real Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobinfo_cache import Cluster, JobInfoCache, Settings
from jobinfo_cache.statuspage import StatusPage, serve
from jobinfo_cache.testing import SimulatedDashboard, settle
from tests.apps import found
from tests.apps.browser import Browser

pytestmark = [pytest.mark.apps, pytest.mark.timeout(120)]

CLUSTER = Cluster("ml", "prod", "0b2e6f4c")
ROWS = "[...document.querySelectorAll('main table:last-of-type tbody tr')]"
# The smallest contrast of a text with what is behind it.
CONTRAST = """
(() => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = numbers(color).map((c) => c / 255)
      .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const back = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = getComputedStyle(each).backgroundColor;
      if (numbers(color)[3] !== 0) return color;
    }
    throw new Error("nothing is behind");
  };
  const texts = [...document.querySelectorAll("body *")].filter((each) =>
    [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
  return Math.min(...texts.map((each) => {
    const pair = [light(getComputedStyle(each).color), light(back(each))];
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  }));
})()
"""


@pytest.fixture
def dashboard() -> Iterator[SimulatedDashboard]:
    """A dashboard without jobs."""
    with SimulatedDashboard() as dashboard:
        yield dashboard


@pytest.fixture
def cache() -> Iterator[JobInfoCache]:
    """A cache that asks often."""
    with JobInfoCache(Settings(poll_interval=0.2)) as cache:
        yield cache


@pytest.fixture
def page(cache: JobInfoCache) -> Iterator[StatusPage]:
    """The page about the cache."""
    with serve(cache) as page:
        yield page


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """A browser on a desk; each test looks at what it complained of."""
    with Browser(found("chromium"), tmp_path / "profile") as browser:
        browser.size(1280, 900)
        yield browser


def follow(cache: JobInfoCache, dashboard: SimulatedDashboard, **jobs: str) -> None:
    """Have the cache follow jobs with those statuses."""
    client = cache.client(dashboard.url, CLUSTER)
    for job_id, status in jobs.items():
        dashboard.add_job(job_id, status=status)
        client.lookup(job_id)
    settle(cache, 60.0)


def shows(text: str) -> str:
    """The condition that a job's row has the text."""
    return f"{ROWS}.some((row) => row.textContent.includes({text!r}))"


def test_renders(
    browser: Browser, cache: JobInfoCache, dashboard: SimulatedDashboard, page: StatusPage
) -> None:
    """Clusters and jobs are there, what went wrong first, and the browser has no complaint."""
    follow(cache, dashboard, good="SUCCEEDED", bad="FAILED", busy="RUNNING")
    browser.open(page.url)

    ids = browser.run(f"{ROWS}.map((row) => row.querySelector('th').firstChild.textContent)")
    assert ids == ["bad", "busy", "good"]
    assert browser.run("document.title") == "1 failed – jobinfo-cache"
    assert dashboard.url in browser.run("document.querySelector('table').innerText")
    assert browser.console == []


def test_updates_itself(
    browser: Browser, cache: JobInfoCache, dashboard: SimulatedDashboard, page: StatusPage
) -> None:
    """What changes appears without a reload, and the focus stays where it was."""
    follow(cache, dashboard, a="RUNNING")
    browser.open(page.url)
    browser.run("window.mark = 'same document'; document.querySelector('nav a').focus()")
    dashboard.set_status("a", "FAILED")
    browser.when(shows("FAILED"))
    browser.when("document.title.startsWith('1 failed')")

    assert browser.run("window.mark") == "same document"
    assert browser.console == []


def test_focus_outlives_updates(
    browser: Browser, cache: JobInfoCache, dashboard: SimulatedDashboard, page: StatusPage
) -> None:
    """A link that was reached with the keyboard keeps the focus when the page is renewed."""
    follow(cache, dashboard, a="RUNNING", b="SUCCEEDED")
    browser.open(page.url)
    browser.run("window.old = document.querySelectorAll('nav a')[1]; window.old.focus()")
    browser.when("!window.old.isConnected")

    assert "SUCCEEDED" in browser.run("document.activeElement.textContent")


@pytest.mark.parametrize(
    "job_id", ["<script>alert(1)</script>", "\"><img src=x onerror='alert(1)'>", "&lt;b&gt;"]
)
def test_markup_in_a_name(
    browser: Browser,
    cache: JobInfoCache,
    dashboard: SimulatedDashboard,
    page: StatusPage,
    job_id: str,
) -> None:
    """A job that is named like markup is shown by its name, also after an update."""
    follow(cache, dashboard, **{job_id: "RUNNING"})
    browser.open(page.url)
    for _ in range(2):
        assert browser.run(f"{ROWS}[0].querySelector('th').firstChild.textContent") == job_id
        assert browser.run("document.querySelectorAll('script, img').length") == 1
        browser.run("window.old = document.querySelector('main')")
        browser.when("!window.old.isConnected")
    assert browser.console == []


def test_script_in_the_page_does_not_run(browser: Browser, page: StatusPage) -> None:
    """Even if markup got into the page, the browser would not run it."""
    browser.open(page.url)
    browser.run(
        "{ const script = document.createElement('script');"
        " script.textContent = 'window.ran = true'; document.body.append(script) }"
    )
    browser.run("document.body.insertAdjacentHTML('beforeend', '<b onclick=\"ran = true\">x</b>')")
    browser.run("document.querySelector('b').click()")

    assert browser.run("window.ran") is None
    assert any("Content Security Policy" in complaint for complaint in browser.console)


def test_search_as_one_types(
    browser: Browser, cache: JobInfoCache, dashboard: SimulatedDashboard, page: StatusPage
) -> None:
    """The rows follow what is typed; the address keeps it, and so does a reload."""
    follow(cache, dashboard, **{"train-1": "RUNNING", "train-2": "FAILED", "test-1": "RUNNING"})
    browser.open(page.url)
    browser.run("document.getElementById('q').focus()")
    browser.type("train")
    browser.when(f"{ROWS}.length === 2")
    browser.type(" running")
    browser.when(f"{ROWS}.length === 1")

    assert browser.run("document.activeElement.id + document.activeElement.value") == (
        "qtrain running"
    )
    address = browser.run("location.href")
    assert address == f"{page.url}/?q=train+running&limit=200"
    browser.open(address)
    assert browser.run(f"{ROWS}.map((row) => row.textContent.slice(0, 7))") == ["train-1"]
    assert browser.run("document.getElementById('q').value") == "train running"


def test_ten_thousand_jobs(browser: Browser, dashboard: SimulatedDashboard) -> None:
    """With 10,000 jobs the page shows the first ones, finds the last one, and shows all."""
    statuses = ["RUNNING", "SUCCEEDED", "STOPPED", "PENDING"]
    with JobInfoCache(Settings(poll_interval=60.0)) as cache, serve(cache) as page:
        follow(cache, dashboard, **{f"job-{n:05}": statuses[n % 4] for n in range(10_000)})
        _look_at_ten_thousand(browser, page)
        assert cache.client(dashboard.url, CLUSTER).get_job_info("job-00001").status == "SUCCEEDED"


def _look_at_ten_thousand(browser: Browser, page: StatusPage) -> None:
    browser.open(page.url)
    assert browser.run(f"{ROWS}.length") == 200
    assert "200 of 10,000" in browser.run("document.body.innerText")

    browser.run("document.getElementById('q').focus()")
    browser.type("job-09999")
    browser.when(f"{ROWS}.length === 1")
    assert browser.run(f"{ROWS}[0].textContent.slice(0, 9)") == "job-09999"

    browser.open(f"{page.url}/?limit=10000")
    assert browser.run(f"{ROWS}.length") == 10_000
    assert browser.console == []


def test_page_whose_server_goes_away(
    browser: Browser, cache: JobInfoCache, dashboard: SimulatedDashboard
) -> None:
    """The page says that it is old, and goes on when the program is there again."""
    follow(cache, dashboard, a="RUNNING")
    with serve(cache) as first:
        browser.open(first.url)
        port = first.port
    browser.when("document.getElementById('contact').textContent.startsWith('No answer since')")
    assert browser.run(shows("RUNNING"))

    dashboard.set_status("a", "SUCCEEDED")
    with serve(cache, port=port):
        browser.when(shows("SUCCEEDED"))
        assert browser.run("document.getElementById('contact').textContent") == ""


def test_selected_text_is_left_alone(
    browser: Browser, cache: JobInfoCache, dashboard: SimulatedDashboard, page: StatusPage
) -> None:
    """While text is selected the page waits, and says so; then it goes on."""
    follow(cache, dashboard, a="RUNNING")
    browser.open(page.url)
    browser.run("getSelection().selectAllChildren(document.querySelector('main table'))")
    browser.when("document.getElementById('contact').textContent.startsWith('Not updated')")
    assert not browser.run("getSelection().isCollapsed")

    dashboard.set_status("a", "STOPPED")
    browser.run("getSelection().removeAllRanges()")
    browser.when(shows("STOPPED"))


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_fits_the_screen(
    browser: Browser,
    cache: JobInfoCache,
    dashboard: SimulatedDashboard,
    page: StatusPage,
    width: int,
) -> None:
    """Nothing is wider than the screen, however long the names are."""
    follow(cache, dashboard, **{"raysubmit_" + "x" * 300: "RUNNING", "b": "FAILED"})
    long_name = cache.client("http://127.0.0.1:9/" + "y" * 300, Cluster("n" * 253, "c" * 253))
    long_name.lookup("z" * 1000)
    browser.size(width, 800)
    browser.open(page.url)

    assert browser.run("innerWidth") == width
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_can_be_read(
    browser: Browser,
    cache: JobInfoCache,
    dashboard: SimulatedDashboard,
    page: StatusPage,
    width: int,
    is_dark: bool,
) -> None:
    """All text stands out from what is behind it, by day and by night (WCAG AA: 4.5)."""
    follow(cache, dashboard, a="RUNNING", b="FAILED", c="SUCCEEDED", d="STOPPED")
    cache.client("http://127.0.0.1:9", Cluster("ml", "gone")).lookup("e")
    settle(cache)
    browser.size(width, 800)
    browser.dark(is_dark)
    browser.open(page.url)

    assert (browser.run("getComputedStyle(document.body).backgroundColor") < "rgb(2") == is_dark
    assert browser.run(CONTRAST) >= 4.5


@pytest.mark.parametrize("width", [390, 1280])
def test_is_a_table_to_a_screen_reader(
    browser: Browser,
    cache: JobInfoCache,
    dashboard: SimulatedDashboard,
    page: StatusPage,
    width: int,
) -> None:
    """Tables have headings for columns and rows at each width, and the field has a label."""
    follow(cache, dashboard, a="RUNNING")
    browser.size(width, 800)
    browser.open(page.url)
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    named = [
        (node["role"]["value"], node.get("name", {}).get("value"))
        for node in nodes
        if not node["ignored"]
    ]

    assert ("searchbox", "Search") in named
    assert [role for role, _ in named].count("table") == 2
    assert ("columnheader", "Status") in named
    assert ("rowheader", "a") in named
    assert ("navigation", "Jobs by status") in named


def test_without_scripts(
    browser: Browser, cache: JobInfoCache, dashboard: SimulatedDashboard, page: StatusPage
) -> None:
    """Without scripts the page is complete, and reloads itself."""
    follow(cache, dashboard, a="RUNNING")
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(f"{page.url}/?q=a")

    assert browser.run(f"{ROWS}.length") == 1
    assert browser.run("document.querySelector('meta[http-equiv=refresh]').content") == "5"
