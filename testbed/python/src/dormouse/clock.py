"""A program's clock, led by a cloud in virtual time.

    AWS_ENDPOINT_URL=http://127.0.0.1:PORT python -m dormouse.clock PROGRAM [ARGUMENT ...]

runs a program as it is against `dormouse ec2 EXPERIMENT --clock manual`: what it sees as the time is the run's, and
where it would sleep the run's time goes on instead.

Led are `time.time`, `time_ns`, `monotonic`, `monotonic_ns`, `sleep`, `gmtime`, `localtime`, `ctime` and `strftime`; `now`, `utcnow`
and `today` of `datetime`; waiting with a timeout in `threading` and `queue`; and the timers of asyncio's event loops. `perf_counter` and
timeouts of sockets stay the host's. Threads wait together: time goes on once each of them waits, to the first instant at
which one wants to go on. A thread that does something else for a second of the host's time (it reads from a socket, it
computes) holds the others up no longer, until it waits again.
"""

from __future__ import annotations

import _thread
import asyncio
import datetime
import http.client
import json
import os
import queue
import runpy
import sys
import threading
import time
import urllib.parse
from contextlib import contextmanager
from typing import Any, Callable, Iterator

from .errors import DormouseError

_STEP_S = 0.02
"""Real seconds after which a thread that waits looks again whether all do."""
_PATIENCE_S = 1.0
"""Real seconds for which a thread that does not wait holds the others up."""
_ANSWER_S = 0.05
"""Real seconds for which an event loop with open connections waits for them, before its time goes on."""

_real_sleep = time.sleep
_real_monotonic = time.monotonic
_real_time = time.time
_real_wait = threading.Condition.wait
_real_join = threading.Thread.join
_real_start = threading.Thread.start
_RealDate = datetime.date
_RealDatetime = datetime.datetime


