"""The fixture `dormouse_ec2` of pytest, which the package brings along."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Callable, Iterator

import pytest

from .cloud import Ec2Cloud, ec2


@pytest.fixture
def dormouse_ec2() -> Iterator[Callable[..., Ec2Cloud]]:
    """Begins a cloud behind EC2's API, which ends with the test: called as `dormouse.ec2` is.

        def test_my_manager(dormouse_ec2):
            cloud = dormouse_ec2("experiment.toml")
            my_manager.keep(cloud.client("ec2"), hours=24)
    """
    with ExitStack() as clouds:

        def begin(experiment: Any, **options: Any) -> Ec2Cloud:
            return clouds.enter_context(ec2(experiment, **options))

        yield begin
