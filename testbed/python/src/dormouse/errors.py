"""Errors of the package, each with a sentence that says what went wrong."""

from __future__ import annotations

# Most lines of a scheduler's standard error that an error shows.
_SHOWN = 20


class DormouseError(Exception):
    """The base class of all errors of the package."""


class ProtocolError(DormouseError):
    """dormouse and the scheduler do not understand each other."""


class ResumeError(DormouseError):
    """A scheduler that is played a log decides otherwise than the log says it did."""


class WorkError(DormouseError):
    """A scheduler of bags was given parallel jobs, or the other way round."""


class CommandError(DormouseError):
    """The command `dormouse` ended with an error.

    The text of the error is the command's own sentence, and below it the end of what a scheduler
    wrote to standard error, where one did.
    """

    def __init__(self, sentence: str, status: int, scheduler_said: str = "") -> None:
        last = scheduler_said.rstrip().splitlines()[-_SHOWN:]
        super().__init__("\n".join([sentence, *last]))
        self.sentence = sentence
        """The command's own sentence."""
        self.status = status
        """The command's exit status."""
        self.scheduler_said = scheduler_said
        """All that schedulers wrote to standard error."""


class MissingPackage(DormouseError):
    """A package that is needed for this, and only for this, is not installed."""
