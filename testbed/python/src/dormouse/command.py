"""The command `dormouse`, called from Python: run, compare, sweep."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from importlib import metadata
from pathlib import Path
from typing import Any, Mapping, Sequence, TypeVar

from .errors import CommandError, DormouseError
from .results import Folder, Results, Run, StrPath

_Folder = TypeVar("_Folder", bound=Folder)


def run(
    experiment: StrPath,
    *,
    scheduler: StrPath | None = None,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,
    live: bool = False,
    out: StrPath | None = None,
    force: bool = False,
    arguments: Sequence[str] = (),
    command: StrPath | None = None,
) -> Run:
    """Runs an experiment and returns its results.

    `experiment` is a TOML file or the name of a built-in experiment, `scheduler` the name of a
    scheduler or the path of a program. `set` gives keys of the experiment other values, by their
    paths. The results go into the folder `out`, which `force` lets take another run's place; without
    `out` into a temporary folder, which is deleted together with the object that is returned.
    `arguments` are handed to the command as they stand. `command` is the path of the command:
    otherwise that in the environment variable DORMOUSE, or the one that was installed together with
    this package, or else `dormouse` on the PATH. A scheduler that begins with `#!/usr/bin/env python3`
    is run by the interpreter that calls this.
    """
    call = ["run", os.fspath(experiment), "--quiet"]
    call += ["--live"] if live else []
    call += ["--scheduler", _scheduler(scheduler)] if scheduler is not None else []
    call += ["--seed", str(seed)] if seed is not None else []
    call += [*set_options(set), *arguments]
    return _into(Run, call, out, force, command)


def compare(
    schedulers: Sequence[StrPath],
    on: StrPath | Sequence[StrPath],
    *,
    seeds: int | None = None,
    set: Mapping[str, Any] | None = None,
    out: StrPath | None = None,
    force: bool = False,
    arguments: Sequence[str] = (),
    command: StrPath | None = None,
) -> Results:
    """Compares schedulers on the same experiments under the seeds 1 to `seeds`.

    The others are compared with the first. What is not said here is as in `run`.
    """
    experiments: Sequence[StrPath] = [on] if isinstance(on, (str, os.PathLike)) else on
    call = ["compare", "--quiet", "--schedulers", ",".join(map(_scheduler, schedulers))]
    call += ["--on", ",".join(os.fspath(experiment) for experiment in experiments)]
    call += ["--seeds", str(seeds)] if seeds is not None else []
    call += [*set_options(set), *arguments]
    return _into(Results, call, out, force, command)


def sweep(
    experiment: StrPath,
    set: Mapping[str, Any],
    *,
    seeds: int | None = None,
    out: StrPath | None = None,
    force: bool = False,
    arguments: Sequence[str] = (),
    command: StrPath | None = None,
) -> Results:
    """Runs an experiment over lists of values of one key or several, under the seeds 1 to `seeds`.

    A list in `set` has the values of its key: each is run with each of the other keys. What is not
    said here is as in `run`.
    """
    call = ["sweep", os.fspath(experiment), "--quiet"]
    call += ["--seeds", str(seeds)] if seeds is not None else []
    for key, values in set.items():
        several = values if isinstance(values, (list, tuple)) else [values]
        call += ["--set", f"{key}={','.join(map(_toml, several))}"]
    return _into(Results, [*call, *arguments], out, force, command)


def environment() -> dict[str, str]:
    """The environment of the command: ours, with the folder of our interpreter first on the PATH.

    So a scheduler that begins with `#!/usr/bin/env python3` finds the packages that are found here.
    """
    folders = [os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]
    return {**os.environ, "PATH": os.pathsep.join(folders)}


def find_command(command: StrPath | None = None) -> str:
    """The path of the command: the one given, that in DORMOUSE, this package's, or `dormouse` on the PATH."""
    wanted = os.fspath(command) if command is not None else os.environ.get("DORMOUSE")
    if wanted is None:
        wanted = _installed_command() or "dormouse"
    found = shutil.which(wanted)
    if found is None:
        raise DormouseError(
            f"the command {wanted} is not there: put dormouse on the PATH, or its path into the "
            "environment variable DORMOUSE, or give it as `command`"
        )
    return found


def _installed_command() -> str | None:
    """The path of the command that the wheel of this package had with it; a pure one has none."""
    try:
        files = metadata.files("dormouse") or []
    except metadata.PackageNotFoundError:
        return None
    commands = (str(file.locate()) for file in files if file.name == "dormouse")
    return next(filter(os.path.isfile, commands), None)


def _into(
    kind: type[_Folder],
    call: Sequence[str],
    out: StrPath | None,
    force: bool,
    command: StrPath | None,
) -> _Folder:
    """Calls the command with its results in `out`, or in a temporary folder."""
    call = [find_command(command), *call, *(["--force"] if force else []), "--out"]
    if out is not None:
        _call([*call, os.fspath(out)], out)
        return kind(out)
    temporary = tempfile.mkdtemp(prefix="dormouse-")
    results = kind(os.path.join(temporary, "results"))
    weakref.finalize(results, shutil.rmtree, temporary)
    _call([*call, str(results.folder)], results.folder)
    return results


def _call(arguments: Sequence[str], out: StrPath) -> None:
    """Calls a command that prints nothing but errors; an interrupt is left to it to handle."""
    process = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment(),
        start_new_session=True,  # an interrupt reaches it once, from here
    )
    try:
        _, said = process.communicate()
    except KeyboardInterrupt:
        # The command stops a live run so that it can be resumed.
        process.send_signal(signal.SIGINT)
        process.communicate()
        raise
    # With status 4 the run is over and its results are there: `tasks` of its summary has how many failed.
    if process.returncode not in (0, 4):
        raise error_of(said, process.returncode, Path(out))


def error_of(said: str, status: int, out: Path) -> CommandError:
    """The error for a command that ended with this status and printed this; `out` has its results.

    Status 1 is a run that broke. With another there was no run, and what is in `out` is of one before.
    """
    sentences = re.findall(r"^(?:dormouse|error): (.*)", said, re.MULTILINE)
    sentence = sentences[-1] if sentences else said.strip() or f"dormouse ended with status {status}"
    files = sorted(out.glob("scheduler-stderr*.txt")) if status == 1 else []
    of_schedulers = "".join(file.read_text(errors="replace") for file in files)
    return CommandError(sentence, status, of_schedulers)


def _scheduler(scheduler: StrPath) -> str:
    """A scheduler as the command line has it; a path has a slash, a name has none."""
    if isinstance(scheduler, str):
        return scheduler
    path = os.fspath(scheduler)
    return path if "/" in path else f"./{path}"


def set_options(values: Mapping[str, Any] | None) -> list[str]:
    """The options `--set` that give keys of an experiment these values."""
    pairs = (values or {}).items()
    return [word for key, value in pairs for word in ("--set", f"{key}={_toml(value)}")]


def _toml(value: Any) -> str:
    """A value as the command's `--set` takes it: TOML, and plain words without quotes."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z./][\w./-]*|\d+(us|ms|s|m|h|d)", value):
        return value if value not in ("true", "false", "inf", "nan") else json.dumps(value)
    return _quoted(value)


def _quoted(value: Any) -> str:
    """A value in TOML."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(k)}={_quoted(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_quoted, value))}]"
    if isinstance(value, os.PathLike):
        return json.dumps(os.fspath(value), ensure_ascii=False)
    # Strings, numbers and truth values are written alike in JSON and TOML.
    return json.dumps(value, ensure_ascii=False)
