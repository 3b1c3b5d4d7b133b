"""A run whose scheduler is the code that calls: the pipes of `dormouse run` in one's own hands."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import subprocess
import sys
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, BinaryIO, Mapping, NamedTuple, Sequence

from . import relay
from .command import environment, error_of, find_command, set_options
from .errors import ProtocolError
from .hello import Hello
from .protocol import VERSION, encode, read_hello
from .results import Run, StrPath
from .scheduler import Decision


class Ask(NamedTuple):
    """What has happened, for which dormouse wants decisions."""

    now: int
    """Emulated time in microseconds."""
    notices: Sequence[Mapping[str, Any]]
    """The notices as they are on the wire."""


class Episode:
    """A run in virtual time that waits for the decisions of whoever holds this object.

    `ask` and `answer` follow each other strictly. When `ask` returns `None` the run is over, and `run`
    has its results until the episode is closed. Closing it earlier breaks the run off.
    """

    hello: Hello
    """What is known when the run begins."""
    run: Run
    """The results, once the run is over."""

    def __init__(
        self,
        experiment: StrPath,
        *,
        seed: int,
        set: Mapping[str, Any] | None = None,
        hears: Sequence[str] | None = None,
        limit: str = "1h",
        command: StrPath | None = None,
    ) -> None:
        """Starts a run of an experiment and waits for its hello.

        `set` and `command` are as in `dormouse.run`; `hears` has the kinds of notices that are
        wanted, all if it is `None`; `limit` is the longest real time that an answer may take.
        """
        self._folder = TemporaryDirectory(prefix="dormouse-")
        self._pipes: tuple[BinaryIO, BinaryIO] | None = None
        self._relay: socket.socket | None = None
        path = os.path.join(self._folder.name, "relay")
        self.run = Run(os.path.join(self._folder.name, "results"))
        words = [sys.executable, "-I", relay.__file__, path]
        call = [find_command(command), "run", os.fspath(experiment), "--quiet", "--virtual"]
        call += ["--seed", str(seed), "--out", str(self.run.folder), "--scheduler", words[0]]
        call += set_options({"scheduler.command": words, "scheduler.limit": limit})
        call += set_options({"scheduler.label": "episode"})
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(path)
            listener.listen(1)
            self._process = subprocess.Popen(
                [*call, *set_options(set)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment(),
                start_new_session=True,  # an interrupt is for whoever holds the episode
            )
            try:
                self._take_pipes(listener)
                self.hello = read_hello(self._lines.readline())
            except BaseException:
                self.close()
                raise
        wants: dict[str, Any] = {"protocol": VERSION}
        if hears is not None:
            wants["hears"] = list(hears)
        self._write({"hello": wants})

    def ask(self) -> Ask | None:
        """What has happened since the last answer; `None` once the run is over."""
        line = self._lines.readline()
        if line:
            ask = json.loads(line)
            return Ask(ask["now"], ask["notices"])
        self._let_go()
        self._wait()
        return None

    def answer(self, decisions: Sequence[Decision]) -> None:
        """Decides on what was asked last."""
        self._write({"decisions": decisions})

    def close(self) -> None:
        """Ends the run if it is not over, and deletes its results. Nothing else is ended."""
        self._let_go()
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()
        self._folder.cleanup()

    def __enter__(self) -> Episode:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _lines(self) -> BinaryIO:
        if self._pipes is None:
            raise ProtocolError("the run is over, or was broken off")
        return self._pipes[0]

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._pipes is None:
            raise ProtocolError("the run is over, or was broken off")
        try:
            self._pipes[1].write(encode(line).encode() + b"\n")
            self._pipes[1].flush()
        except BrokenPipeError:
            self._wait()
            raise

    def _take_pipes(self, listener: socket.socket) -> None:
        """Waits for the relay and takes its pipes, unless dormouse ends before."""
        errors = self._process.stderr
        assert errors is not None
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            selector.register(errors, selectors.EVENT_READ)
            ready = [key.fileobj for key, _ in selector.select()]
        # Nothing but errors is printed: where there is something, or the end, it is over.
        if listener not in ready:
            self._wait()
            raise ProtocolError("dormouse ended without having started its scheduler")
        self._relay, _ = listener.accept()
        _, pipes, _, _ = socket.recv_fds(self._relay, 1, 2)
        self._pipes = (open(pipes[0], "rb"), open(pipes[1], "wb"))

    def _wait(self) -> None:
        """Waits until dormouse has ended; raises its error where it ended with one."""
        _, said = self._process.communicate()
        status = self._process.returncode
        if status != 0:
            raise error_of(said.decode(errors="replace"), status, self.run.folder)

    def _let_go(self) -> None:
        """Closes the pipes and lets the relay end."""
        pipes, self._pipes = self._pipes or (), None
        for pipe in pipes:
            # dormouse may have gone before it read the last line.
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        if self._relay is not None:
            self._relay.close()
            self._relay = None
