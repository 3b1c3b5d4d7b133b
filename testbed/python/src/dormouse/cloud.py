"""EC2 in virtual time for tests: a server, clients of it, and the program's clock led by the run's."""

from __future__ import annotations

import datetime
import os
import shutil
import signal
import subprocess
import tempfile
import weakref
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Mapping

from .command import environment, error_of, find_command, set_options
from .errors import DormouseError, MissingPackage
from .results import Run, StrPath

if TYPE_CHECKING:
    from .clock import LedClock

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class Ec2Cloud:
    """A cloud that answers EC2's calls on a port of this host, for as long as the context lasts.

    Within the context `AWS_ENDPOINT_URL`, the credentials and the region in the environment are those of this cloud: whatever makes
    a client with boto3 there reaches it, and never AWS. With the manual clock, the program's own clock is led by the
    run's (`dormouse.clock`).
    """

    def __init__(
        self,
        experiment: StrPath,
        *,
        clock: str = "manual",
        region: str = "us-east-1",
        account: str = "123456789012",
        seed: int | None = None,
        set: Mapping[str, Any] | None = None,
        out: StrPath | None = None,
        force: bool = False,
        command: StrPath | None = None,
    ) -> None:
        words = ["ec2", os.fspath(experiment), "--listen", "127.0.0.1:0", "--clock", *clock.split()]
        words += ["--seed", str(seed)] if seed is not None else []
        words += [*set_options(set), *(["--force"] if force else [])]
        self.region, self.account = region, account
        self.endpoint = ""
        """The URL of the cloud, once the context has begun."""
        self.run: Run | None = None
        """The run's results, once the context is over."""
        self.clock: LedClock | None = None
        """The program's clock, within a context with the manual clock."""
        self._is_manual = clock == "manual"
        self._call = [find_command(command), *words]
        self._out = out
        self._stack = ExitStack()

    def __enter__(self) -> Ec2Cloud:
        out = self._out
        if out is None:
            temporary = tempfile.mkdtemp(prefix="dormouse-")
            weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)
            out = os.path.join(temporary, "results")
        self._folder = Path(out)
        said = tempfile.TemporaryFile("w+", errors="replace")
        process = subprocess.Popen(
            [*self._call, "--out", str(self._folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env=environment(),
            start_new_session=True,  # an interrupt is for the program; the server is ended by it
        )
        self._process, self._said = process, said
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            name, _, endpoint = line.strip().partition("=")
            if name != "AWS_ENDPOINT_URL":
                self._end()
                raise DormouseError(f"the server says {line!r} where its endpoint was expected")
            self.endpoint = endpoint
            self._stack.callback(_set_environment, _set_environment(self._variables()))
            if self._is_manual:
                # Not with the package: `python -m dormouse.clock` is a module of its own.
                from .clock import led_by

                self.clock = self._stack.enter_context(led_by(endpoint))
        except BaseException:
            self._stack.close()
            process.kill()
            process.wait()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
        self.clock = None
        self._end()
        self.run = Run(self._folder)

    def _end(self) -> None:
        """Ends the server, which writes the run's folder."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        self._process.communicate()
        self._said.seek(0)
        said = self._said.read()
        self._said.close()
        if self._process.returncode != 0:
            raise error_of(said, self._process.returncode, self._folder)

    def _variables(self) -> dict[str, str | None]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.account,
            "AWS_SECRET_ACCESS_KEY": "unchecked",
            "AWS_DEFAULT_REGION": self.region,
            # What would lead elsewhere.
            "AWS_SESSION_TOKEN": None,
            "AWS_PROFILE": None,
            "AWS_REGION": None,
            "AWS_ENDPOINT_URL_EC2": None,
            "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": None,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def session(self, *, account: str | None = None, region: str | None = None) -> Any:
        """A session of boto3 for an account and a region; its clients reach this cloud."""
        try:
            import boto3
        except ImportError as error:
            raise MissingPackage("sessions are those of boto3: pip install boto3") from error
        return boto3.session.Session(
            aws_access_key_id=account or self.account,
            aws_secret_access_key="unchecked",
            region_name=region or self.region,
        )

    def client(
        self, service: str = "ec2", *, account: str | None = None, region: str | None = None
    ) -> Any:
        """A client of boto3 for a service of this cloud."""
        return self.session(account=account, region=region).client(service, endpoint_url=self.endpoint)

    def advance(self, seconds: float) -> datetime.datetime:
        """Has the run's time go on by so many seconds, and returns its date."""
        self._manual().advance(seconds)
        return self.now()

    def next_event(self) -> datetime.datetime:
        """Has the run's time go on to the next thing that happens by itself, and returns its date."""
        self._manual().next_event()
        return self.now()

    def now(self) -> datetime.datetime:
        """The run's date, by the manual clock."""
        return _EPOCH + datetime.timedelta(microseconds=self._manual().now_us)

    def _manual(self) -> LedClock:
        if self.clock is None:
            raise DormouseError("time is led within `with dormouse.ec2(experiment, clock=\"manual\")` alone")
        return self.clock


def ec2(experiment: StrPath, **options: Any) -> Ec2Cloud:
    """A cloud behind EC2's API, as a context manager.

        with dormouse.ec2("experiment.toml") as cloud:
            client = cloud.client("ec2")
            ...
        print(cloud.run.summary["cost_usd"])

    `clock` is "manual" (time goes on where the program would sleep) or "paced 60" (60 times as fast as the host's). `region` and
    `account` are those of clients that say nothing else. `seed`, `set`, `out`, `force` and `command` are as in
    `dormouse.run`.
    """
    return Ec2Cloud(experiment, **options)


def _set_environment(wanted: Mapping[str, str | None]) -> dict[str, str | None]:
    """Sets variables of the environment, or takes them out, and returns what they were."""
    before = {name: os.environ.get(name) for name in wanted}
    for name, value in wanted.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    return before
