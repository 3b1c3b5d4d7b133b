"""Launches a Ray cluster of a head and two spot workers by EC2's API, and interrupts one of these while a job runs.

    python3 cluster.py FOLDER     where AWS_ENDPOINT_URL leads to `dormouse ec2 cloud.toml --clock live 10`

FOLDER    a virtual environment with Ray, which instances are allowed to read
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from instances import SPOT, interrupt, launch, wait_for  # noqa: E402


def user_data(name, words):
    """The program of an instance, with these words replaced."""
    text = (HERE / name).read_text()
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def main(folder):
    words = {"PYTHON_FOLDER": folder, "JOB_PROGRAM": (HERE / "job.py").read_text()}
    head, address = launch("head", "c5.xlarge", user_data("head", words))
    words["HEAD_ADDRESS"] = address
    workers = {}
    for name in ["worker1", "worker2"]:
        _, own = launch(name, "c5.xlarge", user_data("worker", words), **SPOT)
        workers[own] = name
    print(wait_for(head, "the workers are there"), flush=True)
    first = wait_for(head, "the first task of").split()[-3]
    interrupt(workers[first])
    print("a worker is interrupted", flush=True)
    for text in ["a worker is lost", "the sum is"]:
        print(wait_for(head, text), flush=True)


main(sys.argv[1])
