"""The longer texts of a Ray 2.60 dashboard, as it words them."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus

PHRASES = {status.value: status.phrase for status in HTTPStatus}

MESSAGES = {
    "RUNNING": "Job is currently running.",
    "STOPPED": "Job was intentionally stopped.",
    "SUCCEEDED": "Job finished successfully.",
}

INTERNAL_ERROR = "500 Internal Server Error\n\nServer got itself in trouble"
NO_SERVE = 'Serve dependencies are not installed. Please run `pip install "ray[serve]"`.'
NO_TOKEN = "Unauthorized: Missing authentication token"
WRONG_TOKEN = "Forbidden: Invalid authentication token"
INDEX = '<!doctype html><html lang="en"><head><title>Ray Dashboard</title></head></html>'
LOGIN = "<!doctype html><html><head><title>Log in</title></head><body>Please log in.</body></html>"

_SITE = "/opt/ray/lib/python3.11/site-packages/ray/dashboard/modules/job"
_NO_SUBMISSION = "Can only {} submission type jobs"


def plain(status: int) -> str:
    """What the server says of a status when nobody has more to say."""
    phrase = PHRASES.get(status)
    return f"{status}: {phrase}" if phrase else str(status)


def job_not_found(job_id: str) -> str:
    return f"Job {job_id} does not exist"


def only_submissions(act: str) -> str:
    """The refusal of `act` ("stop", "delete", "get logs of") on a driver job."""
    return _NO_SUBMISSION.format(act)


def browser_refused(method: str) -> str:
    return f"'{method}' method not allowed for browser traffic."


def pending(needs_resources: bool, has_environment: bool) -> str:
    parts = ["Job has not started yet."]
    if needs_resources:
        parts.append(
            "It may be waiting for resources (CPUs, GPUs, memory, custom resources) "
            "to become available."
        )
    if has_environment:
        parts.append("It may be waiting for the runtime environment to be set up.")
    return " ".join(parts)


def failed(exit_code: int | None, logs: str) -> str:
    return (
        f"Job entrypoint command failed with exit code {exit_code}, "
        f"last available logs (truncated to 20,000 chars):\n{logs[-20_000:]}"
    )


def logs(job_id: str, entrypoint: str, born_at: datetime) -> str:
    stamp = born_at.strftime("%Y-%m-%d %H:%M:%S,") + f"{born_at.microsecond // 1000:03d}"
    return (
        f"{stamp}\tINFO job_manager.py:581 -- Runtime env is setting up.\n"
        f"Running entrypoint for job {job_id}: {entrypoint}\n"
    )


def ghost(job_id: str) -> str:
    return (
        "Job supervisor actor died: The actor died unexpectedly before finishing this task.\n"
        "\tclass_name: JobSupervisor\n"
        "\tactor_id: ec8fe81fa88199839a6ee17701000000\n"
        "\tpid: 12175\n"
        f"\tname: _ray_internal_job_actor_{job_id}\n"
        "\tnamespace: SUPERVISOR_ACTOR_RAY_NAMESPACE\n"
        "\tip: 127.0.0.1\n"
        "The actor is dead because its worker process has died. "
        "Worker exit type: INTENDED_USER_EXIT Worker exit detail: Worker exits by an user "
        "request. Worker exits with an exit code 0. exit_actor() is called."
    )


def bad_environment(job_id: str, value: object) -> str:
    """What a job says whose env_vars hold `value`, which is no text."""
    wrong = (
        "runtime_env['env_vars'] must be of type Dict[str, str], "
        f"but the value {value} is of type {type(value)}"
    )
    return (
        f"Failed to start supervisor actor {job_id}: '{wrong}'. Full traceback:\n"
        "Traceback (most recent call last):\n"
        f'  File "{_SITE}/job_manager.py", line 598, in submit_job\n'
        "    supervisor = self._supervisor_actor_cls.options(\n"
        f"TypeError: {wrong}\n"
    )


def bad_request(complaint: str) -> str:
    """The traceback of a submit whose fields are wrong."""
    return (
        "Traceback (most recent call last):\n"
        f'  File "{_SITE}/utils.py", line 128, in parse_and_validate_request\n'
        "    return validate_request_type(json_data, request_type)\n"
        f"           {'^' * 46}\n"
        f'  File "{_SITE}/common.py", line 445, in validate_request_type\n'
        "    return request_type(**json_data)\n"
        f"           {'^' * 25}\n"
        f"TypeError: {complaint}\n"
    )


def used_id(job_id: str) -> str:
    """The traceback of a submit whose id is in use."""
    return (
        "Traceback (most recent call last):\n"
        f'  File "{_SITE}/job_head.py", line 419, in submit_job\n'
        "    resp = await job_agent_client.submit_job_internal(submit_request)\n"
        f"           {'^' * 58}\n"
        f'  File "{_SITE}/job_head.py", line 148, in submit_job_internal\n'
        f"{_relayed(400)}"
        f'  File "{_SITE}/job_agent.py", line 45, in submit_job\n'
        "    submission_id = await self.get_job_manager().submit_job(\n"
        f"                    {'^' * 40}\n"
        f'  File "{_SITE}/job_manager.py", line 553, in submit_job\n'
        "    raise ValueError(\n"
        f"ValueError: Job with submission_id {job_id} already exists. "
        "Please use a different submission_id.\n.\n"
    )


def live_job(job_id: str, status: str) -> str:
    """The traceback of a delete of a job that has not ended."""
    return (
        "Traceback (most recent call last):\n"
        f'  File "{_SITE}/job_head.py", line 500, in delete_job\n'
        "    resp = await job_agent_client.delete_job_internal(job.submission_id)\n"
        f"           {'^' * 61}\n"
        f'  File "{_SITE}/job_head.py", line 174, in delete_job_internal\n'
        f"{_relayed(500)}"
        f'  File "{_SITE}/job_agent.py", line 129, in delete_job\n'
        "    deleted = await self.get_job_manager().delete_job(job.submission_id)\n"
        f"              {'^' * 58}\n"
        f'  File "{_SITE}/job_manager.py", line 655, in delete_job\n'
        "    raise RuntimeError(\n"
        f"RuntimeError: Attempted to delete job '{job_id}', "
        f"but it is in a non-terminal state {status}.\n.\n"
    )


def _relayed(status: int) -> str:
    """The middle of a traceback that the head had from its agent."""
    return (
        "    await self._raise_error(resp)\n"
        f'  File "{_SITE}/job_head.py", line 134, in _raise_error\n'
        '    raise RuntimeError(f"Request failed with status code {status}: {error_text}.")\n'
        f"RuntimeError: Request failed with status code {status}: "
        "Traceback (most recent call last):\n"
    )
