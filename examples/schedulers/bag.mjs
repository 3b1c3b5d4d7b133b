#!/usr/bin/env node
// The scheduler of plain.py in JavaScript: JSON lines in, JSON lines out, and no package.
//
//     dormouse run j60-sc2 --scheduler ./bag.mjs

import { createInterface } from "node:readline";

const write = (line) => process.stdout.write(JSON.stringify(line) + "\n");

class Bag {
  waiting = []; // tasks on no VM
  ready = []; // the VMs that tasks can be started on
  places = []; // by VM: how many tasks it can run
  tasks = []; // by VM: those on it
  missing = 0; // places that are asked for again
  decisions = [];

  constructor({ bag, catalogue }) {
    this.types = Object.values(catalogue.types);
    this.first = bag.tasks[0].runtime;
    this.length = bag.tasks.map((task) => Math.max(...Object.values(task.runtime)));
    this.memory = Math.max(...bag.tasks.map((task) => task.memory)); // that a place has to have
    this.submitted = bag.tasks.map((task) => task.submitted ?? 0);
    this.time = bag.deadline - catalogue.boot;
    this.offers = { spot: this.offered("spot"), "on-demand": this.offered("on-demand") };
  }

  decide(decision, what) {
    this.decisions.push({ decision, ...what });
  }

  // Each instance type as often as it can be had, the cheapest first.
  offered(market) {
    const field = market.replace("-", "_");
    const cost = (type) => (type[field] * this.first[type.name]) / type.vcpus;
    return this.types
      .filter((type) => type[field] !== null && type.burstable === null && type.name in this.first)
      .sort((one, other) => cost(one) - cost(other))
      .flatMap((type) => Array(type.limits[field]).fill(type));
  }

  // Launches VMs with so many places; returns how many are missing.
  hire(market, wanted) {
    while (wanted > 0 && this.offers[market].length > 0) {
      const type = this.offers[market].shift();
      this.decide("launch", { vm: this.places.length, kind: type.name, market });
      const places = Math.min(type.vcpus, Math.floor(type.memory / this.memory));
      this.places.push(places);
      this.tasks.push([]);
      wanted -= places;
    }
    return wanted;
  }

  // What can't be had now is asked for again in a minute.
  replace(now, wanted) {
    this.missing = this.hire("on-demand", this.missing + wanted);
    if (this.missing > 0) this.decide("wake", { at: now + 60_000_000, token: 0 });
  }

  // Starts what waits where there is a place, and gives idle VMs back.
  put(now, more) {
    this.waiting.push(...more);
    this.waiting.sort((one, other) => this.length[other] - this.length[one]);
    for (const vm of [...this.ready]) {
      while (this.waiting.length > 0 && this.tasks[vm].length < this.places[vm]) {
        this.tasks[vm].push(this.waiting[0]);
        this.decide("start", { task: this.waiting.shift(), vm });
      }
      if (this.tasks[vm].length === 0 && this.submitted.every((at) => now >= at)) {
        this.ready = this.ready.filter((other) => other !== vm);
        this.decide("terminate", { vm });
      }
    }
  }

  begin(now) {
    // Places enough to do all work in half of the time that there is.
    const work = this.length.reduce((sum, length) => sum + length, 0);
    this.hire("on-demand", this.hire("spot", (2 * work) / this.time));
    const later = [...new Set(this.submitted)].filter((at) => at !== now).sort((a, b) => a - b);
    later.forEach((at) => this.decide("wake", { at, token: at }));
    this.put(now, this.come(now));
  }

  come(at) {
    return [...this.submitted.keys()].filter((task) => this.submitted[task] === at);
  }

  woken(now, token) {
    if (token === 0) {
      this.offers["on-demand"] = this.offered("on-demand");
      this.replace(now, 0);
    } else {
      this.put(now, this.come(token));
    }
  }

  lost(now, vm) {
    this.ready = this.ready.filter((other) => other !== vm);
    this.replace(now, this.tasks[vm].length);
    this.put(now, this.tasks[vm].splice(0));
  }

  left(vm, task) {
    this.tasks[vm] = this.tasks[vm].filter((other) => other !== task);
  }

  hear(now, notice) {
    const { notice: kind, vm, task } = notice;
    if (kind === "begin") {
      this.begin(now);
    } else if (kind === "wake") {
      this.woken(now, notice.token);
    } else if (kind === "vm-ready") {
      this.ready.push(vm);
      this.put(now, []);
    } else if (kind === "vm-lost") {
      this.lost(now, vm);
    } else if (kind === "vm-hibernated") {
      this.decide("terminate", { vm });
      this.lost(now, vm);
    } else if (kind === "launch-refused") {
      this.replace(now, this.places[vm]);
    } else if (kind === "task-finished") {
      this.left(vm, task);
      this.put(now, []);
    } else if (kind === "task-failed") {
      this.left(vm, task);
      this.put(now, [task]);
    } else if (kind === "rejected") {
      console.error(`rejected at ${now}: ${JSON.stringify(notice)}`);
    }
  }
}

let bag;
for await (const line of createInterface({ input: process.stdin })) {
  const { hello, now, notices } = JSON.parse(line);
  if (hello) {
    bag = new Bag(hello);
    write({ hello: { protocol: 1 } });
    continue;
  }
  notices.forEach((notice) => bag.hear(now, notice));
  write({ decisions: bag.decisions.splice(0) });
}
