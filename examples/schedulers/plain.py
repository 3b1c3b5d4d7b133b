#!/usr/bin/env python3
"""The scheduler of bag.py without a library: JSON lines in, JSON lines out.

    dormouse run j60-sc2 --scheduler ./plain.py
"""

import json
import sys

hello = json.loads(sys.stdin.readline())["hello"]
bag = hello["bag"]["tasks"]
catalogue = hello["catalogue"]
length = [max(task["runtime"].values()) for task in bag]
memory = max(task["memory"] for task in bag)  # that a place has to have
submitted = [task.get("submitted", 0) for task in bag]
waiting = []
ready = []  # the VMs that tasks can be started on
places, tasks = [], []  # by VM: how many tasks it can run; those on it
missing = 0  # places that are asked for again
decisions = []


def decide(decision, **what):
    decisions.append({"decision": decision, **what})


def offered(market):
    """Each instance type as often as it can be had, the cheapest first."""
    field = market.replace("-", "_")
    types = [t for t in catalogue["types"].values() if t[field] is not None]
    types = [t for t in types if t["name"] in bag[0]["runtime"] and t["burstable"] is None]
    types.sort(key=lambda t: t[field] * bag[0]["runtime"][t["name"]] / t["vcpus"])
    return [t for t in types for _ in range(t["limits"][field])]


offers = {market: offered(market) for market in ("spot", "on-demand")}


def hire(market, wanted):
    """Launches VMs with so many places; returns how many are missing."""
    while wanted > 0 and offers[market]:
        kind = offers[market].pop(0)
        decide("launch", vm=len(places), kind=kind["name"], market=market)
        places.append(min(kind["vcpus"], kind["memory"] // memory))
        tasks.append([])
        wanted -= places[-1]
    return wanted


def replace(now, wanted):
    """What can't be had now is asked for again in a minute."""
    global missing
    missing = hire("on-demand", missing + wanted)
    if missing > 0:
        decide("wake", at=now + 60_000_000, token=0)


def put(now, more):
    """Starts what waits where there is a place, and gives idle VMs back."""
    waiting.extend(more)
    waiting.sort(key=lambda task: -length[task])
    for vm in list(ready):
        while waiting and len(tasks[vm]) < places[vm]:
            tasks[vm].append(waiting[0])
            decide("start", task=waiting.pop(0), vm=vm)
        if not tasks[vm] and now >= max(submitted):
            ready.remove(vm)
            decide("terminate", vm=vm)


def begin(now):
    # Places enough to do all work in half of the time that there is.
    time = hello["bag"]["deadline"] - catalogue["boot"]
    hire("on-demand", hire("spot", 2 * sum(length) / time))
    for at in sorted(set(submitted) - {now}):
        decide("wake", at=at, token=at)
    put(now, [task for task, at in enumerate(submitted) if at == now])


def woken(now, token):
    if token == 0:
        offers["on-demand"] = offered("on-demand")
        replace(now, 0)
    else:
        put(now, [task for task, at in enumerate(submitted) if at == token])


def lost(now, vm):
    if vm in ready:
        ready.remove(vm)
    replace(now, len(tasks[vm]))
    left, tasks[vm] = tasks[vm], []
    put(now, left)


def hear(now, notice):
    kind, vm = notice["notice"], notice.get("vm")
    if kind == "begin":
        begin(now)
    elif kind == "wake":
        woken(now, notice["token"])
    elif kind == "vm-ready":
        ready.append(vm)
        put(now, [])
    elif kind == "vm-lost":
        lost(now, vm)
    elif kind == "vm-hibernated":
        decide("terminate", vm=vm)
        lost(now, vm)
    elif kind == "launch-refused":
        replace(now, places[vm])
    elif kind == "task-finished":
        tasks[vm].remove(notice["task"])
        put(now, [])
    elif kind == "task-failed":
        tasks[vm].remove(notice["task"])
        put(now, [notice["task"]])
    elif kind == "rejected":
        print(f"rejected at {now}: {notice}", file=sys.stderr)


print('{"hello":{"protocol":1}}', flush=True)
for line in sys.stdin:
    ask = json.loads(line)
    for notice in ask["notices"]:
        hear(ask["now"], notice)
    print(json.dumps({"decisions": decisions}), flush=True)
    decisions.clear()
