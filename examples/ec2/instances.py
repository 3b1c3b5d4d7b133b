"""Calls of EC2's API by which the clusters of this folder launch their instances, look at them and interrupt them."""
import os
import time

import boto3

ec2, fis = (boto3.client(name, endpoint_url=os.environ["AWS_ENDPOINT_URL"]) for name in ("ec2", "fis"))
SPOT = {"InstanceMarketOptions": {"MarketType": "spot"}}


def launch(name, kind, user_data, **options):
    """Launches an instance with this name; returns its id and its private address."""
    tags = {"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": name}]}
    [instance] = ec2.run_instances(
        ImageId="ami-12345678", InstanceType=kind, MinCount=1, MaxCount=1, UserData=user_data, TagSpecifications=[tags],
        **options,
    )["Instances"]
    return instance["InstanceId"], instance["PrivateIpAddress"]


def wait_for(instance, text):
    """Waits until the console of an instance has a line with this text; returns the line."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        console = ec2.get_console_output(InstanceId=instance, Latest=True).get("Output", "")
        for line in console.splitlines():
            if text in line:
                return line.strip()
        time.sleep(0.5)
    raise SystemExit(f"the console of {instance} does not say '{text}':\n{console}")


def interrupt(name):
    """Has the provider interrupt the spot instances of this name, after a notice of two minutes."""
    target = {"resourceType": "aws:ec2:spot-instance", "resourceTags": {"Name": name}, "selectionMode": "ALL"}
    action = {
        "actionId": "aws:ec2:send-spot-instance-interruptions", "targets": {"SpotInstances": "named"},
        "parameters": {"durationBeforeInterruption": "PT2M"},
    }
    template = fis.create_experiment_template(
        description="interrupts", roleArn="arn:aws:iam::000000000000:role/any", stopConditions=[{"source": "none"}],
        targets={"named": target}, actions={"interrupt": action},
    )["experimentTemplate"]
    fis.start_experiment(experimentTemplateId=template["id"])
