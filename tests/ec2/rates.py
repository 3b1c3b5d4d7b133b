"""How many calls `dormouse ec2` answers: reads and durable changes from eight connections, and two large calls.

    rates.py [--seconds S] [--judge]       with the command `dormouse` in the PATH; --judge: status 1 below what is asked

What is asked: 2,000 reads a second, 500 changes that are on the disk before they are answered, a description of 1,000 instances in
20 ms, whether they are as before or have all changed, and 300 instances launched by one call in 100 ms (the median of several). Beside
each figure is the processor time of the server for a call, which other processes on the host change little.
"""
import argparse
import http.client
import multiprocessing
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MARKET = """name = "market"
[cloud]
boot = "1m"
tariff = "ec2"
zones = ["us-east-1a", "us-east-1b"]
limits = { spot = 100000, on-demand = 100000 }
account-vcpus = { spot = 1000000, on-demand = 1000000 }
[[cloud.type]]
name = "c5.large"
vcpus = 2
memory = "4 GiB"
spot = 0.034
on-demand = 0.085
"""
SCOPE = "AWS4-HMAC-SHA256 Credential={account}/20260101/us-east-1/ec2/aws4_request, SignedHeaders=host, Signature=00"
RUN = "Action=RunInstances&Version=2016-11-15&ImageId=ami-12345678&InstanceType=c5.large&MinCount={n}&MaxCount={n}"
READ = "Action=DescribeInstances&Version=2016-11-15"


class Server:
    def __init__(self, folder):
        market = Path(folder) / "market.toml"
        market.write_text(MARKET)
        command = os.environ.get("DORMOUSE") or shutil.which("dormouse") or sys.exit("there is no command dormouse")
        words = ["ec2", str(market), "--listen", "127.0.0.1:0", "--clock", "manual", "--quiet", "--out", str(Path(folder) / "run")]
        self.process = subprocess.Popen([command, *words], stdout=subprocess.PIPE, text=True)
        self.host = self.process.stdout.readline().strip().removeprefix("AWS_ENDPOINT_URL=http://")

    def caller(self, account):
        return Caller(self.host, account)

    def cpu_s(self):
        """Processor time of the server until now."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Caller:
    def __init__(self, host, account):
        self.connection = http.client.HTTPConnection(host)
        self.headers = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": SCOPE.format(account=account)}

    def call(self, body):
        self.connection.request("POST", "/", body, self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            sys.exit(f"{answer.status}: {text[:500]!r}")
        return text


def repeat(host, account, body, seconds, out):
    caller, count = Caller(host, account), 0
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        caller.call(body.replace("{count}", f"{os.getpid()}-{count}"))
        count += 1
    out.put(count)


def rate(server, account, body, seconds):
    """Calls a second from eight connections, and the milliseconds of the server's processor time for each."""
    before = server.cpu_s()
    out = multiprocessing.Queue()
    callers = [multiprocessing.Process(target=repeat, args=(server.host, account, body, seconds, out)) for _ in range(8)]
    for caller in callers:
        caller.start()
    count = sum(out.get() for _ in callers)
    for caller in callers:
        caller.join()
    return count / seconds, (server.cpu_s() - before) / count * 1_000


def median_ms(server, call, times, prepare=lambda number: None):
    """The median milliseconds of a call, and those of the server's processor time for each."""
    took, cpu_s = [], 0.0
    for number in range(times):
        prepare(number)
        before, began = server.cpu_s(), time.perf_counter()
        call(number)
        took.append((time.perf_counter() - began) * 1_000)
        cpu_s += server.cpu_s() - before
    return statistics.median(took), cpu_s / times * 1_000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--judge", action="store_true")
    args = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        server.caller("111111111111").call(RUN.format(n=1))
        found.append(("reads a second", rate(server, "111111111111", READ, args.seconds), 2_000, True))
        instance = server.caller("111111111111").call(READ).decode().split("<instanceId>")[1].split("<")[0]
        tag = f"Action=CreateTags&Version=2016-11-15&ResourceId.1={instance}&Tag.1.Key=k&Tag.1.Value={{count}}"
        found.append(("durable changes a second", rate(server, "111111111111", tag, args.seconds), 500, True))
        many = server.caller("222222222222")
        ids = re.findall("<instanceId>([^<]+)<", many.call(RUN.format(n=1_000)).decode())
        named = "&".join(f"ResourceId.{place}={one}" for place, one in enumerate(ids, 1))
        tag_all = f"Action=CreateTags&Version=2016-11-15&{named}&Tag.1.Key=k&Tag.1.Value="
        describe = lambda _: many.call(READ)
        found.append(("ms to describe 1,000 instances as before", median_ms(server, describe, 15), 20, False))
        changed = median_ms(server, describe, 15, lambda number: many.call(f"{tag_all}{number}"))
        found.append(("ms to describe 1,000 instances that have all changed", changed, 20, False))
        launched = [server.caller(f"{number:012}") for number in range(9)]
        found.append(("ms to launch 300 instances", median_ms(server, lambda n: launched[n].call(RUN.format(n=300)), 9), 100, False))
        server.end()
    wrong = 0
    for name, (value, cpu_ms), asked, is_least in found:
        is_right = value >= asked if is_least else value <= asked
        wrong += not is_right
        print(f"{value:9.1f} {name}, {cpu_ms:.2f} ms of processor time each (asked: {'at least' if is_least else 'at most'} {asked}{'' if is_right else '; NOT MET'})")
    sys.exit(1 if args.judge and wrong else 0)


main()
