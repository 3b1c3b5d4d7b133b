"""Schedulers in Python for Dormouse, a cloud on a bench, readers of its results, and its EC2 for tests."""

from .cloud import Ec2Cloud, ec2
from .command import compare, find_command, run, sweep
from .errors import (
    CommandError,
    DormouseError,
    MissingPackage,
    ProtocolError,
    ResumeError,
    WorkError,
)
from .hello import Bag, Burstable, Catalogue, Hello, InstanceType, Limits, Machine, Task
from .results import Results, Run
from .scheduler import Decision, Job, Scheduler
from .tables import Table

__all__ = [
    "Bag",
    "Burstable",
    "Catalogue",
    "CommandError",
    "Decision",
    "DormouseError",
    "Ec2Cloud",
    "Hello",
    "InstanceType",
    "Job",
    "Limits",
    "Machine",
    "MissingPackage",
    "ProtocolError",
    "Results",
    "ResumeError",
    "Run",
    "Scheduler",
    "Table",
    "Task",
    "WorkError",
    "compare",
    "ec2",
    "find_command",
    "run",
    "sweep",
]
