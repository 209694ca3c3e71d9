"""Tests of the values that users get."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from enum import Enum
from types import MappingProxyType
from typing import Any

import pytest

from jobinfo_cache import (
    Cluster,
    InvalidJobId,
    JobChange,
    JobInfo,
    JobInfoCache,
    JobSnapshot,
    JobStatus,
)
from jobinfo_cache.job import check_job_id
from tests.support import CLUSTER, START, make_info, unavailable

RAW: dict[str, Any] = {
    "type": "SUBMISSION",
    "job_id": "04000000",
    "submission_id": "raysubmit_1",
    "status": "FAILED",
    "entrypoint": "python main.py",
    "message": "it broke",
    "error_type": "JOB_ENTRYPOINT_COMMAND_ERROR",
    "start_time": 1_767_225_600_123,
    "end_time": 1_767_225_601_000,
    "metadata": {"owner": "mé"},
    "runtime_env": {"env_vars": {"PASSWORD": "s3cret"}},
    "driver_info": {"id": "04000000", "node_ip_address": "127.0.0.1", "pid": "7"},
    "driver_agent_http_address": "http://127.0.0.1:52365",
    "driver_node_id": "f00",
    "driver_exit_code": 3,
    "from_a_newer_ray": [1, {"a": None}],
}
TEXTS = [
    "type",
    "job_id",
    "submission_id",
    "entrypoint",
    "message",
    "error_type",
    "driver_agent_http_address",
    "driver_node_id",
]
TIMES = ["start_time", "end_time"]
MAPPINGS = ["metadata", "runtime_env", "driver_info"]


class Name(str, Enum):
    """Texts as enum members, whose `str()` is another text ("Name.A")."""

    A = "name-a"


@pytest.fixture
def info() -> JobInfo:
    return JobInfo(copy.deepcopy(RAW), fetched_at=START)


class TestJobStatus:
    """A status is its text."""

    @pytest.mark.parametrize("text", ["PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED"])
    def test_known_ones(self, text: str) -> None:
        """The five of Ray are attributes, equal to their text, and each is one object."""
        status = getattr(JobStatus, text)

        assert status == text
        assert isinstance(status, JobStatus)
        assert JobStatus(text) is status
        assert status.is_terminal is (text in ("STOPPED", "SUCCEEDED", "FAILED"))

    @pytest.mark.parametrize("text", ["SUSPENDED", "running", "succeeded", " FAILED", "ü", "None"])
    def test_unknown_one_is_kept(self, text: str) -> None:
        """Another text is kept as it is, and is not terminal."""
        status = JobStatus(text)

        assert (status, str(status)) == (text, text)
        assert not status.is_terminal

    @pytest.mark.parametrize("status", [JobStatus.FAILED, JobStatus("NEW")])
    def test_gives_the_bare_text(self, status: JobStatus) -> None:
        """`str`, `format` and JSON give the text and nothing else."""
        text = "FAILED" if status.is_terminal else "NEW"

        assert str(status) == f"{status}" == f"{status!s}" == "%s" % status == text  # noqa: UP031
        assert f"{status:>8}" == text.rjust(8)
        assert json.dumps({"status": status}) == f'{{"status": "{text}"}}'
        assert type(str(status)) is str
        assert repr(status) == f"JobStatus({text!r})"
        assert hash(status) == hash(text)

    @pytest.mark.parametrize("value", ["", None, 3, ["RUNNING"], b"RUNNING"], ids=repr)
    def test_what_is_no_status(self, value: Any) -> None:
        """An empty text, or no text, is a ValueError."""
        with pytest.raises(ValueError, match="no status"):
            JobStatus(value)

    def test_enum_member_is_taken_by_its_content(self) -> None:
        """A member of a text enum stands for what it holds, not for its name."""
        assert str(JobStatus(Name.A)) == "name-a"

    @pytest.mark.parametrize("status", [JobStatus.FAILED, JobStatus("NEW")])
    def test_copies(self, status: JobStatus) -> None:
        """Copies and pickles are equal, of the same class, and a known one is the same object."""
        for twin in (
            copy.copy(status),
            copy.deepcopy(status),
            *(pickle.loads(pickle.dumps(status, protocol)) for protocol in range(2, 6)),
        ):
            assert twin == status
            assert type(twin) is JobStatus
            assert twin is status or not status.is_terminal


class TestJobInfoFields:
    """Fields of an answer."""

    def test_all(self, info: JobInfo) -> None:
        """Each field is what the dashboard sent; times are aware UTC, to the millisecond."""
        assert {name: getattr(info, name) for name in TEXTS} == {name: RAW[name] for name in TEXTS}
        assert (info.status, info.driver_exit_code) == (JobStatus.FAILED, 3)
        assert info.start_time == datetime(2026, 1, 1, 0, 0, 0, 123_000, timezone.utc)
        assert info.end_time == datetime(2026, 1, 1, 0, 0, 1, 0, timezone.utc)
        assert info.end_time.tzinfo is timezone.utc
        assert (info.metadata, info.runtime_env) == (RAW["metadata"], RAW["runtime_env"])
        assert info.driver_info == RAW["driver_info"]
        assert info.raw == RAW
        assert info.fetched_at == START

    @pytest.mark.parametrize("name", [*TEXTS, *TIMES, *MAPPINGS, "driver_exit_code"])
    def test_missing_one_is_none(self, name: str) -> None:
        """A field that is missing or null is None."""
        assert getattr(make_info(), name) is None
        raw = {"status": "RUNNING", name: None}
        assert getattr(JobInfo(raw, fetched_at=START), name) is None

    @pytest.mark.parametrize("name", [*TEXTS, *TIMES, *MAPPINGS, "driver_exit_code"])
    @pytest.mark.parametrize("value", [True, False, [], [1], {"a": 1}, 1.5, "x", -7], ids=repr)
    def test_odd_one_makes_no_job_unreadable(self, name: str, value: Any) -> None:
        """A field of an odd type is None or its value; all else stays readable."""
        info = make_info("RUNNING", **{name: value})

        fits = {
            "x": name in TEXTS,
            "{'a': 1}": name in MAPPINGS,
            "-7": name in TIMES or name == "driver_exit_code",
            "1.5": name in TIMES,
        }
        assert (getattr(info, name) is not None) is fits.get(str(value), False)
        assert info.status == JobStatus.RUNNING
        assert info.raw[name] == value
        json.dumps(info.to_dict())
        assert repr(info)
        assert hash(info) == hash(make_info("RUNNING", **{name: value}))

    @pytest.mark.parametrize(
        "value", [0, 0.0, -0.0, 10**18, -(10**18), 10**400, float("nan"), float("inf")], ids=str
    )
    def test_impossible_time_is_none(self, value: float) -> None:
        """A time of 0, or one that no calendar has, is None."""
        info = make_info(start_time=value, end_time=value)

        assert (info.start_time, info.end_time) == (None, None)

    @pytest.mark.parametrize("raw", [{}, {"status": None}, {"status": ""}, {"status": 3}], ids=repr)
    def test_body_without_a_status(self, raw: dict[str, Any]) -> None:
        """An object without a text status is no job."""
        with pytest.raises(ValueError, match="status"):
            JobInfo(raw, fetched_at=START)

    @pytest.mark.parametrize("raw", [[], None, 3, "RUNNING", [["status", "RUNNING"]]], ids=repr)
    def test_body_that_is_no_object(self, raw: Any) -> None:
        """What is no JSON object is a ValueError too."""
        with pytest.raises(ValueError, match="raw is no mapping"):
            JobInfo(raw, fetched_at=START)

    def test_deep_mapping_is_readable_from_a_deep_stack(self) -> None:
        """What could be read from JSON can be copied out of a deeper call."""
        depth = 940
        text = '{"status": "RUNNING", "metadata": ' + '{"a": ' * depth + "1" + "}" * (depth + 1)
        try:
            info = JobInfo(json.loads(text), fetched_at=START)
        except (ValueError, RecursionError):
            return  # that deep a body is no job

        def at_depth(left: int, act: Callable[[], object]) -> object:
            return act() if left == 0 else at_depth(left - 1, act)

        at_depth(100, lambda: info.metadata)
        at_depth(100, lambda: info.raw)
        at_depth(100, info.to_dict)


class TestStamped:
    """The same answer at another time, in shared memory."""

    LATER = START + timedelta(seconds=3)

    def test_equal_answer_shares_the_older_ones_memory(self, info: JobInfo) -> None:
        """A poll that brings nothing new keeps what was there."""
        again = JobInfo(copy.deepcopy(RAW), fetched_at=START).stamped(self.LATER, info)

        assert again._raw is info._raw
        assert again.fetched_at == self.LATER

    @pytest.mark.parametrize(
        ("before", "after"),
        [(True, 1), (1, True), (0, False), (1, 1.0)],
        ids=repr,
    )
    def test_change_of_type_alone_is_kept(self, before: Any, after: Any) -> None:
        """A field that `==` takes for the older one, but is of another type, is not lost."""
        older = make_info("FAILED", driver_exit_code=before)
        newer = make_info("FAILED", driver_exit_code=after).stamped(START, older)

        assert repr(newer.raw["driver_exit_code"]) == repr(after)
        assert newer != older


class TestJobInfoIsAValue:
    """Immutable, hashable, safe to share."""

    def test_what_it_was_made_of_can_be_changed(self) -> None:
        """It holds a copy: the caller may go on with his mapping, at any depth."""
        raw = copy.deepcopy(RAW)
        info = JobInfo(raw, fetched_at=START)
        raw["status"] = "RUNNING"
        raw["runtime_env"]["env_vars"].clear()
        raw["from_a_newer_ray"].append(2)

        assert info.raw == RAW

    def test_made_of_a_mapping_that_is_no_dict(self) -> None:
        """Any mappings will do, at any depth, and so will tuples."""
        env = MappingProxyType({"env_vars": MappingProxyType({"A": ("b",)})})
        info = JobInfo(MappingProxyType({**RAW, "runtime_env": env}), fetched_at=START)

        assert info.runtime_env == {"env_vars": {"A": ["b"]}}
        assert info.raw == {**RAW, "runtime_env": info.runtime_env}
        assert pickle.loads(pickle.dumps(info)) == info
        assert copy.deepcopy(info) == info

    def test_levels(self) -> None:
        """A hundred levels are taken, with empty ones below; one more is a ValueError."""
        nested: Any = []
        for _ in range(99):
            nested = [nested]
        info = make_info(metadata=nested)

        assert info.raw["metadata"] == nested
        with pytest.raises(ValueError, match="100 levels"):
            make_info(metadata=[nested])

    @pytest.mark.parametrize("name", ["status", "message", "fetched_at", "new", "_raw"])
    def test_is_frozen(self, info: JobInfo, name: str) -> None:
        """No attribute can be set or deleted."""
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(info, name, None)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(info, name)

        assert info == JobInfo(RAW, fetched_at=START)

    def test_mappings_are_fresh_copies(self, info: JobInfo) -> None:
        """What one reader does to a mapping, at any depth, no other sees."""
        for name in (*MAPPINGS, "raw"):
            mapping = getattr(info, name)
            mapping["added"] = True
        env = info.runtime_env
        assert env is not None
        env["env_vars"]["PASSWORD"] = "changed"
        info.raw["from_a_newer_ray"][1]["a"] = "changed"
        info.to_dict()["runtime_env"]["env_vars"].clear()

        assert info.raw == RAW
        assert info == JobInfo(RAW, fetched_at=START)

    def test_equality(self, info: JobInfo) -> None:
        """Two answers are equal if their content and their time are."""
        twin = JobInfo(copy.deepcopy(RAW), fetched_at=START)
        others = [
            JobInfo({**RAW, "message": "other"}, fetched_at=START),
            JobInfo({**RAW, "from_a_newer_ray": 1}, fetched_at=START),
            JobInfo(RAW, fetched_at=START + timedelta(seconds=1)),
        ]

        assert info == twin
        assert hash(info) == hash(twin)
        assert all(info != other for other in others)
        assert info != RAW
        assert len({info, twin, *others}) == 4

    def test_copies(self, info: JobInfo) -> None:
        """Copies and pickles are equal."""
        twins = [copy.copy(info), copy.deepcopy(info)]
        twins += [pickle.loads(pickle.dumps(info, protocol)) for protocol in range(2, 6)]
        for twin in twins:
            assert twin == info
            assert type(twin) is JobInfo
            assert twin.status is JobStatus.FAILED

    def test_repr_hides_secrets(self, info: JobInfo) -> None:
        """`repr` names the job and its status, and hides runtime_env."""
        text = repr(info)

        assert "raysubmit_1" in text
        assert "FAILED" in text
        assert "s3cret" not in text
        assert "PASSWORD" not in text
        assert "\n" not in text

    def test_to_dict_is_ready_for_json(self, info: JobInfo) -> None:
        """All fields but `raw`, times as ISO 8601 texts."""
        fields = json.loads(json.dumps(info.to_dict()))

        assert fields == {
            **{name: RAW[name] for name in (*TEXTS, *MAPPINGS, "status", "driver_exit_code")},
            "start_time": "2026-01-01T00:00:00.123000+00:00",
            "end_time": "2026-01-01T00:00:01+00:00",
            "fetched_at": "2026-01-01T00:00:00+00:00",
        }
        assert type(info.to_dict()["status"]) is str


class TestSnapshotAndChange:
    """Frozen records of a moment."""

    @pytest.mark.parametrize(("info", "known"), [(make_info(), True), (None, False)])
    def test_known(self, info: JobInfo | None, known: bool) -> None:
        """A job is known if there is an answer about it, whatever its error."""
        snapshot = JobSnapshot("a", CLUSTER, info, unavailable(), False, None, None, 1, None, 1.0)

        assert snapshot.known is known
        with pytest.raises(dataclasses.FrozenInstanceError):
            snapshot.fresh = True  # type: ignore[misc]

    def test_can_be_compared_hashed_and_pickled(self) -> None:
        """Equal content is an equal value."""
        snapshot = JobSnapshot("a", CLUSTER, make_info(), None, True, START, 1.0, 0, None, 2.0)
        change = JobChange(CLUSTER, "a", None, make_info(), None)
        for value in (snapshot, change):
            twin = pickle.loads(pickle.dumps(value))
            assert twin == value
            assert hash(twin) == hash(value)
            assert copy.deepcopy(value) == value
            assert dataclasses.replace(value, job_id="b") != value

    def test_stats_can_be_copied(self) -> None:
        """The statistics can be turned into a dict, for JSON or metrics, and copied."""
        stats = JobInfoCache().stats()
        fields = dataclasses.asdict(stats)

        assert json.loads(json.dumps(fields))["polls_failed"]["not_found"] == 0
        assert copy.deepcopy(stats) == stats
        assert pickle.loads(pickle.dumps(stats)) == stats

    def test_stats_are_of_one_moment(self) -> None:
        """No counter can be set, and what is done to one snapshot's failures no other sees."""
        cache = JobInfoCache()
        stats = cache.stats()
        with pytest.raises(dataclasses.FrozenInstanceError):
            stats.entries = 1  # type: ignore[misc]
        dict.update(stats.polls_failed, auth=1)

        assert cache.stats().polls_failed["auth"] == 0


