"""What the environments have in common: an episode is a run, a turn is a choice in it."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Mapping

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ..episode import Episode
from ..results import StrPath

Observation = NDArray[np.float32]
Info = dict[str, Any]

_WEEK = 604_800
_SEEDS = 2**31


class DormouseEnv(gymnasium.Env[Observation, np.int64]):
    """An environment whose episodes are runs of an experiment in virtual time.

    `info` has "action_mask", an array with 1 for each action that is possible, and "now", the
    emulated time in microseconds; at the end of a run also "summary", its `summary.json`. An action
    that the mask excludes is taken as the first that it does not exclude.
    """

    metadata = {"render_modes": []}

    def __init__(
        self, experiment: StrPath, set: Mapping[str, Any] | None, command: StrPath | None
    ) -> None:
        self._experiment, self._set, self._command = experiment, set, command
        self._episode: Episode | None = None

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Breaks the run off, if it is not over, and begins one with this seed.

        Without a seed it is drawn from the generator that the last seed has set up. There are no
        options.
        """
        super().reset(seed=seed)
        self.close()
        run_seed = seed if seed is not None else int(self.np_random.integers(_SEEDS))
        self._episode = Episode(
            self._experiment, seed=run_seed, set=self._set, command=self._command
        )
        self._begin(self._episode)
        if not self._advance(self._episode):
            raise RuntimeError(f"{self._experiment} ends before there is anything to decide")
        return self._observe(), self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, Info]:
        """Takes an action, and lets time pass if it is to wait."""
        if self._episode is None:
            raise RuntimeError("the run is over: call reset")
        mask = self._mask()
        chosen = int(action) if mask[int(action)] else int(np.argmax(mask))
        if self._act(chosen) or self._advance(self._episode):
            truncated = self._is_hopeless()
            return self._observe(), self._reward(), False, truncated, self._info()
        info = {**self._info(), "summary": self._episode.run.summary}
        self._settle(info["summary"])
        self.close()
        return self._observe(), self._reward(), True, False, info

    def close(self) -> None:
        """Breaks the run off if it is not over. Ends nothing that this object has not started."""
        if self._episode is not None:
            self._episode.close()
            self._episode = None

    def _info(self) -> Info:
        return {"action_mask": self._mask(), "now": self._now()}

    def _is_hopeless(self) -> bool:
        """Whether the run is to be broken off here."""
        return False

    @abstractmethod
    def _begin(self, episode: Episode) -> None:
        """Forgets the run before; nothing was asked yet in this one."""

    @abstractmethod
    def _advance(self, episode: Episode) -> bool:
        """Lets time pass until there is a choice; `False` if the run ends before."""

    @abstractmethod
    def _act(self, action: int) -> bool:
        """Takes an action that the mask allows; `False` if time is to pass then."""

    @abstractmethod
    def _settle(self, summary: Mapping[str, Any]) -> None:
        """Counts into the reward what happened since the last choice of a run that is over."""

    @abstractmethod
    def _reward(self) -> float:
        """The reward since this was called last."""

    @abstractmethod
    def _observe(self) -> Observation:
        """What is the case now, in the columns of the observation space."""

    @abstractmethod
    def _mask(self) -> NDArray[np.int8]:
        """1 for each action that is possible now; never 0 for all."""

    @abstractmethod
    def _now(self) -> int:
        """Emulated time in microseconds."""


def log_time(span: int) -> float:
    """A span in microseconds as a number from 0 to 1: logarithmic, 1 from a week on."""
    return min(1.0, math.log1p(max(0, span) / 1e6) / math.log1p(_WEEK))
