"""What a smoke run holds against the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobinfo_cache import Cluster, DashboardClient, DashboardError, JobStatus
from jobinfo_cache.commands.controller import Controller
from jobinfo_cache.commands.output import one_line
from jobinfo_cache.commands.pulse import FIRST_LIMIT, LIMIT, Meter, Pulse
from jobinfo_cache.commands.workload import Job, JobKey

__all__ = ["about_jobs", "about_reads", "about_the_end"]


def about_reads(meter: Meter, pulse: Pulse) -> list[str]:
    """Reads that took over 50 ms by themselves.

    The limit is on the wall clock, less the time in which not even the pulse could run: a machine
    that stands still makes any code slow, and says nothing about a read. The first read starts
    threads, which takes as long as the system likes, and has a limit of its own.
    """
    readings = [("a read", reading, LIMIT) for reading in meter.late]
    if meter.first is not None:
        readings.append(("the first read", meter.first, FIRST_LIMIT))
    problems = []
    for what, reading, limit in readings:
        own = reading.wall - pulse.stalled(reading.began, reading.ended)
        if own > limit:
            problems.append(f"{what} took {own * 1000:.0f} ms; the limit is {limit * 1000:.0f} ms")
    return problems


def about_jobs(
    jobs: Sequence[Job], controller: Controller, dashboards: Mapping[Cluster, DashboardClient]
) -> list[str]:
    """Ends that were missed, that changed, or that are not what was to be.

    Asks the dashboards themselves how it ended; blocks for their answers.
    """
    problems = [
        f"{key.job_id} was {controller.ended[key].status} and then {info.status}"
        for key, info in controller.changed.items()
    ]
    problems += [
        f"{key.job_id} was known at its first read, which must have waited for that"
        for key in controller.known_at_once
    ]
    truth = _truth(dashboards, problems)
    for job in jobs:
        info = controller.ended.get(job.key)
        true = truth.get(job.key)
        if true is not None and true.is_terminal and (info is None or info.status != true):
            said = "no end" if info is None else info.status
            problems.append(f"{job.key.job_id} is {true}, but reads said {said}")
        complaint = None if info is None else job.complaint(info)
        if complaint is not None:
            problems.append(f"{job.key.job_id} {complaint}")
    return problems


def about_the_end(in_time: bool, threads_left: Sequence[str], heard: str) -> list[str]:
    """What `close` left behind, and what the library printed."""
    problems = [] if in_time else ["close did not end in time"]
    problems += [f"thread {name} is left after close" for name in threads_left]
    if heard:
        problems.append(f"something was printed: {one_line(heard)}")
    return problems


def _truth(
    dashboards: Mapping[Cluster, DashboardClient], problems: list[str]
) -> dict[JobKey, JobStatus]:
    """The status of all jobs as the dashboards give it now; adds what cannot be asked."""
    truth = {}
    for cluster, dashboard in dashboards.items():
        try:
            infos = dashboard.list_jobs()
        except DashboardError as error:
            problems.append(f"the ends could not be verified: {one_line(str(error))}")
            continue
        for info in infos:
            truth[JobKey(cluster, info.submission_id or "")] = info.status
    return truth
