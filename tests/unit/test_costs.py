"""Tests of the choice between one list request and several single ones."""

from __future__ import annotations

import pytest

from jobinfo_cache.costs import Costs


def rounds(costs: Costs, due: int, count: int) -> list[bool]:
    """The choices of so many rounds."""
    return [costs.prefers_list(due) for _ in range(count)]


def measured(single: float, listed: float) -> Costs:
    costs = Costs()
    costs.took_single(single)
    costs.took_list(listed)
    return costs


@pytest.mark.parametrize("due", [0, 1])
def test_one_job_is_never_worth_a_list(due: int) -> None:
    """Fewer than two due jobs are asked about singly, even where a list costs nothing."""
    assert measured(1.0, 0.0).prefers_list(due) is False


@pytest.mark.parametrize("due", [2, 3, 10, 1000])
def test_unmeasured_list_is_tried_for_all_jobs(due: int) -> None:
    """As long as nothing else is known, the due jobs are taken for all the records."""
    assert Costs().prefers_list(due) is True


def test_list_with_long_history_loses() -> None:
    """A list that took longer than the due jobs' single requests is not made again."""
    costs = measured(0.0065, 0.7)
    assert rounds(costs, 100, 10) == [False] * 10
    assert costs.prefers_list(108) is True


def test_choice_follows_what_is_measured() -> None:
    """A list that gets dearer and dearer is given up, and is taken again when it is cheap."""
    costs = measured(0.01, 0.05)
    assert costs.prefers_list(10) is True
    for _ in range(20):
        costs.took_list(1.0)
    assert costs.prefers_list(10) is False
    for _ in range(20):
        costs.took_list(0.05)
    assert costs.prefers_list(10) is True


def test_one_slow_answer_does_not_decide() -> None:
    """The costs are moving averages: one outlier does not turn the choice."""
    costs = measured(0.01, 0.05)
    costs.took_list(0.1)
    assert costs.prefers_list(10) is True


def test_failed_list_is_left_alone() -> None:
    """After a list that failed, single requests are made for many rounds."""
    costs = measured(0.01, 0.001)
    costs.list_failed()
    assert not any(rounds(costs, 100, 50))


def test_failed_list_is_tried_again_in_the_end() -> None:
    """However often a list has failed, it is tried now and then, and may win again."""
    costs = measured(0.01, 0.001)
    costs.list_failed()
    tries = 0
    for _ in range(200):
        if costs.prefers_list(100):
            tries += 1
            costs.list_failed()
    assert 1 <= tries <= 200 // 32
    costs.took_list(0.001)
    assert costs.prefers_list(100) is True


def test_single_is_measured_again_in_the_end() -> None:
    """However cheap the list is, a single request is measured now and then."""
    costs = measured(0.01, 0.001)
    wanted = 0
    for _ in range(200):
        assert costs.prefers_list(100) is True
        if costs.wants_single:
            wanted += 1
            costs.took_single(0.01)
    assert 1 <= wanted <= 200 // 32


def test_first_single_is_wanted() -> None:
    """A cluster of which nothing was measured wants one single request, and one only."""
    costs = Costs()
    assert costs.wants_single
    costs.took_single(0.01)
    assert not costs.wants_single


def test_answers_too_fast_to_measure_still_choose_the_list() -> None:
    """Durations of zero, which a coarse clock gives, do not make single requests free."""
    assert measured(0.0, 0.0).prefers_list(100) is True
