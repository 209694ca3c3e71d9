"""One smoke run: the cache, the controller, and the checks at the end."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from jobinfo_cache import (
    Cluster,
    DashboardClient,
    JobChange,
    JobInfoCache,
    Settings,
    Stats,
)
from jobinfo_cache.commands import checks
from jobinfo_cache.commands.agenda import Agenda
from jobinfo_cache.commands.controller import Controller
from jobinfo_cache.commands.exits import Exit
from jobinfo_cache.commands.output import Output
from jobinfo_cache.commands.progress import Progress
from jobinfo_cache.commands.pulse import Pulse
from jobinfo_cache.commands.silence import Silence
from jobinfo_cache.commands.summary import Summary
from jobinfo_cache.commands.workload import Job, JobKey

__all__ = ["Trial"]


class Trial:
    """Submits the jobs, follows them to their ends, and says what was wrong. Runs once.

    `dashboards` are for the cache, `patient` for direct requests that may take long.
    `submitted` are the jobs that the dashboards may have.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        dashboards: Mapping[Cluster, DashboardClient],
        patient: Mapping[Cluster, DashboardClient],
        settings: Settings,
        output: Output,
    ) -> None:
        self._jobs = jobs
        self._dashboards = dashboards
        self._patient = patient
        self._settings = settings
        self._output = output
        self.submitted: list[Job] = []
        self._agenda: Agenda[JobKey] = Agenda()
        self._pulse = Pulse()
        self._progress = Progress(output)

    def run(self, timeout: float) -> Exit:
        """Do it, and write the summary; `timeout` seconds from now all must have ended.

        Raises the errors of a dashboard that takes no jobs, refuses the token, or loses a job.
        """
        began = time.monotonic()
        others = set(threading.enumerate())
        silence = Silence()
        with silence, self._progress:
            self._submit()
            with JobInfoCache(self._settings, on_change=self._on_change) as cache:
                controller = self._control(cache, began + timeout)
                stats = cache.stats()
                in_time = cache.close()
            left = [thread.name for thread in threading.enumerate() if _is_new(thread, others)]
            problems = checks.about_jobs(self._jobs, controller, self._patient)
        problems += checks.about_reads(controller.meter, self._pulse)
        problems += checks.about_the_end(in_time, left, silence.heard)
        found = self._summary(controller, stats, left, time.monotonic() - began, problems)
        self._output.data(found.text(), found.fields())
        return found.exit

    def _submit(self) -> None:
        for job in self._jobs:
            self.submitted.append(job)  # first: a request without an answer may have got there
            self._progress.show(f"submitted {len(self.submitted) - 1} of {len(self._jobs)} jobs")
            job.submit(self._patient[job.key.cluster])
        self._output.note(f"{len(self._jobs)} jobs on {len(self._patient)} clusters")

    def _control(self, cache: JobInfoCache, deadline: float) -> Controller:
        """The controller, when all have ended or the time is up."""
        clients = {
            cluster: cache.client(dashboard, cluster)
            for cluster, dashboard in self._dashboards.items()
        }
        controller = Controller(self._jobs, clients, self._agenda, self._on_turn)
        with self._pulse:
            controller.run(deadline)
            for job in self._jobs:
                controller.reconcile(job)  # once more: an end must stay as it is
        return controller

    def _on_change(self, change: JobChange) -> None:
        self._agenda.put(JobKey(change.cluster, change.job_id))

    def _on_turn(self, ended: int) -> None:
        self._progress.show(f"{ended} of {len(self._jobs)} jobs have ended")

    def _summary(
        self,
        controller: Controller,
        stats: Stats,
        left: list[str],
        duration: float,
        problems: list[str],
    ) -> Summary:
        slowest = controller.meter.slowest
        return Summary(
            statuses=Counter(str(info.status) for info in controller.ended.values()),
            unfinished=len(self._jobs) - len(controller.ended),
            first=controller.meter.first,
            slowest=slowest,
            stalled=self._pulse.stalled(slowest.began, slowest.ended) if slowest else 0.0,
            reads=controller.meter.reads,
            requests=stats.requests_single + stats.requests_list,
            failures=controller.failures,
            oldest_age=controller.oldest_age,
            threads_left=left,
            duration=duration,
            problems=problems,
        )


def _is_new(thread: threading.Thread, others: set[threading.Thread]) -> bool:
    """Whether it was started since, and not by a simulated dashboard."""
    return thread not in others and not thread.name.startswith("simulator-")
