#!/usr/bin/env python3
"""The least work that a scheduler of a bag can do for an ask: to measure what asking costs.

    dormouse run j60 --scheduler ./noop.py

It launches one VM of the first type that is sold on demand, and starts the tasks there in their order.
Of the lines after the hello it parses none: it counts in each how many tasks have ended.
"""

import json
import sys

lines, answers = sys.stdin.buffer, sys.stdout.buffer
hello = json.loads(lines.readline())["hello"]
kinds = hello["catalogue"]["types"].values()
kind = next(kind for kind in kinds if kind["on_demand"] is not None)
launch = b'{"decision":"launch","vm":0,"kind":"%s","market":"on-demand"}' % kind["name"].encode()
waiting = [b'{"decision":"start","task":%d,"vm":0}' % n for n in range(len(hello["bag"]["tasks"]))]
waiting.reverse()

answers.write(b'{"hello":{"protocol":1,"hears":["begin","vm-ready","task-finished"]}}\n')
answers.flush()
for line in lines:
    free = line.count(b'"task-finished"')
    if b'"vm-ready"' in line:
        free = kind["vcpus"]
    if b'"begin"' in line:
        answers.write(b'{"decisions":[%s]}\n' % launch)
    elif free and waiting:
        starts = [waiting.pop() for _ in range(min(free, len(waiting)))]
        answers.write(b'{"decisions":[%s]}\n' % b",".join(starts))
    else:
        answers.write(b'{"decisions":[]}\n')
    answers.flush()
