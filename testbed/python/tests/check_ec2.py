"""A spot manager of boto3 lives through a week of prices; needs boto3 and pytest, and the command `dormouse`.

    python3 check_ec2.py         says what is wrong, with status 1
"""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dormouse

BEGIN = datetime.datetime(2026, 1, 5, tzinfo=datetime.timezone.utc)
HOUR = datetime.timedelta(hours=1)
EXPERIMENT = """
name = "market"
[cloud]
boot = "1m"
tariff = "second"
zones = ["us-east-1a", "us-east-1b"]
[[cloud.type]]
name = "c5.large"
vcpus = 2
memory = "4 GiB"
spot = 0.03
on-demand = 0.085
[cloud.prices]
"c5.large@us-east-1a" = { file = "a.csv" }
"c5.large@us-east-1b" = { file = "b.csv" }
"""


def prices(zone: str, hours: int) -> list[tuple[datetime.datetime, Decimal]]:
    """A price for each hour, which passes 0.05 now and then."""
    out, state = [], 7 if zone == "a" else 11
    for hour in range(hours):
        state = (state * 1103515245 + 12345) % 2**31
        high = state // 65536 % 19 == 0
        out.append((BEGIN + hour * HOUR, Decimal(state // 65536 % 20 + (55 if high else 20)) / 1000))
    return out


def write_experiment(folder: Path, hours: int) -> Path:
    for zone in "ab":
        rows = (f"{at:%Y-%m-%d %H:%M:%S},{price}" for at, price in prices(zone, hours))
        (folder / f"{zone}.csv").write_text("timestamp,price\n" + "\n".join(rows) + "\n")
    file = folder / "market.toml"
    file.write_text(EXPERIMENT)
    return file


class Manager:
    """Keeps one spot instance in the zone that is cheaper: what is tested, as its author has it."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.seen: list[str] = []
        self.image = client.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]

    def keep(self, until: datetime.datetime) -> None:
        from botocore.exceptions import ClientError

        while datetime.datetime.now(datetime.timezone.utc) < until:
            states = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
            if not self.client.describe_instances(Filters=states)["Reservations"]:
                try:
                    self.launch()
                except ClientError as error:
                    self.seen.append(error.response["Error"]["Code"])
            time.sleep(300)

    def launch(self) -> None:
        history = self.client.describe_spot_price_history(
            InstanceTypes=["c5.large"],
            ProductDescriptions=["Linux/UNIX"],
            StartTime=datetime.datetime.now(datetime.timezone.utc),
        )["SpotPriceHistory"]
        zone = min(history, key=lambda price: Decimal(price["SpotPrice"]))["AvailabilityZone"]
        spot = {"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.05"}}
        answer = self.client.run_instances(
            ImageId=self.image,
            InstanceType="c5.large",
            MinCount=1,
            MaxCount=1,
            Placement={"AvailabilityZone": zone},
            InstanceMarketOptions=spot,
            # boto3 would draw one by chance, and no two runs were the same.
            ClientToken=f"launch-{len(self.seen)}",
        )
        self.seen.append(answer["Instances"][0]["InstanceId"])


def play(experiment: Path, out: Path, seed: int, hours: int) -> tuple[list[str], dormouse.Run]:
    with dormouse.ec2(experiment, seed=seed, out=out) as cloud:
        begun = cloud.now()
        assert begun == BEGIN, begun
        manager = Manager(cloud.client())
        manager.keep(begun + hours * HOUR)
        assert cloud.now() >= begun + hours * HOUR
    assert cloud.run is not None
    return manager.seen, cloud.run


def check_a_week(folder: Path) -> None:
    hours = 7 * 24
    experiment = write_experiment(folder, hours + 1)
    began = time.perf_counter()
    seen, run = play(experiment, folder / "run", 1, hours)
    print(f"{hours * 12} polls in {time.perf_counter() - began:.1f} s, {len(seen)} launches, {run.summary['cost_usd']} USD")
    assert sum(word.startswith("i-") for word in seen) > 3, seen
    again, second = play(experiment, folder / "again", 1, hours)
    assert again == seen
    logs = [(folder / name / "events.jsonl").read_bytes() for name in ("run", "again")]
    assert logs[0] == logs[1], "the same calls leave other logs"
    command = dormouse.find_command()
    for verb in ("replay",):
        subprocess.run([command, verb, str(run.folder)], check=True, stdout=subprocess.DEVNULL)


def check_program_as_it_is(folder: Path) -> None:
    """`python -m dormouse.clock` leads a program that knows nothing of us."""
    experiment = write_experiment(folder, 48)
    program = folder / "program.py"
    program.write_text(
        "import time, datetime, boto3\n"
        "client = boto3.client('ec2')\n"
        "time.sleep(3600)\n"
        "print(datetime.datetime.now(datetime.timezone.utc).isoformat(), len(client.describe_regions()['Regions']))\n"
    )
    server = subprocess.Popen(
        [dormouse.find_command(), "ec2", str(experiment), "--listen", "127.0.0.1:0", "--clock", "manual", "--quiet", "--out", str(folder / "as-it-is")],
        stdout=subprocess.PIPE, text=True,
    )
    assert server.stdout is not None
    endpoint = server.stdout.readline().strip().partition("=")[2]
    variables = {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_DEFAULT_REGION": "us-east-1"}
    said = subprocess.run(
        [sys.executable, "-m", "dormouse.clock", str(program)],
        env={**os.environ, **variables}, check=True, text=True, stdout=subprocess.PIPE,
    ).stdout
    server.terminate()
    assert server.wait() == 0
    assert said == "2026-01-05T01:00:00+00:00 1\n", said


def check_page(folder: Path) -> None:
    """The manager of docs/how-to/ec2.md, for two weeks of its year."""
    page = (Path(__file__).resolve().parents[3] / "docs/how-to/ec2.md").read_text()
    blocks = {kind: page.split(f"```{kind}\n")[1].split("```")[0] for kind in ("toml", "python")}
    (folder / "market.toml").write_text(blocks["toml"])
    program = folder / "manager.py"
    program.write_text(blocks["python"].replace("days=365", "days=14"))
    said = subprocess.run([sys.executable, str(program)], cwd=folder, check=True, text=True, stdout=subprocess.PIPE).stdout
    cost = float(said.split(" USD, ")[0])
    # Two weeks at three to four cents an hour, less what is interrupted.
    assert 8 < cost < 13, said


def check_queue(folder: Path) -> None:
    """A queue is told of what EC2 does with an instance, before a poll every five minutes sees it."""
    import json

    experiment = write_experiment(folder, 48)
    with dormouse.ec2(experiment) as cloud:
        client, queues = cloud.client(), cloud.client("sqs")
        try:
            queues.get_queue_url(QueueName="told")
        except queues.exceptions.QueueDoesNotExist:
            pass
        else:
            raise AssertionError("there is a queue that nobody has made")
        url = queues.create_queue(QueueName="told")["QueueUrl"]
        assert queues.get_queue_url(QueueName="told")["QueueUrl"] == url
        image = client.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        spot = {"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.05"}}
        one = client.run_instances(ImageId=image, InstanceType="c5.large", MinCount=1, MaxCount=1, InstanceMarketOptions=spot)
        instance = one["Instances"][0]["InstanceId"]
        told = []
        for _ in range(47 * 12):
            for message in queues.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
                event = json.loads(message["Body"])
                assert event["detail"]["instance-id"] == instance, event
                told.append((event["detail-type"], event["detail"].get("state"), event["detail"].get("instance-action")))
                queues.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            time.sleep(300)
        states = [state for _, state, _ in told if state]
        assert states == ["pending", "running", "terminated"], told
        assert ("EC2 Spot Instance Interruption Warning", None, "terminate") in told, told
        count = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        assert count["ApproximateNumberOfMessages"] == count["ApproximateNumberOfMessagesNotVisible"] == "0", count


def check_regions(folder: Path) -> None:
    """Two regions of one run: what is in one is not in the other."""
    experiment = write_experiment(folder, 4)
    experiment.write_text(experiment.read_text().replace('"us-east-1b"]', '"eu-west-1b"]').replace("@us-east-1b", "@eu-west-1b"))
    with dormouse.ec2(experiment) as cloud:
        here, there = cloud.client(), cloud.client(region="eu-west-1")
        assert {one["RegionName"] for one in here.describe_regions()["Regions"]} == {"us-east-1", "eu-west-1"}
        image = there.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        there.run_instances(ImageId=image, InstanceType="c5.large", MinCount=1, MaxCount=1)
        assert not here.describe_instances()["Reservations"]
        placed = there.describe_instances()["Reservations"][0]["Instances"][0]["Placement"]
        assert placed["AvailabilityZone"] == "eu-west-1b", placed
        costs = [client.describe_spot_price_history(InstanceTypes=["c5.large"])["SpotPriceHistory"][0]["SpotPrice"] for client in (here, there)]
        assert costs[0] != costs[1], costs


def check_fixture(folder: Path) -> None:
    experiment = write_experiment(folder, 48)
    (folder / "test_manager.py").write_text(
        "import time\n"
        "def test_waits(dormouse_ec2):\n"
        f"    cloud = dormouse_ec2({str(experiment)!r})\n"
        "    client = cloud.client()\n"
        "    image = client.describe_images(Owners=['amazon'])['Images'][0]['ImageId']\n"
        "    one = client.run_instances(ImageId=image, InstanceType='c5.large', MinCount=1, MaxCount=1)['Instances'][0]\n"
        "    before = time.time()\n"
        "    client.get_waiter('instance_running').wait(InstanceIds=[one['InstanceId']])\n"
        "    assert 60 <= time.time() - before <= 75\n"
    )
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)], check=True)


def main() -> None:
    assert threading.active_count() == 1
    for check in (check_a_week, check_program_as_it_is, check_page, check_queue, check_regions, check_fixture):
        with TemporaryDirectory() as folder:
            check(Path(folder))
    print("EC2 from Python is as it should be")


main()
