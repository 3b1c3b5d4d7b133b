#!/usr/bin/env python3
"""Compares the wire of EC2's API (coordinator/ec2/wire) with botocore's own serialiser and parser.

For every action of the shipped model, random inputs are serialised by botocore and read by the crate, and random answers are
written by the crate and parsed by botocore. Each has to come out as it went in. What the wire can't tell apart is not compared:
a structure or list without anything in it is as none, and answers have milliseconds at most.

    tests/ec2/wire_oracle.py PROGRAM [--values N] [--seed N]      PROGRAM: the crate's example wire-lines
"""
import argparse
import datetime
import json
import pathlib
import random
import subprocess
import sys
import urllib.parse

import botocore.parsers
import botocore.serialize
import botocore.session

ACTIONS = pathlib.Path(__file__).parents[2] / "coordinator/ec2/wire/data/ec2-actions.txt"
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
TEXTS = ["a", "x<&>\"'y", "ümlaut €", "0", "tag:Name", "  b ", "a+b=c&d%e;f", "line\nline\ttab", "\r\n", "🦊", "i-0123.1"]


def random_value(rnd, shape, depth=0, seen=()):
    kind = shape.type_name
    if kind == "structure":
        if shape.name in seen or depth > 12:
            return {}
        return {name: random_value(rnd, member, depth + 1, (*seen, shape.name))
                for name, member in shape.members.items() if rnd.random() < 0.6 / (1 + depth / 4)}
    if kind == "list":
        return [random_value(rnd, shape.member, depth + 1, seen) for _ in range(rnd.randint(1, 3))]
    if kind in ("integer", "long"):
        return rnd.choice([0, -1, rnd.randint(-5, 10**6), 2**31 - 1, 2**63 - 1 if kind == "long" else -(2**31)])
    if kind in ("double", "float"):
        return rnd.choice([rnd.randint(0, 10**6) / 64, rnd.random(), -1.5, 1e20, 1e-9])
    if kind == "boolean":
        return rnd.random() < 0.5
    if kind == "timestamp":
        return datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(
            seconds=rnd.randint(-10**9, 10**9), milliseconds=rnd.choice([0, 0, 250, 999]))
    if kind == "blob":
        return rnd.randbytes(rnd.randint(1, 40))
    return rnd.choice(shape.enum) if shape.enum and rnd.random() < 0.9 else rnd.choice(TEXTS)


def micros(at):
    return (at - EPOCH) // datetime.timedelta(microseconds=1)


def comparable(value, shape):
    """A value as the wire can carry it, with instants as microseconds and bytes as numbers."""
    kind = shape.type_name
    if kind == "structure":
        members = {name: comparable(of, shape.members[name]) for name, of in value.items()}
        return {name: of for name, of in members.items() if of not in ({}, [])}
    if kind == "list":
        return [of for of in (comparable(of, shape.member) for of in value) if of != {}]
    if kind == "timestamp" and isinstance(value, datetime.datetime):
        return {"$instant": micros(value)}
    if kind == "blob" and isinstance(value, bytes):
        return {"$bytes": list(value)}
    if kind in ("double", "float"):
        return float(value)
    return value


def tagged(value, shape):
    """A value for the program: as `comparable`, with what is empty, too."""
    if shape.type_name == "structure":
        return {name: tagged(of, shape.members[name]) for name, of in value.items()}
    if shape.type_name == "list":
        return [tagged(of, shape.member) for of in value]
    return comparable(value, shape)


class Program:
    """The crate's example program, a line for a line."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def ask(self, **line):
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit("the program has ended")
        return json.loads(answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--values", type=int, default=50, help="random values for each action and direction")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rnd = random.Random(args.seed)
    service = botocore.session.get_session().get_service_model("ec2")
    serializer = botocore.serialize.create_serializer("ec2", include_validation=False)
    # botocore parses instants to dates by default.
    parser = botocore.parsers.create_parser("ec2")
    program, differing, tried = Program(args.program), {}, 0
    for action in ACTIONS.read_text().split():
        operation = service.operation_model(action)
        for _ in range(args.values):
            if operation.input_shape:
                sent = random_value(rnd, operation.input_shape)
                body = serializer.serialize_to_request(sent, operation)["body"]
                got = program.ask(read=action, query=urllib.parse.urlencode({name: str(of) for name, of in body.items()}))
                sent, tried = comparable(sent, operation.input_shape), tried + 1
                read = comparable(got["value"], operation.input_shape) if "value" in got else got
                if read != sent:
                    differing.setdefault((action, "request"), (sent, read))
            if operation.output_shape:
                sent = random_value(rnd, operation.output_shape)
                got = program.ask(write=action, value=tagged(sent, operation.output_shape))
                sent, read, tried = comparable(sent, operation.output_shape), got, tried + 1
                if "xml" in got:
                    answer = {"body": got["xml"].encode(), "headers": {}, "status_code": 200}
                    read = parser.parse(answer, operation.output_shape)
                    read.pop("ResponseMetadata")
                    read = comparable(read, operation.output_shape)
                if read != sent:
                    differing.setdefault((action, "answer"), (sent, read))
    print(f"{len(ACTIONS.read_text().split())} actions, {tried} values, {len(differing)} differ from botocore {botocore.__version__}")
    for (action, side), (sent, read) in list(differing.items())[:6]:
        sent, read = json.dumps(sent, sort_keys=True), json.dumps(read, sort_keys=True)
        at = next((i for i, (a, b) in enumerate(zip(sent, read)) if a != b), min(len(sent), len(read)))
        print(f"{action} {side}: sent …{sent[max(0, at - 60):at + 60]} | read …{read[max(0, at - 60):at + 60]}")
    sys.exit(bool(differing) or tried == 0)


main()