class _Signal:
    """Has one thread go on: a lock that `threading.Condition` releases, and that remembers it."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._lock.acquire()
        self.is_given = False

    def release(self) -> None:
        self.is_given = True
        self.wake()

    def wake(self) -> None:
        """Has the thread look again."""
        try:
            self._lock.release()
        except RuntimeError:
            pass  # it was woken, and has not looked yet

    def pause(self) -> None:
        """Waits until it is woken, or a step of real time is over."""
        self._lock.acquire(True, _STEP_S)


class _Waiter:
    """A thread that waits for a signal, for an instant, or until something is ready: for whichever comes first."""

    def __init__(self, signal: _Signal, wake_us: int | None, is_ready: Callable[[], Any] | None) -> None:
        self.signal = signal
        self.wake_us = wake_us
        self.is_ready = is_ready
        self.is_due = False

    def can_go_on(self) -> bool:
        return self.is_due or self.signal.is_given or (self.is_ready is not None and bool(self.is_ready()))


class LedClock:
    """The clock of a run that stands still until somebody asks for it to go on."""

    def __init__(self, endpoint: str) -> None:
        """`endpoint` is the URL of `dormouse ec2 … --clock manual`."""
        parts = urllib.parse.urlsplit(endpoint)
        self._address = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._connection: http.client.HTTPConnection | None = None
        self._lock = _thread.allocate_lock()
        self._waiters: dict[int, _Waiter] = {}
        self._strays: set[int] = set()
        self._starting = 0
        self._changed_s = _real_monotonic()
        self.now_us = 0
        """The run's date, in microseconds since 1970."""
        now = self._ask("GET", "/_dormouse/now")
        if now["clock"] != "manual":
            self.close()
            raise DormouseError(f"the clock at {endpoint} follows the host's: start it with --clock manual")
        self._began_us = self.now_us
        self._began_s = _real_monotonic()
        # Who is there before does not wait for this clock.
        self._strays.update(set(sys._current_frames()) - {_thread.get_ident()})

    def time(self) -> float:
        """Seconds since 1970."""
        return self.now_us / 1e6

    def monotonic(self) -> float:
        """Seconds, from the host's own count at the beginning on."""
        return self._began_s + (self.now_us - self._began_us) / 1e6

    def advance(self, seconds: float) -> dict[str, Any]:
        """Has time go on by so many seconds, whoever waits, and returns what `/_dormouse/now` says."""
        with self._lock:
            now = self._ask("POST", "/_dormouse/advance", {"by": seconds})
            self._wake_due()
        return now

    def next_event(self) -> dict[str, Any]:
        """Has time go on to the next thing that happens in the cloud by itself."""
        with self._lock:
            now = self._ask("POST", "/_dormouse/advance", {"until": "next-event"})
            self._wake_due()
        return now

    def refresh(self) -> dict[str, Any]:
        """Asks for the time: another program may have had it go on."""
        with self._lock:
            return self._ask("GET", "/_dormouse/now")

    def sleep(self, seconds: float) -> None:
        """Waits until so many seconds of the run's time have passed."""
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        self.wait(_Signal(), seconds)

    def wait(self, signal: _Signal, seconds: float | None, is_ready: Callable[[], Any] | None = None) -> bool:
        """Waits until another thread gives a signal, or until something is ready.

        `False` if so many seconds of the run's time passed before.
        """
        # Longer than any run lasts is as long as it takes.
        ends = seconds is not None and seconds < 1e9
        wake_us = self.now_us + max(0, round(seconds * 1e6)) if ends and seconds is not None else None
        waiter, me = _Waiter(signal, wake_us, is_ready), _thread.get_ident()
        with self._lock:
            self._waiters[me] = waiter
            self._strays.discard(me)
            self._changed_s = _real_monotonic()
        try:
            while True:
                with self._lock:
                    self._move_on()
                if waiter.can_go_on():
                    return signal.is_given or not waiter.is_due
                signal.pause()
        finally:
            with self._lock:
                self._waiters.pop(me, None)
                self._changed_s = _real_monotonic()

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Has time stand while a thread is started, which nobody sees before it runs."""
        with self._lock:
            self._starting += 1
        try:
            yield
        finally:
            with self._lock:
                self._starting -= 1

    def _move_on(self) -> None:
        """Lets time go on to the next instant that somebody waits for, if everybody waits."""
        if self._starting or any(waiter.can_go_on() for waiter in self._waiters.values()):
            # Somebody has only not done so yet.
            return
        busy = set(sys._current_frames()) - set(self._waiters) - self._strays
        if busy:
            if _real_monotonic() - self._changed_s < _PATIENCE_S:
                return
            self._strays |= busy
        wakes = [waiter.wake_us for waiter in self._waiters.values() if waiter.wake_us is not None]
        if not wakes:
            return
        by = min(wakes) - self.now_us
        if by > 0:
            self._ask("POST", "/_dormouse/advance", {"by": by / 1e6})
        self._wake_due()

    def _wake_due(self) -> None:
        for waiter in self._waiters.values():
            if waiter.wake_us is not None and waiter.wake_us <= self.now_us:
                waiter.is_due = True
                waiter.signal.wake()

    def close(self) -> None:
        """Ends the connection to the cloud."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = json.dumps(body) if body is not None else None
        kept = self._connection
        for connection in (kept, None):
            if connection is None:
                # No timeout: a year of a large cloud may take minutes.
                connection = http.client.HTTPConnection(*self._address)
            elif kept is None:
                continue
            try:
                connection.request(method, path, data, {"Content-Type": "application/json"} if data else {})
                answer = connection.getresponse()
                status, text = answer.status, answer.read()
                break
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
                # It was closed while it was not used; an advance that was read is answered.
                connection.close()
                if connection is not kept:
                    raise DormouseError(f"the clock at {self._address[0]}:{self._address[1]} is gone: {error}") from error
            except OSError as error:
                raise DormouseError(f"no clock at {self._address[0]}:{self._address[1]}: {error}") from error
        self._connection = connection
        told: dict[str, Any] = json.loads(text)
        if status != 200:
            raise DormouseError(str(told.get("error", f"the clock answers with status {status}")))
        self.now_us = told["unix_us"]
        return told