class TestCluster:
    """The identity of one incarnation of a cluster."""

    def test_is_a_named_tuple(self) -> None:
        """Namespace, name and uid, in that order; the uid is optional."""
        cluster = Cluster("ns", "one")

        assert cluster == ("ns", "one", "")
        assert (cluster.namespace, cluster.name, cluster.uid) == ("ns", "one", "")
        assert Cluster._fields == ("namespace", "name", "uid")
        assert Cluster("ns", "one", "u") != cluster
        assert repr(cluster) == "Cluster(namespace='ns', name='one', uid='')"

    def test_is_never_rewritten(self) -> None:
        """Names of any length and with any characters are kept whole."""
        names = ["x" * 5000, "a/b", "ü", " a ", "A", "\n", "\x00"]

        assert [Cluster(name, name, name)[:] for name in names] == [(name,) * 3 for name in names]

    def test_enum_member_is_taken_by_its_content(self) -> None:
        """A member of a text enum stands for what it holds, not for its name."""
        cluster = Cluster(Name.A, Name.A, Name.A)

        assert repr(cluster) == "Cluster(namespace='name-a', name='name-a', uid='name-a')"

    @pytest.mark.parametrize(
        ("name", "shown"),
        [("one", "one"), ("ü", "ü"), ("a\nb", r"a\nb"), ("\x1b\u2028", r"\x1b\u2028")],
        ids=ascii,
    )
    def test_text_is_one_line(self, name: str, shown: str) -> None:
        """`str()`, which messages use, shows control characters and line ends as escapes."""
        assert str(Cluster("ns", name)) == f"ns/{shown}"
        assert str(Cluster("ns", "one", name)) == f"ns/one ({shown})"

    @pytest.mark.parametrize(
        "parts",
        [("", "one"), ("ns", ""), ("", ""), (None, "one"), ("ns", 3), ("ns", "one", None)],
        ids=repr,
    )
    def test_what_names_no_cluster(self, parts: Any) -> None:
        """An empty namespace or name, or what is no text, is a ValueError that says which."""
        with pytest.raises(ValueError, match=r"Cluster (namespace|name|uid) is"):
            Cluster(*parts)
        with pytest.raises(ValueError, match="Cluster"):
            Cluster._make(parts)

    def test_copies(self) -> None:
        """Copies, pickles and replacements are checked clusters."""
        cluster = Cluster("ns", "one", "u")
        for twin in (copy.deepcopy(cluster), pickle.loads(pickle.dumps(cluster))):
            assert twin == cluster
            assert type(twin) is Cluster
        assert cluster._replace(uid="v") == Cluster("ns", "one", "v")
        with pytest.raises(ValueError, match="Cluster name"):
            cluster._replace(name="")


