"""A program's clock that is led, with a stand-in for the cloud."""

from __future__ import annotations

import asyncio
import datetime
import json
import queue
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from dormouse import DormouseError
from dormouse.clock import led_by

BEGIN_US = 1_795_766_400_000_000
"""2026-11-27T08:00:00Z"""
DAY = 86_400.0


class FakeCloud(BaseHTTPRequestHandler):
    """Answers as `/_dormouse` does."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: Any

    def do_GET(self) -> None:
        self.tell()

    def do_POST(self) -> None:
        wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        by = round(wanted["by"] * 1e6) if "by" in wanted else 60_000_000
        self.server.advances.append(by)
        self.server.now_us += by
        self.tell()

    def tell(self) -> None:
        text = json.dumps({"clock": self.server.clock, "unix_us": self.server.now_us}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        pass


class Clocks(unittest.TestCase):
    def setUp(self) -> None:
        server: Any = HTTPServer(("127.0.0.1", 0), FakeCloud)
        self.server = server
        self.server.clock, self.server.now_us, self.server.advances = "manual", BEGIN_US, []
        thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}"

    def test_a_week_of_sleeps_takes_no_time(self) -> None:
        real, before = time.perf_counter(), time.time()
        with led_by(self.endpoint) as clock:
            begun, monotonic = time.time(), time.monotonic()
            self.assertEqual(begun, BEGIN_US / 1e6)
            while time.time() < begun + 7 * DAY:
                time.sleep(300)
            self.assertEqual(time.monotonic() - monotonic, 7 * DAY)
            self.assertEqual(clock.now_us, BEGIN_US + 7 * 86_400_000_000)
            self.assertEqual(self.server.advances, [300_000_000] * 2016)
        self.assertLess(time.perf_counter() - real, 60)
        self.assertLess(abs(time.time() - before), 60)

    def test_dates_are_the_runs(self) -> None:
        real = datetime.datetime
        utc = datetime.timezone.utc
        with led_by(self.endpoint):
            self.assertEqual(datetime.datetime.now(utc), real(2026, 11, 27, 8, tzinfo=utc))
            self.assertEqual(datetime.datetime.utcnow(), real(2026, 11, 27, 8))
            self.assertEqual(time.strftime("%Y-%m-%d", time.gmtime()), "2026-11-27")
            self.assertEqual(time.gmtime(0).tm_year, 1970)
            self.assertIsInstance(real(2020, 1, 1), datetime.datetime)
            self.assertIsInstance(datetime.datetime.strptime("2020", "%Y"), real)
            self.assertNotIsInstance(datetime.date.today(), datetime.datetime)
            self.assertEqual(datetime.date.today().year, 2026)
        self.assertIs(datetime.datetime, real)

    def test_threads_wait_together(self) -> None:
        seen: list[tuple[float, str]] = []

        def poll(name: str, every: float, times: int) -> None:
            for _ in range(times):
                time.sleep(every)
                seen.append((time.time() - BEGIN_US / 1e6, name))

        with led_by(self.endpoint):
            threads = [
                threading.Thread(target=poll, args=("a", 60.0, 5)),
                threading.Thread(target=poll, args=("b", 100.0, 3)),
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        by_time = [(60, "a"), (100, "b"), (120, "a"), (180, "a"), (200, "b"), (240, "a"), (300, "a"), (300, "b")]
        self.assertEqual(sorted(seen), by_time)
        self.assertEqual([at for at, _ in seen], sorted(at for at, _ in seen))
        self.assertEqual(self.server.now_us, BEGIN_US + 300_000_000)

    def test_waiting_with_a_timeout_is_led(self) -> None:
        with led_by(self.endpoint):
            event, words = threading.Event(), queue.Queue[str]()
            self.assertFalse(event.wait(3_600))
            with self.assertRaises(queue.Empty):
                words.get(timeout=400)
            self.assertEqual(self.server.now_us, BEGIN_US + 4_000_000_000)

            def later() -> None:
                time.sleep(10)
                event.set()

            threading.Thread(target=later).start()
            self.assertTrue(event.wait(DAY))
            self.assertEqual(self.server.now_us, BEGIN_US + 4_010_000_000)

            def ends(seconds: float) -> float:
                time.sleep(seconds)
                return time.time() - BEGIN_US / 1e6

            with ThreadPoolExecutor(2) as pool:
                self.assertEqual(list(pool.map(ends, [5, 7])), [4_015, 4_017])

    def test_event_loops_are_led(self) -> None:
        async def both() -> list[float]:
            loop = asyncio.get_running_loop()

            async def at(seconds: float) -> float:
                await asyncio.sleep(seconds)
                return loop.time()

            begun = loop.time()
            # A thread beside the loop sleeps, too.
            in_thread = loop.run_in_executor(None, time.sleep, 1_000)
            ends = await asyncio.gather(at(3_600), at(60))
            await in_thread
            return [end - begun for end in ends]

        with led_by(self.endpoint):
            later, sooner = asyncio.run(both())
        self.assertAlmostEqual(later, 3_600, places=3)
        self.assertAlmostEqual(sooner, 60, places=3)

    def test_a_clock_that_follows_the_hosts_leads_nobody(self) -> None:
        self.server.clock = "paced"
        with self.assertRaisesRegex(DormouseError, "start it with --clock manual"):
            with led_by(self.endpoint):
                pass
        real = time.sleep
        self.server.clock = "manual"
        with led_by(self.endpoint), self.assertRaisesRegex(DormouseError, "led already"):
            with led_by(self.endpoint):
                pass
        self.assertIs(time.sleep, real)

    def test_a_clock_that_is_gone_is_an_error(self) -> None:
        with self.assertRaisesRegex(DormouseError, "no clock at 127.0.0.1:1: "):
            with led_by("http://127.0.0.1:1"):
                pass


if __name__ == "__main__":
    unittest.main()