_leading: LedClock | None = None
"""The clock that leads this process; functions that were replaced are the real ones without it."""


def _led(real: Callable[..., Any], by: Callable[[LedClock], Any]) -> Callable[..., Any]:
    """A function without arguments, led."""

    def led() -> Any:
        clock = _leading
        return real() if clock is None else by(clock)

    led.__name__, led.__doc__ = real.__name__, real.__doc__
    return led


def _sleep(seconds: float) -> None:
    clock = _leading
    if clock is None:
        _real_sleep(seconds)
    else:
        clock.sleep(seconds)


def _of_now(real: Callable[..., Any], at: int) -> Callable[..., Any]:
    """A function whose argument number `at` is the time of now unless it is given."""

    def led(*arguments: Any) -> Any:
        clock = _leading
        if clock is None or (len(arguments) > at and arguments[at] is not None):
            return real(*arguments)
        return real(*arguments[:at], clock.time())

    led.__name__, led.__doc__ = real.__name__, real.__doc__
    return led


_real_strftime, _real_localtime = time.strftime, time.localtime


def _strftime(form: str, *at: Any) -> str:
    clock = _leading
    return _real_strftime(form, *(at or [_real_localtime(clock.time())] if clock is not None else at))


class _LikeReal(type):
    """Whatever is an instance of the real class is one of this."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__mro__[1])


class _LedDate(_RealDate, metaclass=_LikeReal):
    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        return _RealDate(*arguments, **named)

    @classmethod
    def today(cls) -> Any:
        clock = _leading
        return _RealDate.today() if clock is None else _RealDate.fromtimestamp(clock.time())


class _LedDatetime(_RealDatetime, metaclass=_LikeReal):
    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        return _RealDatetime(*arguments, **named)

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        clock = _leading
        return _RealDatetime.now(tz) if clock is None else _RealDatetime.fromtimestamp(clock.time(), tz)

    @classmethod
    def today(cls) -> Any:
        return cls.now()

    @classmethod
    def utcnow(cls) -> Any:
        at = _real_time() if _leading is None else _leading.time()
        return _RealDatetime.fromtimestamp(at, datetime.timezone.utc).replace(tzinfo=None)


_LedDate.__name__ = _LedDate.__qualname__ = "date"
_LedDatetime.__name__ = _LedDatetime.__qualname__ = "datetime"


def _wait(self: Any, timeout: float | None = None) -> bool:
    """`threading.Condition.wait`, on which events, queues, semaphores and joins rest."""
    clock = _leading
    if clock is None:
        return _real_wait(self, timeout)
    if not self._is_owned():
        raise RuntimeError("cannot wait on un-acquired lock")
    signal, got = _Signal(), False
    self._waiters.append(signal)
    saved = self._release_save()
    try:
        got = clock.wait(signal, timeout)
        return got
    finally:
        self._acquire_restore(saved)
        if not got:
            try:
                self._waiters.remove(signal)
            except ValueError:
                pass


def _join(self: Any, timeout: float | None = None) -> None:
    """`threading.Thread.join`."""
    clock = _leading
    if clock is not None and self is not threading.current_thread() and self.is_alive():
        clock.wait(_Signal(), timeout, lambda: not self.is_alive())
        if self.is_alive():
            return
    _real_join(self, timeout)


def _start(self: Any) -> None:
    """`threading.Thread.start`."""
    clock = _leading
    if clock is None:
        _real_start(self)
    else:
        with clock.starting():
            _real_start(self)


class _LedSelector:
    """The selector of an event loop, whose timeouts are of the run's time."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def select(self, timeout: float | None = None) -> Any:
        clock = _leading
        if clock is None or (timeout is not None and timeout <= 0):
            return self._real.select(timeout)
        # One file is the loop's own, by which others wake it; more are connections, which answer in real time.
        ready = self._real.select(_ANSWER_S if len(self._real.get_map()) > 1 else 0)
        if not ready:
            clock.wait(_Signal(), timeout, lambda: self._real.select(0))
            ready = self._real.select(0)
        return ready