class TestJobIds:
    """Which texts can be a job's id."""

    @pytest.mark.parametrize(
        "job_id",
        ["a", "a/b", "a b", "%2F", "ü", "...", "?", "#", "x" * 1024, "\xa0", "\U0001f600", ".a"],
        ids=ascii,
    )
    def test_possible(self, job_id: str) -> None:
        """Any other text is taken as it is."""
        assert check_job_id(job_id) == job_id

    @pytest.mark.parametrize(
        "job_id",
        [
            "",
            ".",
            "..",
            "x" * 1025,
            "a\nb",
            "\x00",
            "\x7f",
            "\x80",
            "\ud800",
            None,
            3,
            b"a",
            [],
            {},
        ],
        ids=lambda value: ascii(value)[:12],
    )
    def test_impossible(self, job_id: Any) -> None:
        """It is an InvalidJobId, which is a ValueError, in one line that is not too long."""
        with pytest.raises(InvalidJobId) as raised:
            check_job_id(job_id)

        assert isinstance(raised.value, ValueError)
        assert len(str(raised.value)) < 400
        assert str(raised.value).isprintable()

    def test_subclass_becomes_a_plain_text(self) -> None:
        """An id of a str subclass is taken as its text."""

        class Id(str):
            """A str of somebody else's."""

            __slots__ = ()

        assert type(check_job_id(Id("a"))) is str

    def test_enum_member_is_taken_by_its_content(self) -> None:
        """A member of a text enum names the job that it holds, not "Name.A"."""
        job_id = check_job_id(Name.A)

        assert (job_id, type(job_id)) == ("name-a", str)
