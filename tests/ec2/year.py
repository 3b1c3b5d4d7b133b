"""A spot manager lives through a year: its bill beside a reckoning of our own, and the time of its polls beside a constant answer.

    year.py [--polls N] [--no-timing]      needs boto3, the package dormouse, and the command `dormouse` in the PATH

The manager is examples/ec2/spot_manager.py as it is. The reckoning knows the rules of the provider (boot, notice, bids, by the second
with a free first hour) and the prices, and nothing of Dormouse's code.
"""
import argparse
import datetime
import http.client
import importlib.util
import json
import multiprocessing
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import dormouse
from dormouse.clock import led_by

ROOT = Path(__file__).resolve().parent.parent.parent
BEGIN = datetime.datetime(2026, 1, 5, tzinfo=datetime.timezone.utc)
ZONES = ("us-east-1a", "us-east-1b")
POLL_S, BOOT_S, NOTICE_S, FREE_S, LEAST_S = 300, 60, 120, 3_600, 60
BID = Fraction("0.045")

CLOUD = """name = "market"
[cloud]
boot = "60s"
tariff = "ec2"
preemption-notice = "120s"
zones = ["us-east-1a", "us-east-1b"]
[[cloud.type]]
name = "c5.large"
vcpus = 2
memory = "4 GiB"
spot = 0.034
on-demand = 0.085
"""
DRAWN = """[cloud.generated-prices."c5.large"]
lasts = "%dd"
model = { low = 0.030, high = 0.040, step = 0.001, every = "3h", spike-every = "2d", spike-lasts = "4h", spike-lift = 0.03, spike-spread = 0.8 }
"""


