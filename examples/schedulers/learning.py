#!/usr/bin/env python3
"""A scheduler of parallel jobs that learns which job to start next.

    pip install gymnasium numpy     beside the package dormouse
    ./learning.py                   a minute; with --quick a few seconds, to see that it works

The policy is linear: each waiting job that fits has a score, a weighted sum of what the environment
shows of it; so has waiting; the highest score is done. The weights are found by the cross-entropy
method: draw some, play episodes with each, go on around the best. The program ends with the mean
response time on seeds that it has not seen, beside those of FCFS and EASY on the same.
"""

import argparse

import numpy as np

import dormouse
from dormouse.gym import BatchEnv

EXPERIMENT = "fw-like"
SETTINGS = {"workload.jobs": 300, "workload.load": 0.9}
TRAINING = [1, 2, 3, 4]  # seeds
UNSEEN = list(range(101, 111))
GENERATIONS, CANDIDATES, BEST = 10, 16, 4
# Of a job: processors, estimate, waiting time, whether it would delay the first, its place; of waiting:
# always 1, and the part of the processors that is idle.
WEIGHTS = 7


def choose(seen, mask, weights):
    jobs = seen[4:].reshape(-1, 6)
    places = np.arange(len(jobs)) / len(jobs)
    features = np.column_stack([jobs[:, 1], jobs[:, 2], jobs[:, 3], jobs[:, 5], places])
    wait = weights[5] + weights[6] * seen[0]
    scores = np.concatenate([[wait], features @ weights[:5]])
    return int(np.argmax(np.where(mask == 1, scores, -np.inf)))


def mean_response(env, weights, seeds):
    """Mean response time in seconds, the mean over the seeds."""
    means = []
    for seed in seeds:
        seen, info = env.reset(seed=seed)
        while "summary" not in info:
            seen, _, _, _, info = env.step(choose(seen, info["action_mask"], weights))
        means.append(info["summary"]["mean_response_s"])
    return float(np.mean(means))


def learn(env, generations, candidates, chance):
    """The weights that the cross-entropy method ends with."""
    mean, spread = np.zeros(WEIGHTS), np.ones(WEIGHTS)
    for generation in range(generations):
        drawn = mean + spread * chance.standard_normal((candidates, WEIGHTS))
        figures = [mean_response(env, weights, TRAINING) for weights in drawn]
        best = drawn[np.argsort(figures)[:BEST]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.05
        print(f"generation {generation + 1}: best {min(figures):.0f} s", flush=True)
    return mean


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="one small generation")
    quick = parser.parse_args().quick
    generations, candidates = (1, BEST) if quick else (GENERATIONS, CANDIDATES)
    env = BatchEnv(EXPERIMENT, set=SETTINGS)
    weights = learn(env, generations, candidates, np.random.default_rng(1))
    print(f"weights {np.round(weights, 2).tolist()}")
    print(f"mean response on seeds {UNSEEN[0]} to {UNSEEN[-1]}:")
    print(f"  learned  {mean_response(env, weights, UNSEEN):7.0f} s")
    env.close()
    for scheduler in ("fcfs", "easy"):
        runs = [
            dormouse.run(EXPERIMENT, scheduler=scheduler, seed=seed, set=SETTINGS)
            for seed in UNSEEN
        ]
        mean = np.mean([run.summary["mean_response_s"] for run in runs])
        print(f"  {scheduler:8} {mean:7.0f} s")


if __name__ == "__main__":
    main()
