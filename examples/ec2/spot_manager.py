"""Keeps one spot instance of EC2, and looks after it every five minutes: a manager as its author has it, who knows of boto3 alone.

    python -m dormouse.clock spot_manager.py DAYS     lives through as many days of `dormouse ec2 … --clock manual`
    python spot_manager.py DAYS                       does the same in real time, wherever AWS_ENDPOINT_URL leads
"""
import datetime
import sys
import time
from decimal import Decimal

import boto3
from botocore.exceptions import ClientError

KIND = "c5.large"
MAX_PRICE = "0.045"
POLL_S = 300
UP = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]


class SpotManager:
    def __init__(self, client):
        self.client = client
        self.image = client.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        self.launched, self.refused = [], {}

    def cheapest_zone(self):
        now = datetime.datetime.now(datetime.timezone.utc)
        history = self.client.describe_spot_price_history(
            InstanceTypes=[KIND], ProductDescriptions=["Linux/UNIX"], StartTime=now
        )["SpotPriceHistory"]
        return min((Decimal(one["SpotPrice"]), one["AvailabilityZone"]) for one in history)[1]

    def launch(self):
        token = f"launch-{len(self.launched)}-{sum(self.refused.values())}"
        spot = {"MarketType": "spot", "SpotOptions": {"MaxPrice": MAX_PRICE}}
        try:
            answer = self.client.run_instances(
                ImageId=self.image, InstanceType=KIND, MinCount=1, MaxCount=1, ClientToken=token,
                Placement={"AvailabilityZone": self.cheapest_zone()}, InstanceMarketOptions=spot,
            )
        except ClientError as error:
            code = error.response["Error"]["Code"]
            self.refused[code] = self.refused.get(code, 0) + 1
            return
        self.launched.append(answer["Instances"][0]["InstanceId"])

    def keep_one(self, polls):
        for _ in range(polls):
            if not self.client.describe_instances(Filters=UP)["Reservations"]:
                self.launch()
            time.sleep(POLL_S)


def main():
    manager = SpotManager(boto3.client("ec2"))
    manager.keep_one(int(float(sys.argv[1]) * 86_400) // POLL_S)
    print(len(manager.launched), "launches; refused:", manager.refused or "never")


if __name__ == "__main__":
    main()
