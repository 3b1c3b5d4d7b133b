"""Launches the head of a Slurm cluster by EC2's API, interrupts the node on which its job runs, and waits for the job's end.

    python3 cluster.py [--slurm FOLDER]     where AWS_ENDPOINT_URL leads to `dormouse ec2 cloud.toml --clock live 10`

--slurm FOLDER    where Slurm is below another folder than /usr, which instances have to be allowed to read
"""
import argparse
import json
import os
import pathlib
import time

import boto3

HERE = pathlib.Path(__file__).resolve().parent
FILES = ["slurm.conf", "settings", "node", "resume", "suspend", "job", "head"]
ec2, fis = (boto3.client(name, endpoint_url=os.environ["AWS_ENDPOINT_URL"]) for name in ("ec2", "fis"))


def open_group():
    """Lets instances of the default group reach each other."""
    [group] = ec2.describe_security_groups(GroupNames=["default"])["SecurityGroups"]
    itself = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group["GroupId"]}]}
    ec2.authorize_security_group_ingress(GroupId=group["GroupId"], IpPermissions=[itself])


def launch_head(slurm):
    """Launches the instance of Slurm's controller, whose programs may call the API; returns its id."""
    files = []
    for name in FILES:
        content = (HERE / name).read_text().replace("slurm=/usr\n", f"slurm={slurm}\n")
        files.append({"path": f"/home/ubuntu/{name}", "permissions": "0755", "content": content})
    config = {"write_files": files, "runcmd": [["/home/ubuntu/head"]]}
    [head] = ec2.run_instances(
        ImageId="ami-12345678", InstanceType="c5.large", MinCount=1, MaxCount=1,
        UserData="#cloud-config\n" + json.dumps(config), IamInstanceProfile={"Name": "cluster"},
    )["Instances"]
    return head["InstanceId"]


def wait_for(instance, text):
    """Waits until the console of an instance has a line with this text; returns the line."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        console = ec2.get_console_output(InstanceId=instance, Latest=True).get("Output", "")
        for line in console.splitlines():
            if text in line:
                return line
        time.sleep(0.5)
    raise SystemExit(f"the head says nothing of '{text}':\n{console}")


def interrupt(node):
    """Has the provider interrupt the instance of a node, after a notice of two minutes."""
    target = {
        "resourceType": "aws:ec2:spot-instance", "resourceTags": {"Name": node}, "selectionMode": "ALL",
    }
    action = {
        "actionId": "aws:ec2:send-spot-instance-interruptions", "targets": {"SpotInstances": "node"},
        "parameters": {"durationBeforeInterruption": "PT2M"},
    }
    template = fis.create_experiment_template(
        description="interrupts a node", roleArn="arn:aws:iam::000000000000:role/any",
        stopConditions=[{"source": "none"}], targets={"node": target}, actions={"interrupt": action},
    )["experimentTemplate"]
    fis.start_experiment(experimentTemplateId=template["id"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--slurm", default="/usr")
    open_group()
    head = launch_head(parser.parse_args().slurm)
    print(wait_for(head, "job 1 is RUNNING"), flush=True)
    node = wait_for(head, "job 1 is RUNNING").split()[-1]
    interrupt(node)
    print(f"{node} is interrupted", flush=True)
    print(wait_for(head, "job 1 is COMPLETED"))
    print(wait_for(head, "Restarts="))
    print(wait_for(head, "Comment="))


main()
