"""The protocol between dormouse and a scheduler: JSON lines, one in, one out, strictly in turn."""

from __future__ import annotations

import json
import os
import sys
from operator import itemgetter
from typing import Any, BinaryIO, Callable, Mapping, NoReturn, Sequence

from .errors import ProtocolError, ResumeError
from .hello import Hello
from .scheduler import Decision, Job, Scheduler

VERSION = 1
"""The version of the protocol that this package speaks."""

Handler = Callable[[int, Mapping[str, Any]], None]
"""What hands a notice to its method: called with the time and the notice."""

# Kinds of notices, each with the name of its method and the fields that the method is given. A
# notice may have more fields: a newer dormouse may say more.
_NOTICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "begin": ("begin", ()),
    "price": ("price", ("kind", "price")),
    "submitted": ("submitted", Job._fields),
    "vm-ready": ("vm_ready", ("vm",)),
    "launch-refused": ("launch_refused", ("vm", "why")),
    "available": ("available", ("kind",)),
    "host-joined": ("host_joined", ()),
    "vm-hibernating": ("vm_hibernating", ("vm",)),
    "vm-hibernated": ("vm_hibernated", ("vm",)),
    "vm-resumed": ("vm_resumed", ("vm",)),
    "vm-preempting": ("vm_preempting", ("vm", "at")),
    "vm-rebalance": ("vm_rebalance", ("vm",)),
    "vm-lost": ("vm_lost", ("vm",)),
    "task-due": ("task_due", ("task",)),
    "task-started": ("task_started", ("task", "vm", "done", "since")),
    "task-finished": ("task_finished", ("task", "vm")),
    "task-failed": ("task_failed", ("task", "vm", "why")),
    "task-stopped": ("task_stopped", ("task", "vm", "done")),
    "checkpointed": ("checkpointed", ("task", "vm", "done")),
    "credits": ("credits", ("vm", "balance")),
    "wake": ("woken", ("token",)),
    "rejected": ("rejected", ("decision", "why")),
}

# Values of what a decision may leave out.
_DEFAULTS = {"tier": "foreground", "mode": "burst", "bid": None}

encode = json.JSONEncoder(separators=(",", ":")).encode
"""Writes a value as JSON on one line."""

_NOTHING = b'{"decisions":[]}\n'


def main(scheduler: type[Scheduler]) -> NoReturn:
    """Plays a scheduler to the dormouse at standard input and output, then ends the process.

    The two are kept for the protocol: what else the process or a child of it prints goes to standard
    error, and there is nothing to be read from standard input. An exception of the scheduler ends
    the process with its traceback and status 1.
    """
    with open(os.dup(0), "rb") as lines, open(os.dup(1), "wb") as answers:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        try:
            serve(scheduler, lines, answers)
        except BrokenPipeError:
            sys.exit("dormouse is gone: nobody reads the scheduler's answers")
    sys.exit(0)


def serve(scheduler: type[Scheduler], lines: BinaryIO, answers: BinaryIO) -> None:
    """Plays a scheduler until the lines end."""
    first = lines.readline()
    if not first:
        raise ProtocolError("the input ended before dormouse had said hello")
    playing = scheduler(read_hello(first))
    hears = heard_by(scheduler)
    hello = {"hello": {"protocol": VERSION, "hears": hears}}
    write, flush, loads = answers.write, answers.flush, json.loads
    write(encode(hello).encode() + b"\n")
    flush()

    handlers = {kind: _handler(playing, kind) for kind in hears}
    decisions, instant_over = playing._decisions, playing.instant_over
    for line in lines:
        ask = loads(line)
        now = ask["now"]
        for notice in ask["notices"]:
            handler = handlers.get(notice["notice"])
            if handler is not None:
                handler(now, notice)
        instant_over(now)
        if "decided" in ask:
            _settle(playing, now, ask["decided"])
        if decisions:
            write(f'{{"decisions":{encode(decisions)}}}\n'.encode())
            decisions.clear()
        else:
            write(_NOTHING)
        flush()


def heard_by(scheduler: type[Scheduler]) -> list[str]:
    """The kinds of notices that a class of schedulers hears: those whose methods it overrides.

    That a decision was rejected is always heard.
    """

    def hears(kind: str, method: str) -> bool:
        return kind == "rejected" or getattr(scheduler, method) is not getattr(Scheduler, method)

    return [kind for kind, (method, _) in _NOTICES.items() if hears(kind, method)]


def read_hello(line: bytes) -> Hello:
    """The hello of dormouse, which must speak our version of the protocol."""
    try:
        said = json.loads(line)["hello"]
        least, most = said["protocol"]["least"], said["protocol"]["most"]
    except (ValueError, KeyError, TypeError):
        start = line[:80].decode(errors="replace").rstrip()
        raise ProtocolError(
            f"the first line is not a hello of dormouse: {start!r}; a scheduler is started by "
            "`dormouse run EXPERIMENT --scheduler ./PROGRAM`, not by hand"
        ) from None
    if not least <= VERSION <= most:
        raise ProtocolError(
            f"dormouse {said.get('dormouse')} speaks versions {least} to {most} of the protocol, this "
            f"package version {VERSION}: install the package that came with that dormouse"
        )
    return Hello.from_json(said)


def _handler(playing: Scheduler, kind: str) -> Handler:
    """What calls the method for a kind of notice with the fields that it takes."""
    name, fields = _NOTICES[kind]
    method = getattr(playing, name)
    if kind == "submitted":
        job_fields = itemgetter(*fields)
        return lambda now, notice: method(now, Job._make(job_fields(notice)))
    if not fields:
        return lambda now, notice: method(now)
    if len(fields) == 1:
        only = fields[0]
        return lambda now, notice: method(now, notice[only])
    several = itemgetter(*fields)
    return lambda now, notice: method(now, *several(notice))


def _settle(playing: Scheduler, now: int, logged: Sequence[Decision]) -> None:
    """Makes the answer the one that the log of a resumed run has."""
    decisions = playing._decisions
    if type(playing).decided is not Scheduler.decided:
        playing.decided(logged)
        playing._next_vm += _launches(logged) - _launches(decisions)
        decisions[:] = logged
    elif len(decisions) != len(logged) or not all(map(_agree, decisions, logged)):
        raise ResumeError(
            f"at {now} the scheduler does not decide what it decided before the run was broken off: "
            "it has to decide the same whenever it hears the same (seed chance with hello.seed), or "
            f"to override `decided`; now: {encode(decisions)}; in the log: {encode(list(logged))}"
        )


def _launches(decisions: Sequence[Decision]) -> int:
    return sum(decision["decision"] == "launch" for decision in decisions)


def _agree(ours: Decision, logged: Decision) -> bool:
    """Whether a decision is the logged one; what ours leaves to dormouse may be anything there."""
    said = all(logged.get(key, _DEFAULTS.get(key)) == value for key, value in ours.items())
    unsaid = all(logged.get(key, value) == ours.get(key, value) for key, value in _DEFAULTS.items())
    return said and unsaid
