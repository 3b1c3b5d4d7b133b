"""Kills `dormouse ec2` amid calls, and has it go on: each client's token has one instance, and none is lost or doubled.

    kills.py [--kills N]           with the command `dormouse` in the PATH

Four clients launch instances, each under a token of its own, and ask again with the same token where an answer did not come. The server
is killed at moments drawn by chance, and goes on with its run's folder. At the end each token has to have the one instance that its
client was told of, and there is no other; the log has to replay and to pass its check.
"""
import argparse
import http.client
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path
from xml.etree import ElementTree

MARKET = """name = "killed"
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
SPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
SCOPE = "AWS4-HMAC-SHA256 Credential=123456789012/20260101/us-east-1/ec2/aws4_request, SignedHeaders=host, Signature=00"
COMMAND = os.environ.get("DORMOUSE") or shutil.which("dormouse")


def instances(answer):
    """The instances of an answer, as elements."""
    return ElementTree.fromstring(answer).findall(f".//{{{SPACE}}}instancesSet/{{{SPACE}}}item")


def begin(folder, port):
    words = ["ec2", str(folder / "market.toml"), "--listen", f"127.0.0.1:{port}", "--clock", "manual", "--quiet",
             "--out", str(folder / "run"), "--resume"]
    process = subprocess.Popen([COMMAND, *words], stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    if not line.startswith("AWS_ENDPOINT_URL="):
        sys.exit(f"the server says {line!r}, with status {process.wait()}")
    return process


def call(port, **params):
    """The answer to a call; asked again until there is one."""
    body = urllib.parse.urlencode({"Version": "2016-11-15", **params})
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("POST", "/", body, {"Content-Type": "application/x-www-form-urlencoded", "Authorization": SCOPE})
            answer = connection.getresponse()
            text = answer.read().decode()
            if answer.status == 200:
                return text
            sys.exit(f"{answer.status}: {text}")
        except (OSError, http.client.HTTPException):
            time.sleep(0.01)  # until the port is listened at again


def launch(port, name, told, over):
    number = 0
    while not over.is_set():
        token = f"{name}-{number}"
        answer = call(port, Action="RunInstances", ImageId="ami-12345678", InstanceType="c5.large", MinCount=1, MaxCount=1, ClientToken=token)
        told[token] = [one.findtext(f"{{{SPACE}}}instanceId") for one in instances(answer)]
        number += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "market.toml").write_text(MARKET)
        told, over = {}, threading.Event()
        server = begin(folder, port)
        clients = [threading.Thread(target=launch, args=(port, f"client{n}", told, over)) for n in range(4)]
        for client in clients:
            client.start()
        for _ in range(args.kills):
            time.sleep(rng.uniform(0.02, 0.15))
            server.send_signal(signal.SIGKILL)
            server.wait()
            server = begin(folder, port)
        over.set()
        for client in clients:
            client.join()
        answer = call(port, Action="DescribeInstances")
        found = {one.findtext(f"{{{SPACE}}}instanceId"): one.findtext(f"{{{SPACE}}}clientToken") for one in instances(answer)}
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0, "the run does not end as it should"
        wrong = [token for token, ids in told.items() if len(ids) != 1 or found.get(ids[0]) != token]
        assert not wrong, f"these tokens have another instance than they were told: {wrong}"
        assert len(found) == len(told) == len(set(found.values())), f"{len(found)} instances, {len(told)} tokens"
        for verb in ("replay", "check"):
            subprocess.run([COMMAND, verb, str(folder / "run")], check=True, stdout=subprocess.DEVNULL)
        print(f"{args.kills} kills, {len(told)} tokens, each with its one instance; replay and check find nothing")


main()
