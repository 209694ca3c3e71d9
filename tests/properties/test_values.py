"""Properties of the values: whatever a dashboard sends, whatever a user sets."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobinfo_cache import Cluster, InvalidJobId, JobInfo, JobInfoCache, JobStatus, Settings
from jobinfo_cache.backoff import backoff, jittered
from jobinfo_cache.job import check_job_id
from jobinfo_cache.testing import FakeClock
from tests.support import START, ScriptedDashboard

YEAR = 365 * 86_400.0
FIELDS = [
    "type",
    "job_id",
    "submission_id",
    "driver_info",
    "status",
    "entrypoint",
    "message",
    "error_type",
    "start_time",
    "end_time",
    "metadata",
    "runtime_env",
    "driver_agent_http_address",
    "driver_node_id",
    "driver_exit_code",
]
PROPERTIES = [*FIELDS, "raw", "fetched_at"]

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
jobs = st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=8), values, max_size=12)
jobs_with_status = st.builds(
    lambda fields, status: {**fields, "status": status}, jobs, st.text(min_size=1, max_size=12)
)
texts = st.text(max_size=6) | st.sampled_from(["a", "b", "a/b", "/", "", "a\x00b", ".", ".."])


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


@given(values | jobs | jobs_with_status)
def test_any_json_is_a_job_or_a_value_error(value: Any) -> None:
    """What is no object with a text status is a ValueError; all else can be read."""
    body = as_json(value)
    if not (isinstance(body, dict) and isinstance(body.get("status"), str) and body["status"]):
        with pytest.raises(ValueError, match=r"status|mapping"):
            JobInfo(body, fetched_at=START)
        return
    info = JobInfo(body, fetched_at=START)

    for name in PROPERTIES:
        getattr(info, name)
    assert str(info.status) == body["status"]
    assert set(info.to_dict()) == set(PROPERTIES) - {"raw"}
    json.dumps(info.to_dict())
    assert "\n" not in repr(info)
    assert repr(info.raw) == repr(body)


@given(jobs_with_status)
def test_equal_answers_are_one_value(fields: dict[str, Any]) -> None:
    """Two answers with one text are equal, hash alike, and survive copies and pickles."""
    text = json.dumps(fields, allow_nan=True)
    info = JobInfo(json.loads(text), fetched_at=START)
    twins = [copy.deepcopy(info), pickle.loads(pickle.dumps(info)), copy.copy(info)]
    if "NaN" not in text:
        twins.append(JobInfo(json.loads(text), fetched_at=START))
        assert all(twin == info for twin in twins)

    assert {hash(twin) for twin in twins} == {hash(info)}


@given(jobs_with_status)
def test_nothing_handed_out_is_shared(fields: dict[str, Any]) -> None:
    """Whatever is done to what was handed out, the answer stays as it was."""
    info = JobInfo(as_json(fields), fetched_at=START)
    before = repr(info.raw)
    for name in ("metadata", "runtime_env", "driver_info", "raw"):
        mapping = getattr(info, name)
        if mapping is not None:
            mapping.clear()
            mapping["x"] = "y"

    assert repr(info.raw) == before


@given(st.text(max_size=12))
def test_status_is_its_text(text: str) -> None:
    """Any text but the empty one is a status that is equal to it."""
    if not text:
        with pytest.raises(ValueError, match="no status"):
            JobStatus(text)
        return
    status = JobStatus(text)

    assert (status, str(status), f"{status}", hash(status)) == (text, text, text, hash(text))
    assert json.loads(json.dumps(status)) == text
    assert status.is_terminal is (text in {"STOPPED", "SUCCEEDED", "FAILED"})


@given(st.lists(st.tuples(texts, texts, texts, texts), min_size=2, max_size=12, unique=True))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_keys_never_collide(parts: list[tuple[str, str, str, str]]) -> None:
    """Jobs that differ in namespace, name, uid or id, by any character, share no entry."""
    with JobInfoCache(Settings(), clock=FakeClock()) as cache:
        cache._engine.reader.start = lambda: None
        cache._engine.pool.add = lambda key: None  # type: ignore[method-assign]
        dashboard = ScriptedDashboard(FakeClock())
        clients, asked = [], 0
        for namespace, name, uid, job_id in parts:
            try:
                cluster = Cluster(namespace, name, uid)
                check_job_id(job_id)
            except ValueError:
                continue
            client = cache.client(dashboard.client, cluster)
            client.lookup(job_id)
            clients.append(client)
            asked += 1

            assert client.cluster == (namespace, name, uid)
            assert cache.stats().entries == asked


@given(st.text(max_size=8) | st.text(min_size=1020, max_size=1030))
def test_job_id_is_taken_whole_or_refused(job_id: str) -> None:
    """An id comes through as it is, or is an InvalidJobId for one of the reasons there are."""
    try:
        assert check_job_id(job_id) == job_id
    except InvalidJobId:
        is_odd = any(ord(char) < 32 or 127 <= ord(char) < 160 for char in job_id)
        is_half = any(0xD800 <= ord(char) < 0xE000 for char in job_id)
        assert job_id in ("", ".", "..") or len(job_id) > 1024 or is_odd or is_half
    else:
        assert 0 < len(job_id) <= 1024


odd = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
plausible = {
    "workers": st.integers(1, 64),
    "cache_size": st.integers(1, 10**6),
    "poll_interval": st.floats(0.001, 100.0),
    "expiry": st.floats(0.001, YEAR),
    "cleanup_interval": st.none() | st.floats(0.001, YEAR),
    "max_age": st.none() | st.floats(0.001, YEAR),
    "max_backoff": st.floats(0.001, YEAR),
    "jitter": st.floats(0.0, 0.6),
    "batching": st.booleans(),
    "request_timeout": st.floats(0.001, YEAR),
    "close_timeout": st.floats(0.0, YEAR),
    "async_job_info_query": st.booleans(),
}
chosen = st.fixed_dictionaries(
    {}, optional={name: st.one_of(value, value, value, odd) for name, value in plausible.items()}
)


def is_duration(value: Any, *, or_zero: bool = False) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 < value <= YEAR or (or_zero and value == 0)


def is_right(fields: dict[str, Any]) -> bool:
    """What the documentation says of settings."""
    merged = {**dataclasses.asdict(Settings()), **fields}
    counts = [merged["workers"], merged["cache_size"]]
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 1 for n in counts):
        return False
    if not all(isinstance(merged[name], bool) for name in ("batching", "async_job_info_query")):
        return False
    needed = ("poll_interval", "expiry", "max_backoff", "request_timeout")
    optional = ("cleanup_interval", "max_age")
    return (
        all(is_duration(merged[name]) for name in needed)
        and all(merged[name] is None or is_duration(merged[name]) for name in optional)
        and is_duration(merged["close_timeout"], or_zero=True)
        and is_duration(merged["jitter"], or_zero=True)
        and merged["jitter"] <= 0.5
        and merged["expiry"] > merged["poll_interval"]
        and merged["max_backoff"] >= merged["poll_interval"]
    )


@given(chosen)
def test_settings_are_right_or_refused(fields: dict[str, Any]) -> None:
    """Any values are accepted as they are, or refused with a name and its value."""
    refusal = ""
    try:
        made = Settings(**fields)
    except ValueError as error:
        refusal = str(error)
    if not refusal:
        assert is_right(fields)
        assert {name: getattr(made, name) for name in fields} == fields
        assert 0 < made.sweep_interval <= YEAR
        return
    name, merged = refusal.partition(" is ")[0], {**dataclasses.asdict(Settings()), **fields}

    assert repr(merged[name]) in refusal
    assert "must be" in refusal
    assert not is_right(fields) or merged[name] > 10**8  # a count that no machine has


@given(
    st.integers(1, 10**6), st.floats(0.001, 1000.0), st.floats(1.0, 1000.0), st.integers(1, 1000)
)
def test_backoff_grows_within_bounds(failures: int, base: float, factor: float, more: int) -> None:
    """More failures never make the delay shorter, and it stays from base to the cap."""
    cap = base * factor
    delay = backoff(failures, base=base, cap=cap)

    assert base <= delay <= cap
    assert backoff(failures + more, base=base, cap=cap) >= delay
    assert delay in (cap, base * 2.0 ** (failures - 1)) if failures < 100 else delay == cap


@given(st.floats(0.0, YEAR), st.floats(0.0, 0.5))
def test_jitter_stays_in_range(delay: float, jitter: float) -> None:
    """A delay is shortened by at most its share, and never lengthened."""
    shortened = jittered(delay, jitter)

    assert delay * (1.0 - jitter) * (1.0 - 1e-12) <= shortened <= delay
    assert not math.isnan(shortened)
