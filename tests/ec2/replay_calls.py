"""Makes the calls again that a recorder took of real clients, with its ids mapped to ours: no action may be unsupported.

    replay_calls.py FOLDER              of FOLDER/*.jsonl.gz, against the command `dormouse` in the PATH
    replay_calls.py FOLDER --distil     writes the calls of EC2 as coordinator/ec2/src/tests/recorded-calls.txt has them

A line of a recording has the service, the action, its parameters as they were sent, the status and the error's code. An id that a call
names for the first time is the last one of its kind that an answer of ours had and no other stands for. Status 1 where an action is
unsupported, where a call is refused that was not, and where an id of a recording is in a file of the tree.
"""
import collections
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ID = re.compile(r"\bfleet-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?:vpc|subnet|sg|igw|rtb|i|lt|sir|key|vol|r)-[0-9a-f]{8,17}\b")
OURS = ID
VERSIONS = {"ec2": "2016-11-15", "iam": "2010-05-08", "sts": "2011-06-15"}
MARKET = """name = "recorded"
[cloud]
boot = "5s"
tariff = "ec2"
zones = ["us-east-1a", "us-east-1b", "us-east-1c"]
"""
# What EC2 refuses and the recorded server (moto) did not: why it is right.
REFUSED = {
    ("AttachInternetGateway", "Resource.AlreadyAssociated"): "the default VPC has a way out, which moto's has not",
    ("CreateRoute", "RouteAlreadyExists"): "the same",
    ("DescribeInstanceCreditSpecifications", "InstanceCreditSpecification.NotSupported"): "ours for the t3.micro may be a c5.large",
    ("StopInstances", "UnsupportedOperation"): "a one-time spot instance can't be stopped, nor hibernated by its user",
}
KINDS = ("c5.large", "m5.large", "m6i.large", "t3.micro", "t3.small", "t3.medium", "c5.xlarge", "m5.xlarge")


def read_calls(folder):
    for path in sorted(Path(folder).glob("*.jsonl.gz")):
        name = path.name.removesuffix(".jsonl.gz")
        if name in ("moto_actions", "srvtests"):
            continue
        yield name, [json.loads(line) for line in gzip.open(path, "rt")]


def kind_of(identifier):
    return identifier.split("-")[0]


class IdMap:
    """Recorded ids, each with ours."""

    def __init__(self):
        self.known = collections.defaultdict(list)
        self.mapped = {}

    def learn(self, answer):
        for found in OURS.finditer(answer):
            own = self.known[kind_of(found.group())]
            if found.group() not in own:
                own.append(found.group())

    def translate(self, value):
        return ID.sub(lambda found: self.of(found.group()), value)

    def of(self, recorded):
        if recorded not in self.mapped:
            free = [own for own in self.known[kind_of(recorded)] if own not in self.mapped.values()]
            if free:
                self.mapped[recorded] = free[-1]
        return self.mapped.get(recorded, recorded)


def begin_server(folder):
    market = Path(folder) / "market.toml"
    text = MARKET
    for kind in KINDS:
        text += f'[[cloud.type]]\nname = "{kind}"\nvcpus = 2\nmemory = "4 GiB"\nspot = 0.03\non-demand = 0.09\n'
        if kind.startswith("t3"):
            text += "burstable = { baseline = 0.1, credits-per-hour = 12 }\n"
    market.write_text(text)
    command = os.environ.get("DORMOUSE") or shutil.which("dormouse") or sys.exit("there is no command dormouse")
    words = ["ec2", str(market), "--listen", "127.0.0.1:0", "--clock", "manual", "--quiet", "--out", str(Path(folder) / "run")]
    process = subprocess.Popen([command, *words], stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip().removeprefix("AWS_ENDPOINT_URL=http://")


def call(connection, service, region, body):
    scope = f"AWS4-HMAC-SHA256 Credential=123456789012/20260101/{region}/{service}/aws4_request, SignedHeaders=host, Signature=00"
    headers = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8", "Authorization": scope}
    connection.request("POST", "/", body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def replay(name, calls):
    """What went wrong, and how many calls were made."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        process, host = begin_server(folder)
        connection, ids, before = http.client.HTTPConnection(host), IdMap(), calls[0]["t"]
        # What the recorded account had from the beginning, as the clients had seen it.
        for action in ("DescribeSubnets", "DescribeRouteTables", "DescribeInternetGateways", "DescribeVpcs"):
            ids.learn(call(connection, "ec2", "us-east-1", f"Action={action}&Version=2016-11-15")[1])
        for one in calls:
            seconds = max(0.0, one["t"] - before)
            before = one["t"]
            connection.request("POST", "/_dormouse/advance", json.dumps({"by": seconds}))
            connection.getresponse().read()
            params = {key: ids.translate(value) for key, value in one["params"].items()}
            head = {"Action": one["action"], "Version": VERSIONS[one["service"]]}
            status, answer = call(connection, one["service"], one["region"], urllib.parse.urlencode({**head, **params}))
            ids.learn(answer)
            code = (re.findall(r"<Code>([^<]+)</Code>", answer) or [None])[0]
            refused = status != 200 and (one["status"] == 200 or code != one["error"])
            if "not played" in answer or refused and (one["action"], code) not in REFUSED:
                wrong.append(f"{name}: {one['action']} {params}: {status} {code}, recorded {one['status']} {one['error']}")
        process.send_signal(signal.SIGTERM)
        process.wait()
    return wrong, len(calls)


def recorded_ids(all_calls):
    return {found.group() for _, calls in all_calls for one in calls for value in one["params"].values() for found in ID.finditer(value)}


def ids_in_tree(ids):
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    found = []
    for name in filter(None, files):
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        found += [f"{name} has the recorded id {one.group()}" for one in ID.finditer(text) if one.group() in ids]
    return found


def distil(all_calls):
    lines = ["# Calls of EC2 that real clients make, in their order, with their parameters. $KIND.N stands for an id: the last one of its",
             "# kind that an answer had when it is first named. Made by tests/ec2/replay_calls.py --distil."]
    for name, calls in all_calls:
        lines.append(f"\n# {name}")
        numbers, made = {}, set()
        def place(found):
            kind = kind_of(found.group())
            own = numbers.setdefault(kind, {})
            return f"${kind}.{own.setdefault(found.group(), len(own) + 1)}"
        for one in calls:
            if one["service"] != "ec2":
                continue
            if one["status"] != 200:
                continue
            params = {key: ID.sub(place, value) for key, value in one["params"].items()}
            line = f"{one['action']} " + urllib.parse.urlencode(params, safe="$*:/@")
            if line in made and one["action"].startswith("Describe"):
                continue
            made.add(line)
            lines.append(line.strip())
    (ROOT / "coordinator/ec2/src/tests/recorded-calls.txt").write_text("\n".join(lines) + "\n")


def main():
    all_calls = list(read_calls(sys.argv[1]))
    if "--distil" in sys.argv[2:]:
        return distil(all_calls)
    wrong = ids_in_tree(recorded_ids(all_calls))
    for name, calls in all_calls:
        found, made = replay(name, calls)
        print(f"{name}: {made} calls made again, {len(found)} not as they should be")
        wrong += found
    print("\n".join(wrong), file=sys.stderr)
    sys.exit(1 if wrong else 0)


main()
