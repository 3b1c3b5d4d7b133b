"""Gymnasium environments of dormouse, for schedulers that learn.

`BagEnv` buys VMs for a bag of tasks; `BatchEnv` picks parallel jobs from a queue. Each episode is a
run of the command `dormouse` in virtual time. They are registered: `gymnasium.make` knows them as
"dormouse.gym:dormouse/Bag-v0" and "dormouse.gym:dormouse/Batch-v0".
"""

from ..errors import MissingPackage

try:
    import gymnasium
except ImportError:
    raise MissingPackage(
        "dormouse.gym needs the package gymnasium: pip install 'dormouse[gym]'"
    ) from None

from .bag import BagEnv
from .batch import BatchEnv

gymnasium.register("dormouse/Bag-v0", entry_point="dormouse.gym.bag:BagEnv")
gymnasium.register("dormouse/Batch-v0", entry_point="dormouse.gym.batch:BatchEnv")

__all__ = ["BagEnv", "BatchEnv"]