def load_manager():
    spec = importlib.util.spec_from_file_location("spot_manager", ROOT / "examples/ec2/spot_manager.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hourly_prices(seed, days):
    """A price each hour for each zone, which now and then is above the bid for some hours."""
    rng, prices = random.Random(seed), {}
    for zone in ZONES:
        high_for, rows = 0, []
        for hour in range(24 * days + 24):
            if high_for == 0 and rng.random() < 1 / 40:
                high_for = rng.randint(1, 6)
            # Not at a poll's instant: 100 s after the hour.
            price = Fraction(rng.randint(52, 90) if high_for else rng.randint(30, 44), 1000)
            rows.append((hour * 3600 + (100 if hour else 0), price))
            high_for = max(0, high_for - 1)
        prices[zone] = rows
    return prices


def write_prices(folder, prices):
    text = CLOUD + "[cloud.prices]\n"
    for zone, rows in prices.items():
        lines = [f"{BEGIN + datetime.timedelta(seconds=at):%Y-%m-%d %H:%M:%S},{float(price):.4f}" for at, price in rows]
        (folder / f"{zone}.csv").write_text("timestamp,price\n" + "\n".join(lines) + "\n")
        text += f'"c5.large@{zone}" = {{ file = "{zone}.csv" }}\n'
    file = folder / "market.toml"
    file.write_text(text)
    return file


def price_at(rows, at):
    return [price for since, price in rows if since <= at][-1]


class Reckoning:
    """What the year costs, by the rules alone."""

    def __init__(self, prices, polls):
        self.prices, self.end = prices, polls * POLL_S
        self.launches, self.refused, self.missed, self.cost = 0, 0, 0, Fraction(0)
        self.rows = {zone: ([at for at, _ in rows], [price for _, price in rows]) for zone, rows in prices.items()}
        at = 0
        up_until = None
        while at < self.end:
            if up_until is None or at >= up_until:
                zone = min((self.price(zone, at), zone) for zone in prices)[1]
                if self.price(zone, at) > BID:
                    self.refused += 1
                else:
                    self.launches += 1
                    up_until = self.live(zone, at)
            at += POLL_S

    def price(self, zone, at):
        from bisect import bisect_right

        times, prices = self.rows[zone]
        return prices[bisect_right(times, at) - 1]

    def live(self, zone, launched):
        """Charges a life of an instance, and returns when it ends; by its provider, or with the run."""
        ready = launched + BOOT_S
        taken = next((at for at, price in self.prices[zone] if at > launched and price > BID), None)
        if taken is not None and taken < ready and taken < self.end:
            return taken  # it boots, and ends at once: nothing is owed
        end = self.end if taken is None or taken + NOTICE_S >= self.end else taken + NOTICE_S
        by_provider = end != self.end
        if end <= ready:
            return end
        if by_provider:
            self.missed += 1
        if not (by_provider and end - ready < FREE_S):
            changes = [at for at, _ in self.prices[zone] if ready < at < end]
            for start, stop in zip([ready, *changes], [*changes, end]):
                self.cost += min(self.price(zone, start), BID) * (stop - start) / 3600
            if end - ready < LEAST_S:
                self.cost += min(self.price(zone, end), BID) * (LEAST_S - (end - ready)) / 3600
        return end


def play(experiment, out, polls, seed=1):
    """The manager's year: how long its polls took, what it did, the prices that it could see, and the run."""
    module = load_manager()
    with dormouse.ec2(experiment, seed=seed, out=out) as cloud:
        begun = cloud.now()
        client = cloud.client()
        manager = module.SpotManager(client)
        began = time.perf_counter()
        manager.keep_one(polls)
        took = time.perf_counter() - began
        prices = {}
        for page in client.get_paginator("describe_spot_price_history").paginate(StartTime=begun):
            for one in page["SpotPriceHistory"]:
                at = int((one["Timestamp"] - begun).total_seconds())
                prices.setdefault(one["AvailabilityZone"], []).append((at, Fraction(one["SpotPrice"])))
    for rows in prices.values():
        rows.sort()
    return took, manager, prices, cloud.run


def compare(name, manager, run, reckoned):
    said = Fraction(str(run.summary["cost_usd"]))
    print(f"{name}: {len(manager.launched)} launches, {sum(manager.refused.values())} refused, "
          f"{float(said):.4f} USD; reckoned: {reckoned.launches}, {reckoned.refused}, {float(reckoned.cost):.4f}, "
          f"{reckoned.missed} lives that EC2 ended")
    assert len(manager.launched) == reckoned.launches, "launches"
    assert sum(manager.refused.values()) == reckoned.refused, "refusals"
    assert round(said * 100) == round(reckoned.cost * 100), "the bill differs by a cent"
    return float(reckoned.cost)


def serve_constant(listener, describe, step_us, begin_us):
    """Answers each description with the same bytes, and each advance with the next date."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/xml;charset=UTF-8\r\ncontent-length: %d\r\n\r\n"
    described = head % len(describe) + describe
    count = 0

    import threading

    def answer(connection):
        nonlocal count
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        rest = b""
        while True:
            while b"\r\n\r\n" not in rest:
                more = connection.recv(65536)
                if not more:
                    return
                rest += more
            top, _, rest = rest.partition(b"\r\n\r\n")
            length = next((int(line[15:]) for line in top.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
            while len(rest) < length:
                rest += connection.recv(65536)
            rest = rest[length:]
            if b"/_dormouse/" not in top:
                connection.sendall(described)
                continue
            count += b"/advance" in top
            now = begin_us + count * step_us
            body = json.dumps({"clock": "manual", "now_s": count * 300.0, "date": "", "unix_us": now,
                               "next_event_s": None, "next_event_unix_us": None}).encode()
            connection.sendall(head % len(body) + body)

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def captured_answer(experiment):
    """The bytes of an answer that describes one running instance."""
    with dormouse.ec2(experiment) as cloud:
        client = cloud.client()
        image = client.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        client.run_instances(ImageId=image, InstanceType="c5.large", MinCount=1, MaxCount=1)
        cloud.advance(60)
        host = cloud.endpoint.removeprefix("http://")
        connection = http.client.HTTPConnection(host)
        body = "Action=DescribeInstances&Version=2016-11-15&Filter.1.Name=instance-state-name&Filter.1.Value.1=pending&Filter.1.Value.2=running"
        scope = "AWS4-HMAC-SHA256 Credential=123456789012/20260101/us-east-1/ec2/aws4_request, SignedHeaders=host, Signature=00"
        kind = "application/x-www-form-urlencoded; charset=utf-8"
        connection.request("POST", "/", body, {"Content-Type": kind, "Authorization": scope})
        return connection.getresponse().read()


def time_constant(answer, polls):
    """How long the same polls take against a constant answer."""
    import boto3

    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    args = (listener, answer, POLL_S * 1_000_000, int(BEGIN.timestamp()) * 1_000_000)
    server = multiprocessing.get_context("fork").Process(target=serve_constant, args=args, daemon=True)
    server.start()
    endpoint = f"http://127.0.0.1:{port}"
    try:
        client = boto3.client("ec2", endpoint_url=endpoint, region_name="us-east-1",
                              aws_access_key_id="123456789012", aws_secret_access_key="unchecked")
        manager = load_manager().SpotManager.__new__(load_manager().SpotManager)
        manager.client, manager.launched, manager.refused = client, [], {}
        with led_by(endpoint):
            began = time.perf_counter()
            manager.keep_one(polls)
            return time.perf_counter() - began
    finally:
        server.kill()
        server.join()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--polls", type=int, default=105_120)
    parser.add_argument("--no-timing", action="store_true")
    args = parser.parse_args()
    days = -(-args.polls * POLL_S // 86_400)
    costs = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        took = None
        for file in (1, 2):
            at = folder / f"file{file}"
            at.mkdir()
            prices = hourly_prices(file, days)
            experiment = write_prices(at, prices)
            seconds, manager, seen, run = play(experiment, at / "run", args.polls)
            took = took or seconds
            for zone, rows in seen.items():
                wanted = [row for row in prices[zone] if row[0] <= args.polls * POLL_S]
                merged = [row for at, row in enumerate(wanted) if at == 0 or row[1] != wanted[at - 1][1]]
                assert rows == merged, f"the price history of {zone} is not the file's"
            costs.append(compare(f"price file {file}", manager, run, Reckoning(prices, args.polls)))
            if file == 1:
                _, again, _, second = play(experiment, at / "again", args.polls)
                assert again.launched == manager.launched
                logs = [(at / part / "events.jsonl").read_bytes() for part in ("run", "again")]
                assert logs[0] == logs[1], "the same calls leave other logs"
                for verb in ("replay", "check"):
                    subprocess.run([dormouse.find_command(), verb, str(run.folder)], check=True, stdout=subprocess.DEVNULL)
                print(f"twice the same {len(logs[0])} bytes; replay and check find nothing")
                if not args.no_timing:
                    constant = time_constant(captured_answer(experiment), args.polls)
                    print(f"{args.polls} polls: {took:.1f} s, against a constant answer {constant:.1f} s: {took / constant:.2f} of it")
        experiment = folder / "drawn.toml"
        experiment.write_text(CLOUD + DRAWN % (days + 1))
        for seed in (1, 2):
            _, manager, prices, run = play(experiment, folder / f"seed{seed}", args.polls, seed)
            costs.append(compare(f"seed {seed}", manager, run, Reckoning(prices, args.polls)))
    assert len(set(costs)) == len(costs), f"other prices cost the same: {costs}"


main()
