"""Launches the head of a Slurm cluster by EC2's API, interrupts the node on which its job runs, and waits for the job's end.

    python3 cluster.py [--slurm FOLDER]     where AWS_ENDPOINT_URL leads to `dormouse ec2 cloud.toml --clock live 10`

--slurm FOLDER    where Slurm is below another folder than /usr, which instances have to be allowed to read
"""
import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from instances import interrupt, launch, wait_for  # noqa: E402

FILES = ["slurm.conf", "settings", "node", "resume", "suspend", "job", "head"]


def head_config(slurm):
    """User data of the instance of Slurm's controller: the files beside this program, and the command that starts it."""
    files = []
    for name in FILES:
        content = (HERE / name).read_text().replace("slurm=/usr\n", f"slurm={slurm}\n")
        files.append({"path": f"/home/ubuntu/{name}", "permissions": "0755", "content": content})
    return "#cloud-config\n" + json.dumps({"write_files": files, "runcmd": [["/home/ubuntu/head"]]})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--slurm", default="/usr")
    slurm = parser.parse_args().slurm
    # Its programs may call the API.
    head, _ = launch("head", "c5.large", head_config(slurm), IamInstanceProfile={"Name": "cluster"})
    runs = wait_for(head, "job 1 is RUNNING")
    print(runs, flush=True)
    node = runs.split()[-1]
    interrupt(node)
    print(f"{node} is interrupted", flush=True)
    for text in ["job 1 is COMPLETED", "Restarts=", "Comment="]:
        print(wait_for(head, text), flush=True)


main()