def _replacements() -> list[tuple[Any, Any]]:
    """Each real function and class with the one that takes its place."""
    return [
        (time.time, _led(time.time, LedClock.time)),
        (time.time_ns, _led(time.time_ns, lambda clock: clock.now_us * 1000)),
        (time.monotonic, _led(time.monotonic, LedClock.monotonic)),
        (time.monotonic_ns, _led(time.monotonic_ns, lambda clock: round(clock.monotonic() * 1e9))),
        (time.sleep, _sleep),
        (time.gmtime, _of_now(time.gmtime, 0)),
        (time.localtime, _of_now(time.localtime, 0)),
        (time.ctime, _of_now(time.ctime, 0)),
        (time.strftime, _strftime),
        (datetime.date, _LedDate),
        (datetime.datetime, _LedDatetime),
        (queue.SimpleQueue, queue._PySimpleQueue),  # type: ignore[attr-defined]
    ]


def _replace(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, str, Any]]:
    """Puts the second of each pair where modules have the first; returns what was where."""
    by_id = {id(real): (real, led) for real, led in pairs}
    done: list[tuple[Any, str, Any]] = []
    for name, module in list(sys.modules.items()):
        if module is None or name == __name__:
            continue
        names = getattr(module, "__dict__", {})
        for attribute, value in list(names.items()):
            found = by_id.get(id(value))
            if found is not None and found[0] is value:
                setattr(module, attribute, found[1])
                done.append((module, attribute, value))
    return done


@contextmanager
def led_by(endpoint: str) -> Iterator[LedClock]:
    """Has this process's clock be led by the cloud at `endpoint`, for as long as the context lasts."""
    global _leading
    if _leading is not None:
        raise DormouseError("this process's clock is led already")
    clock = LedClock(endpoint)
    done = _replace(_replacements())
    init = asyncio.selector_events.BaseSelectorEventLoop.__init__

    def led_init(self: Any, selector: Any = None) -> None:
        init(self, selector)
        self._selector = _LedSelector(self._selector)

    asyncio.selector_events.BaseSelectorEventLoop.__init__ = led_init  # type: ignore[method-assign]
    threading.Condition.wait = _wait  # type: ignore[method-assign]
    threading.Thread.join = _join  # type: ignore[method-assign]
    threading.Thread.start = _start  # type: ignore[method-assign]
    _leading = clock
    try:
        yield clock
    finally:
        _leading = None
        clock.close()
        threading.Condition.wait = _real_wait  # type: ignore[method-assign]
        threading.Thread.join = _real_join  # type: ignore[method-assign]
        threading.Thread.start = _real_start  # type: ignore[method-assign]
        asyncio.selector_events.BaseSelectorEventLoop.__init__ = init  # type: ignore[method-assign]
        for module, attribute, value in reversed(done):
            setattr(module, attribute, value)


def main(words: list[str]) -> None:
    """Runs a program whose clock is led."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL")
    if not words or words[0].startswith("-"):
        sys.exit("usage: AWS_ENDPOINT_URL=http://127.0.0.1:PORT python -m dormouse.clock PROGRAM [ARGUMENT ...]")
    if not endpoint:
        sys.exit("dormouse.clock: AWS_ENDPOINT_URL is not set: start `dormouse ec2 EXPERIMENT --clock manual`, which prints it")
    sys.argv = words
    sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
    # The clock of the package, which other modules import, and not a second one of this `__main__`.
    from dormouse import clock

    try:
        with clock.led_by(endpoint):
            runpy.run_path(words[0], run_name="__main__")
    except DormouseError as error:
        sys.exit(f"dormouse.clock: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
