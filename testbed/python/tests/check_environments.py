#!/usr/bin/env python3
"""Checks the environments with gymnasium's own checker, on runs of the real command.

    check_environments.py        needs gymnasium and numpy, and `dormouse` (PATH or DORMOUSE)
"""

from __future__ import annotations

import unittest
import warnings
from typing import Any, Callable

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray

from dormouse.gym import BagEnv, BatchEnv
from dormouse.gym.env import DormouseEnv

Choose = Callable[[NDArray[np.int8]], int]


def play(env: DormouseEnv, seed: int, choose: Choose) -> tuple[float, dict[str, Any], list[Any]]:
    """An episode: the sum of its rewards, the last info, all observations."""
    seen, info = env.reset(seed=seed)
    total, all_seen, over = 0.0, [seen.tolist()], False
    while not over:
        seen, reward, ended, truncated, info = env.step(np.int64(choose(info["action_mask"])))
        total, over = total + reward, ended or truncated
        all_seen.append(seen.tolist())
        assert env.observation_space.contains(seen), seen
    return total, info, all_seen


def at_random(seed: int) -> Choose:
    chance = np.random.default_rng(seed)
    return lambda mask: int(chance.choice(np.flatnonzero(mask)))


def first_job(mask: NDArray[np.int8]) -> int:
    """The first job if it fits, or else the least action that is possible: first come, first served."""
    return 1 if mask[1] else 0


class Environments(unittest.TestCase):
    def test_gymnasium_finds_nothing_to_complain_of(self) -> None:
        for name in "Bag", "Batch":
            with self.subTest(name), warnings.catch_warnings():
                warnings.simplefilter("error")
                env = gymnasium.make(f"dormouse.gym:dormouse/{name}-v0")
                check_env(env.unwrapped)
                env.close()

    def test_rewards_of_a_bag_add_up_to_its_bill(self) -> None:
        env = BagEnv("j60-sc5", period=30)
        total, info, _ = play(env, 1, at_random(1))
        self.assertTrue(info["summary"]["deadline_met"])
        self.assertAlmostEqual(total, -100 * info["summary"]["cost_usd"], places=6)

    def test_a_bag_that_is_never_worked_on_is_truncated_and_late(self) -> None:
        env = BagEnv("j60", period=300)
        total, info, _ = play(env, 1, lambda mask: 0)
        env.close()
        self.assertEqual((total, info["now"]), (-100.0, 5_400_000_000))
        self.assertNotIn("summary", info)

    def test_rewards_of_jobs_add_up_to_their_response(self) -> None:
        env = BatchEnv("fw-like", set={"workload.jobs": 200})
        total, info, _ = play(env, 3, at_random(1))
        hours = info["summary"]["mean_response_s"] * info["summary"]["tasks"]["total"] / 3600
        self.assertAlmostEqual(total, -hours, places=6)

    def test_the_first_job_always_is_first_come_first_served(self) -> None:
        # Where the first does not fit, jobs behind it may: waiting is what FCFS does then.
        _, info, _ = play(BatchEnv("batch-small"), 1, first_job)
        self.assertEqual(info["summary"]["mean_response_s"], 1873.225)

    def test_the_same_seed_and_actions_make_the_same_episode(self) -> None:
        for env in BagEnv("j60-sc2"), BatchEnv("batch-small"):
            first, second = (play(env, 7, at_random(2)) for _ in range(2))
            env.close()
            self.assertEqual(first[0], second[0])
            self.assertEqual(first[2], second[2])

    def test_an_action_that_is_excluded_is_the_first_possible_one(self) -> None:
        env = BatchEnv("batch-small")
        _, info = env.reset(seed=1)
        self.assertEqual(info["action_mask"].tolist(), [0, 1] + [0] * 9)
        seen, _, _, _, _ = env.step(np.int64(5))
        other = BatchEnv("batch-small")
        other.reset(seed=1)
        expected, _, _, _, _ = other.step(np.int64(1))
        env.close()
        other.close()
        self.assertEqual(seen.tolist(), expected.tolist())


if __name__ == "__main__":
    unittest.main()
