//! Mistakes in experiment files: each is told with the file, line and column of its key, and what it is.

use std::fs;
use std::process::Command;

use dormouse_tests::{BAG, dormouse, refused, run_in};
use serde_json::Value;

/// A good experiment of parallel jobs.
const JOBS: &str = r#"name = "jobs"
seed = 1
[workload]
kind = "jobs"
processors = 4
job = [
  { submitted = "0s", processes = 2, runtime = "60s", usage = 0.5 },
  { submitted = "5s", processes = 4, runtime = "60s", estimate = "90s" },
]
[scheduler]
name = "easy"
"#;

/// A case: a text in a valid experiment, its replacement, the place of the mistake, and the words of the error.
type Case = (&'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const BAGS: &[Case] = &[
    ("name = \"good\"", "name = 3", "bad.toml:1:1: name", "3 is not a text"),
    ("name = \"good\"", "name = \"\"", "bad.toml:1:1: name", "'' is not fit for a folder"),
    ("seed = 1", "seed = 1.5", "bad.toml:2:1: seed", "1.5 is not a whole number"),
    ("seed = 1", "seed = true", "bad.toml:2:1: seed", "true is not a whole number"),
    ("seed = 1", "sed = 1", "bad.toml:2:1: sed", "there is no key 'sed' here"),
    ("seed = 1", "description = 5", "bad.toml:2:1: description", "5 is not a text"),
    ("[cloud]", "cloud = 3\n[x]", "bad.toml:3:1: cloud", "3 is not a table"),
    ("[scheduler]", "[[scheduler]]", "bad.toml:13:3: scheduler", "a list is not a table"),
    ("[workload]\n", "[workload]\ncolour = 4\n", "bad.toml:6:1: workload.colour", "there is no key 'colour' here"),
    ("[workload]\n", "[workload]\nnoise = 0.1\n", "bad.toml:6:1: workload.noise", "0.1 is not a table"),
    ("[workload]\n", "[workload]\nnoise = {}\n", "bad.toml:6:1: workload.noise", "it needs one law of chance"),
    ("[workload]\n", "[workload]\nnoise = { lognormal = 0.1, uniform = 0.1 }\n", "bad.toml:6:1: workload.noise", "it needs one law of chance"),
    ("[workload]\n", "[workload]\nnoise = { uniform = 1 }\n", "bad.toml:6:11: workload.noise.uniform", "1 is out of range"),
    ("[workload]\n", "[workload]\nnoise = { normal = 0.1 }\n", "bad.toml:6:11: workload.noise.normal", "there is no key 'normal' here"),
    ("[cloud]", "[[cloud]]", "bad.toml:3:3: cloud", "a list is not a table"),
    ("[scheduler]", "[sharing]\nloss = [0, 1]\n[scheduler]", "bad.toml:13:2: sharing", "a bag of tasks has no machine whose processors"),
    ("[scheduler]", "[extra]\n[scheduler]", "bad.toml:13:2: extra", "there is no key 'extra' here"),
    ("catalogue = \"ec2-2020\"", "catalogue = 5", "bad.toml:4:1: cloud.catalogue", "5 is not a text"),
    ("catalogue = \"ec2-2020\"", "", "bad.toml:3:2: cloud", "neither a catalogue nor a type is given"),
    ("ec2-2020\"", "ec2-2020\"\nboot = 180", "bad.toml:5:1: cloud.boot", "180 is not a length of time"),
    ("ec2-2020\"", "ec2-2020\"\nboot = \"3 minutes\"", "bad.toml:5:1: cloud.boot", "'3 minutes' is not a length of time (its unit"),
    ("ec2-2020\"", "ec2-2020\"\nhibernation = \"x\"", "bad.toml:5:1: cloud.hibernation", "'x' is not a length of time (its unit is not one of"),
    ("ec2-2020\"", "ec2-2020\"\nlimits = { spot = -1 }", "bad.toml:5:12: cloud.limits.spot", "-1 is out of range"),
    ("ec2-2020\"", "ec2-2020\"\nlimits = { on_demand = 1 }", "bad.toml:5:12: cloud.limits.on_demand", "there is no key 'on_demand' here"),
    ("ec2-2020\"", "ec2-2020\"\nlimits = 3", "bad.toml:5:1: cloud.limits", "3 is not a table"),
    ("ec2-2020\"", "ec2-2020\"\nspot = \"background\"", "bad.toml:5:1: cloud.spot", "spot VMs run in the background of processors,"),
    ("ec2-2020\"", "ec2-2020\"\nspot = \"foreground\"", "bad.toml:5:1: cloud.spot", "there is no spot 'foreground'"),
    ("ec2-2020\"", "ec2-2020\"\nplacement = \"packk\"", "bad.toml:5:1: cloud.placement", "there is no placement 'packk'"),
    ("ec2-2020\"", "ec2-2020\"\nplacement = { scheduler = \"rety\" }", "bad.toml:5:15: cloud.placement.scheduler", "there is no scheduler 'rety'"),
    ("ec2-2020\"", "ec2-2020\"\nhosts = 3", "bad.toml:5:1: cloud.hosts", "3 is not a list"),
    ("ec2-2020\"", "ec2-2020\"\nhosts = [{ vcpu = 4 }]", "bad.toml:5:12: cloud.hosts.0.vcpu", "there is no key 'vcpu' here"),
    ("ec2-2020\"", "ec2-2020\"\nhosts = [{ vcpus = 4, memory = 8 }]", "bad.toml:5:23: cloud.hosts.0.memory", "8 is not an amount of memory"),
    ("ec2-2020\"", "ec2-2020\"\nhosts = [{ vcpus = 0 }]", "bad.toml:5:12: cloud.hosts.0.vcpus", "0 is out of range"),
    ("ec2-2020\"", "ec2-2020\"\nhosts = [3]", "bad.toml:5:10: cloud.hosts.0", "3 is not a table"),
    ("ec2-2020\"", "ec2-2020\"\ntariff = 3", "bad.toml:5:1: cloud.tariff", "3 is not a text"),
    ("ec2-2020\"", "ec2-2020\"\npreemption-notice = \"-2m\"", "bad.toml:5:1: cloud.preemption-notice", "'-2m' is not a length of time (it is negative)"),
    ("ec2-2020\"", "ec2-2020\"\nprices = { \"c3.lrage\" = \"p.csv\" }", "bad.toml:5:12: cloud.prices.c3.lrage", "there is no spot type 'c3.lrage'"),
    ("ec2-2020\"", "ec2-2020\"\nprices = { \"c3.large\" = 3 }", "bad.toml:5:12: cloud.prices.c3.large", "3 is not a text"),
    ("ec2-2020\"", "ec2-2020\"\nprices = { \"c3.large\" = [] }", "bad.toml:5:12: cloud.prices.c3.large", "it has no prices; write rows"),
    ("ec2-2020\"", "ec2-2020\"\nprices = { \"c3.large\" = [[\"0s\", -1]] }", "bad.toml:5:33: cloud.prices.c3.large.0.1", "-1 is not a price"),
    ("ec2-2020\"", "ec2-2020\"\nprices = { \"c3.large\" = { file = \"p.csv\", start = 3 } }", "bad.toml:5:43: cloud.prices.c3.large.start", "3 is not a length of time"),
    ("catalogue = \"ec2-2020\"", "type = [{ name = \"x\", vcpus = 2, memory = \"1 GiB\", on-demand = \"1\" }]", "bad.toml:4:52: cloud.type.0.on-demand", "'1' is not a number"),
    ("catalogue = \"ec2-2020\"", "type = [{ vcpus = 2, memory = \"1 GiB\", on-demand = 1 }]", "bad.toml:4:9: cloud.type.0", "'name' is missing"),
    ("catalogue = \"ec2-2020\"", "type = [{ name = \"x\", memory = \"1 GiB\", on-demand = 1 }]", "bad.toml:4:9: cloud.type.0", "'vcpus' is missing"),
    ("catalogue = \"ec2-2020\"", "type = [{ name = \"x\", vcpus = 2, on-demand = 1 }]", "bad.toml:4:9: cloud.type.0", "'memory' is missing"),
    ("catalogue = \"ec2-2020\"", "type = [{ name = \"x\", vcpus = 5000, memory = \"1 GiB\", spot = 1 }]", "bad.toml:4:23: cloud.type.0.vcpus", "5000 is out of range"),
    ("catalogue = \"ec2-2020\"", "type = [{ name = \"x\", vcpus = 2, memory = \"1 GiB\", spot = 1, burstable = { baseline = 2, credits-per-hour = 1 } }]", "bad.toml:4:76: cloud.type.0.burstable.baseline", "2 is out of range"),
    ("catalogue = \"ec2-2020\"", "type = [{ name = \"x\", vcpus = 2, memory = \"1 GiB\", spot = 1, burstable = { baseline = 0.2 } }]", "bad.toml:4:62: cloud.type.0.burstable", "'credits-per-hour' is missing"),
    ("catalogue = \"ec2-2020\"", "type = [{ name = \"x\", vcpus = 2, memory = \"1 GiB\", spot = 1, gflops = 0 }]", "bad.toml:4:62: cloud.type.0.gflops", "0 is out of range"),
    ("kind = \"bag\"", "kind = \"bags\"", "bad.toml:6:1: workload.kind", "there is no kind 'bags'"),
    ("kind = \"bag\"", "kind = 3", "bad.toml:6:1: workload.kind", "3 is not a text"),
    ("kind = \"bag\"", "kind = \"bag\"\nlog = \"x.swf\"", "bad.toml:7:1: workload.log", "'log' is of kind = \"swf\", which is not this one"),
    ("kind = \"bag\"", "kind = \"bag\"\nprocessors = 4", "bad.toml:7:1: workload.processors", "'processors' is of kind = \"swf\" or \"model\" or"),
    ("deadline = \"45m\"", "deadline = \"soon\"", "bad.toml:7:1: workload.deadline", "'soon' is not a length of time (its unit is"),
    ("deadline = \"45m\"", "deadline = \"0s\"", "bad.toml:7:1: workload.deadline", "'0s' is too little"),
    ("deadline = \"45m\"", "deadine = \"45m\"", "bad.toml:7:1: workload.deadine", "there is no key 'deadine' here"),
    ("deadline = \"45m\"\n", "", "bad.toml:5:2: workload", "'deadline' is missing"),
    ("deadline = \"45m\"", "deadline = [\"45m\"]", "bad.toml:7:1: workload.deadline", "a list is not a length of time"),
    ("count = 4", "count = \"4\"", "bad.toml:10:1: workload.task.0.count", "'4' is not a whole number"),
    ("memory = \"10 MB\"", "memory = 10", "bad.toml:11:1: workload.task.0.memory", "10 is not an amount of memory"),
    ("memory = \"10 MB\"", "memory = \"-10 MB\"", "bad.toml:11:1: workload.task.0.memory", "'-10 MB' is not an amount of memory (it is"),
    ("memory = \"10 MB\"", "memory = \"10\"", "bad.toml:11:1: workload.task.0.memory", "'10' is not an amount of memory (its unit is missing"),
    ("runtime = \"200s\"", "runtime = 200", "bad.toml:12:1: workload.task.0.runtime", "200 is not a length of time"),
    ("runtime = \"200s\"", "runtime = \"0s\"", "bad.toml:12:1: workload.task.0.runtime", "'0s' is too little"),
    ("runtime = \"200s\"", "runtime = { \"c3.large\" = 200 }", "bad.toml:12:13: workload.task.0.runtime.c3.large", "200 is not a length of time"),
    ("runtime = \"200s\"", "runtime = { \"c3.large\" = \"0s\" }", "bad.toml:12:13: workload.task.0.runtime.c3.large", "'0s' is too little"),
    ("runtime = \"200s\"", "runtime = { \"m5.large\" = \"200s\" }", "bad.toml:12:13: workload.task.0.runtime.m5.large", "there is no instance type 'm5.large'"),
    ("runtime = \"200s\"", "", "bad.toml:8:1: workload.task.0", "'runtime' is missing"),
    ("name = \"small\"", "name = 4", "bad.toml:9:1: workload.task.0.name", "4 is not a text"),
    ("[[workload.task]]", "[workload.task]", "bad.toml:8:11: workload.task", "a table is not a list"),
    ("deadline = \"45m\"", "job = \"none.json\"\ndeadline = \"45m\"", "bad.toml:5:2: workload", "more than one of name, job, workflow, task and tasks is given"),
    ("name = \"burst-hads\"", "name = \"easy\"", "bad.toml:14:1: scheduler.name", "easy schedules parallel jobs, and this is a bag"),
    ("name = \"burst-hads\"", "name = 3", "bad.toml:14:1: scheduler.name", "3 is not a text"),
    ("name = \"burst-hads\"", "alpha = \"x\"", "bad.toml:14:1: scheduler.alpha", "'x' is not a number"),
    ("name = \"burst-hads\"", "alpha = -0.1", "bad.toml:14:1: scheduler.alpha", "-0.1 is out of range"),
    ("name = \"burst-hads\"", "max-iteration = -1", "bad.toml:14:1: scheduler.max-iteration", "-1 is out of range"),
    ("name = \"burst-hads\"", "max-iteration = 0.5", "bad.toml:14:1: scheduler.max-iteration", "0.5 is not a whole number"),
    ("name = \"burst-hads\"", "allocation-cycle = \"0s\"", "bad.toml:14:1: scheduler.allocation-cycle", "'0s' is too little"),
    ("name = \"burst-hads\"", "steal = \"never\"", "bad.toml:14:1: scheduler.steal", "there is no steal 'never'"),
    ("name = \"burst-hads\"", "steal = 1", "bad.toml:14:1: scheduler.steal", "1 is not a text"),
    ("name = \"burst-hads\"", "preset = \"papr\"", "bad.toml:14:1: scheduler.preset", "there is no preset 'papr'"),
    ("name = \"burst-hads\"", "max-failures = 0", "bad.toml:14:1: scheduler.max-failures", "0 is out of range"),
    ("name = \"burst-hads\"", "restore = \"5\"", "bad.toml:14:1: scheduler.restore", "'5' is not a length of time (the unit of a number is missing"),
    ("name = \"burst-hads\"", "migration-cost = \"20s\"", "bad.toml:14:1: scheduler.migration-cost", "'migration-cost' is of name = \"fcfs\" or \"easy\""),
    ("name = \"burst-hads\"", "spot-limit = \"shortest\"", "bad.toml:14:1: scheduler.spot-limit", "there is no spot-limit 'shortest'"),
    ("name = \"burst-hads\"", "name = \"fifo\"", "bad.toml:13:2: scheduler", "'fleet' is missing"),
    ("name = \"burst-hads\"", "name = \"fifo\"\nfleet = []", "bad.toml:13:2: scheduler", "'fleet' is missing"),
    ("name = \"burst-hads\"", "name = \"fifo\"\nfleet = [{ type = \"c3.lrage\", market = \"spot\" }]", "bad.toml:15:12: scheduler.fleet.0.type", "there is no instance type 'c3.lrage'"),
    ("name = \"burst-hads\"", "name = \"fifo\"\nfleet = [{ type = \"c3.large\", market = \"spot\", count = 0 }]", "bad.toml:15:48: scheduler.fleet.0.count", "0 is out of range"),
    ("name = \"burst-hads\"", "name = \"fifo\"\nfleet = [{ type = \"c3.large\" }]", "bad.toml:15:10: scheduler.fleet.0", "'market' is missing"),
    ("name = \"burst-hads\"", "name = \"fifo\"\nfleet = \"c3.large\"", "bad.toml:15:1: scheduler.fleet", "'c3.large' is not a list"),
    ("name = \"burst-hads\"", "plan = \"x.json\"", "bad.toml:14:1: scheduler.plan", "there is no key 'plan' here"),
    ("name = \"burst-hads\"", "own = 1", "bad.toml:14:1: scheduler.own", "there is no key 'own' here"),
    ("[scheduler]\n", "[[interruption]]\n[scheduler]\n", "bad.toml:13:1: interruption.0", "'model' is missing"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"poisson\"\n[scheduler]\n", "bad.toml:13:1: interruption.0", "it interrupts nothing"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"poisson\"\nk-hibernate = 1\nhibernate-every = \"10m\"\n[scheduler]\n", "bad.toml:15:1: interruption.0.k-hibernate", "both k-hibernate and hibernate-every are given"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"poisson\"\nhibernate-every = \"0s\"\n[scheduler]\n", "bad.toml:15:1: interruption.0.hibernate-every", "'0s' is too little"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"poisson\"\nk-hibernate = 5\nmean = \"1h\"\n[scheduler]\n", "bad.toml:16:1: interruption.0.mean", "'mean' is of model = \"lifetime\", which is not"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"poisson\"\nk-hibernate = 5\nscope = \"host\"\n[scheduler]\n", "bad.toml:16:1: interruption.0.scope", "there is no scope 'host'"),
    ("[scheduler]\n", "[interruption]\nmodel = \"poisson\"\nk-hibernate = 5\n[scheduler]\n", "bad.toml:13:2: interruption", "a table is not a list"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"schedule\"\n[scheduler]\n", "bad.toml:13:1: interruption.0", "nothing happens in it"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"schedule\"\nacts = []\n[scheduler]\n", "bad.toml:13:1: interruption.0", "nothing happens in it"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"schedule\"\nacts = [{ at = \"1m\", action = \"hibernate\" }]\n[scheduler]\n", "bad.toml:15:9: interruption.0.acts.0", "it needs either a type or a vm"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"schedule\"\nacts = [{ at = \"1m\", action = \"freeze\", vm = 0 }]\n[scheduler]\n", "bad.toml:15:22: interruption.0.acts.0.action", "there is no action 'freeze'"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"schedule\"\nacts = [{ action = \"resume\", vm = 0 }]\n[scheduler]\n", "bad.toml:15:9: interruption.0.acts.0", "'at' is missing"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"schedule\"\nacts = [{ at = \"1m\", action = \"resume\", vm = 0, type = \"c3.large\" }]\n[scheduler]\n", "bad.toml:15:9: interruption.0.acts.0", "it needs either a type or a vm"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"schedule\"\nacts = [{ at = \"1m\", action = \"resume\", vm = 9999 }]\n[scheduler]\n", "bad.toml:15:41: interruption.0.acts.0.vm", "there is no VM 9999: this experiment launches"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"schedule\"\nacts = [{ at = \"1m\", action = \"resume\", vm = -1 }]\n[scheduler]\n", "bad.toml:15:41: interruption.0.acts.0.vm", "-1 is out of range"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"schedule\"\nacts = [{ at = \"1m\", action = \"resume\", type = \"t3.large\" }]\n[scheduler]\n", "bad.toml:15:41: interruption.0.acts.0.type", "there is no spot type 't3.large'"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"lifetime\"\nmean = \"6h\"\nrecorded = [\"1h\"]\n[scheduler]\n", "bad.toml:13:1: interruption.0", "it needs one law of lifetimes"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"lifetime\"\nrecorded = [3]\n[scheduler]\n", "bad.toml:15:13: interruption.0.recorded.0", "3 is not a length of time"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"lifetime\"\nmean = \"6h\"\ntype = \"c9\"\n[scheduler]\n", "bad.toml:16:1: interruption.0.type", "there is no spot type 'c9'"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"lifetime\"\nbathtub = { a = 0.4, b = \"24h\", tau1 = \"1h\" }\n[scheduler]\n", "bad.toml:15:1: interruption.0.bathtub", "'tau2' is missing"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"lifetime\"\nbathtub = { a = 0, b = \"24h\", tau1 = \"1h\", tau2 = \"1h\" }\n[scheduler]\n", "bad.toml:15:13: interruption.0.bathtub.a", "0 is out of range"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"lifetime\"\nbathtub = { a = 0.4, b = \"24h\", tau1 = \"0s\", tau2 = \"1h\" }\n[scheduler]\n", "bad.toml:15:33: interruption.0.bathtub.tau1", "'0s' is too little"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"lifetime\"\nweibull = { scale = \"1h\", shape = \"1\" }\n[scheduler]\n", "bad.toml:15:27: interruption.0.weibull.shape", "'1' is not a number"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"lifetime\"\ngompertz-makeham = { b = \"24h\", tau2 = \"-1h\" }\n[scheduler]\n", "bad.toml:15:33: interruption.0.gompertz-makeham.tau2", "'-1h' is not a length of time"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"lifetime\"\nuniform = { from = \"2h\", to = \"1h\" }\n[scheduler]\n", "bad.toml:15:26: interruption.0.uniform.to", "it ends at 1h, before it begins"),
    ("[scheduler]\n", "[[interruption]]\nmodel = \"lifetime\"\nuniform = { to = \"1h\" }
mean = \"1h\"\n[scheduler]\n", "bad.toml:13:1: interruption.0", "it needs one law of lifetimes"),
    ("[scheduler]\n", "[checkpoint]\npolicy = \"budge\"\n[scheduler]\n", "bad.toml:14:1: checkpoint.policy", "there is no policy 'budge'"),
    ("[scheduler]\n", "[checkpoint]\noverhead = -1\n[scheduler]\n", "bad.toml:14:1: checkpoint.overhead", "-1 is out of range"),
    ("[scheduler]\n", "[checkpoint]\npolicy = \"every\"\n[scheduler]\n", "bad.toml:13:2: checkpoint", "'period' is missing"),
    ("[scheduler]\n", "[checkpoint]\nperiod = \"10m\"\n[scheduler]\n", "bad.toml:14:1: checkpoint.period", "'period' is of policy \"every\", which is not"),
    ("[scheduler]\n", "[checkpoint]\npolicy = \"points\"\npoints = [0.5, 0.25]\n[scheduler]\n", "bad.toml:15:16: checkpoint.points.1", "0.25 does not come after the one before it"),
    ("[scheduler]\n", "[checkpoint]\npolicy = \"points\"\npoints = 0.5\n[scheduler]\n", "bad.toml:15:1: checkpoint.points", "0.5 is not a list"),
    ("[scheduler]\n", "[checkpoint]\non = \"none\"\n[scheduler]\n", "bad.toml:14:1: checkpoint.on", "there is no on 'none'"),
    ("[scheduler]\n", "[checkpoint]\nfixed = \"1us\"\n[scheduler]\n", "bad.toml:14:1: checkpoint.fixed", "'1us' is too little"),
    ("[scheduler]\n", "[live]\nspeedup = 0\n[scheduler]\n", "bad.toml:14:1: live.speedup", "0 is out of range"),
    ("[scheduler]\n", "[live]\nworkers = 0\n[scheduler]\n", "bad.toml:14:1: live.workers", "0 is out of range"),
    ("[scheduler]\n", "[live]\nopen = \"yes\"\n[scheduler]\n", "bad.toml:14:1: live.open", "'yes' is neither true nor false"),
    ("[scheduler]\n", "[live]\nreserve = 1\n[scheduler]\n", "bad.toml:14:1: live.reserve", "1 is out of range"),
    ("[scheduler]\n", "[live]\ntasks = \"vector\"\n[scheduler]\n", "bad.toml:14:1: live.tasks", "'vector' is not a table"),
    ("[scheduler]\n", "[live]\ntasks = { kind = \"vecotr\" }\n[scheduler]\n", "bad.toml:14:11: live.tasks.kind", "there is no kind 'vecotr'"),
    ("[scheduler]\n", "[live]\ntasks = { kind = \"ep\" }\n[scheduler]\n", "bad.toml:14:1: live.tasks", "'class' is missing"),
    ("[scheduler]\n", "[live]\nlost-after = 5\n[scheduler]\n", "bad.toml:14:1: live.lost-after", "5 is not a length of time"),
    ("[scheduler]\n", "[live]\nhibernate = \"dump\"\n[scheduler]\n", "bad.toml:14:1: live.hibernate", "there is no hibernate 'dump'"),
    ("[scheduler]\n", "[live]\ncriu = true\n[scheduler]\n", "bad.toml:14:1: live.criu", "there is no key 'criu' here"),
];

/// Mistakes about the user's own programs, in the valid experiment with other tasks.
#[rustfmt::skip]
const OWN: &[Case] = &[
    ("count = 4", "count = 4\neach = \"*.csv\"", "bad.toml:11:1: workload.task.0.each", "'each' is of a program of yours, and this task has no command"),
    ("count = 4", "count = 4\ncommand = [\"./solve\"]", "bad.toml:11:12: workload.task.0.command.0", "there is no file ./solve in"),
    ("count = 4", "count = 4\ncommand = []", "bad.toml:11:1: workload.task.0.command", "there are 0 in it"),
    ("count = 4", "count = 4\ncommand = \"solve\"", "bad.toml:11:1: workload.task.0.command", "'solve' is not a list"),
    ("count = 4", "command = [\"sort\"]\neach = \"*.csv\"", "bad.toml:11:1: workload.task.0.each", "'*.csv' names no file"),
    ("count = 4", "command = [\"sort\", \"{input}\"]", "bad.toml:10:20: workload.task.0.command.1", "{input} has no meaning here"),
    ("count = 4", "command = [\"sort\"]\nsaves = \"cruise\"", "bad.toml:11:1: workload.task.0.saves", "there is no saves 'cruise'"),
    ("count = 4", "command = [\"sort\"]\nsaves = { by = \"notice\", sginal = \"SIGUSR1\" }", "bad.toml:11:26: workload.task.0.saves.sginal", "there is no key 'sginal' here"),
    ("count = 4", "command = [\"sort\"]\nthreads = 0", "bad.toml:11:1: workload.task.0.threads", "0 is out of range"),
    ("count = 4", "command = [\"sort\"]\nverify = 3", "bad.toml:11:1: workload.task.0.verify", "3 "),
    ("count = 4", "command = [\"sort\"]\ndirectory = \"0 B\"", "bad.toml:11:1: workload.task.0.directory", "'0 B' is too little"),
    ("count = 4", "command = [\"sort\"]\ninputs = [\"/etc/passwd\"]", "bad.toml:11:11: workload.task.0.inputs.0", "/etc/passwd is outside of the experiment's folder; copy it there, or allow it with --allow-inputs /etc"),
    ("runtime = \"200s\"", "runtime = \"unknown\"", "bad.toml:12:1: workload.task.0.runtime", "only of a program of yours can the runtime be unknown"),
    ("runtime = \"200s\"", "runtime = \"measured\"\ncommand = [\"sort\"]", "bad.toml:5:2: workload", "a task's runtime is `measured`, but no file of measured times is given"),
    ("runtime = \"200s\"", "runtime = \"unknown\"\ncommand = [\"sort\"]", "bad.toml:14:2: scheduler", "burst-hads plans by how long tasks take, and task small-0 has no run time"),
    ("kind = \"bag\"", "kind = \"bag\"\ntasks = \"bag.csv\"", "bad.toml:5:2: workload", "more than one of name, job, workflow, task and tasks is given"),
    ("kind = \"bag\"", "kind = \"bag\"\nprogram = { command = [\"sort\"] }", "bad.toml:7:1: workload.program", "it is of a bag that has a name or is of another file"),
    ("[scheduler]\n", "[checkpoint]\nnever = true\n[scheduler]\n", "bad.toml:14:1: checkpoint.never", "nothing can be kept, and checkpoints are asked for"),
];

#[rustfmt::skip]
const PARALLEL: &[Case] = &[
    ("processors = 4\n", "", "bad.toml:3:2: workload", "'processors' is missing"),
    ("processors = 4", "processors = 0", "bad.toml:5:1: workload.processors", "0 is out of range"),
    ("processors = 4", "processors = 3", "bad.toml:8:23: workload.job.1.processes", "4 is out of range"),
    ("processors = 4", "processors = \"4\"", "bad.toml:5:1: workload.processors", "'4' is not a whole number"),
    ("\"5s\"", "\"-5s\"", "bad.toml:8:5: workload.job.1.submitted", "'-5s' is not a length of time (it is negative)"),
    ("submitted = \"0s\"", "submitted = \"9s\"", "bad.toml:8:5: workload.job.1.submitted", "5s is before the job above it was submitted"),
    ("processes = 2", "processes = 0", "bad.toml:7:23: workload.job.0.processes", "0 is out of range"),
    ("processes = 2", "proceses = 2", "bad.toml:7:23: workload.job.0.proceses", "there is no key 'proceses' here"),
    ("runtime = \"60s\", usage", "usage", "bad.toml:7:3: workload.job.0", "'runtime' is missing"),
    ("usage = 0.5", "usage = 2", "bad.toml:7:55: workload.job.0.usage", "2 is out of range"),
    ("usage = 0.5", "memory = \"1 GiB\"", "bad.toml:3:2: workload.memory-per-processor", "jobs want up to 1 GiB for each process, but"),
    ("kind = \"jobs\"", "kind = \"swf\"", "bad.toml:3:2: workload", "'log' is missing"),
    ("kind = \"jobs\"", "kind = \"jobs\"\nlog = \"x\"", "bad.toml:5:1: workload.log", "'log' is of kind = \"swf\", which is not this one"),
    ("processors = 4", "processors = 4\nload = 0", "bad.toml:6:1: workload.load", "0 is out of range"),
    ("processors = 4", "processors = 4\nmemory-per-processor = \"0 B\"", "bad.toml:6:1: workload.memory-per-processor", "'0 B' is too little"),
    ("name = \"easy\"", "name = \"hads\"", "bad.toml:11:1: scheduler.name", "hads schedules a bag of tasks, and these are"),
    ("name = \"easy\"", "name = \"eazy\"", "bad.toml:11:1: scheduler.name", "there is no scheduler 'eazy'"),
    ("name = \"easy\"\n", "", "bad.toml:10:2: scheduler", "'name' is missing"),
    ("[scheduler]\nname = \"easy\"\n", "", "bad.toml", "'scheduler' is missing"),
    ("name = \"easy\"", "name = \"easy\"\nalpha = 0.5", "bad.toml:12:1: scheduler.alpha", "'alpha' is of name = \"burst-hads\" or \"hads\" or"),
    ("name = \"easy\"", "name = \"easy\"\nmigration-cost = 20", "bad.toml:12:1: scheduler.migration-cost", "20 is not a length of time"),
    ("name = \"easy\"", "name = \"easy\"\nusage-information = \"none\"", "bad.toml:12:1: scheduler.usage-information", "there is no usage-information 'none'"),
    ("[scheduler]", "[checkpoint]\non = \"all\"\n[scheduler]", "bad.toml:11:1: checkpoint.on", "the machine of parallel jobs is on demand, and"),
    ("[scheduler]", "[cloud]\ncatalogue = \"ec2-2020\"\n[scheduler]", "bad.toml:10:2: cloud", "this applies to VMs, but parallel jobs alone have a machine of their"),
    ("[scheduler]", "[sharing]\nloss = [0.5, 0.1]\n[scheduler]", "bad.toml:11:1: sharing.loss", "0.5 is above 0.1"),
    ("[scheduler]", "[sharing]\nloss = [0.1]\n[scheduler]", "bad.toml:11:1: sharing.loss", "there are 1 in it"),
    ("[scheduler]", "[sharing]\nloss = 0.1\n[scheduler]", "bad.toml:11:1: sharing.loss", "0.1 is not a list"),
    ("[scheduler]", "[sharing]\nsingle = [0.1, 2]\n[scheduler]", "bad.toml:11:16: sharing.single.1", "2 is out of range"),
    ("[scheduler]", "[sharing]\nmeasured = \"none.json\"\n[scheduler]", "bad.toml:11:1: sharing.measured", "can't read none.json: No such file or directory"),
];

/// The error for an experiment, checked to have left nothing behind.
fn said(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.toml"), text).unwrap();
    let output =
        Command::new(dormouse()).args(["run", "bad.toml"]).current_dir(folder.path()).output();
    let output = output.unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}\n{error}");
    assert!(output.stdout.is_empty(), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something was left behind");
    error
}

fn each_is_told(good: &str, cases: &[Case]) {
    for (from, to, place, words) in cases {
        assert!(good.contains(from), "'{from}' is not in the good experiment");
        let error = said(&good.replacen(from, to, 1));
        let line = format!("dormouse: {place}: {words}");
        assert!(error.lines().any(|one| one.starts_with(&line)), "{to}\n{line}\n{error}");
    }
}

#[test]
fn mistakes_in_an_experiment_with_a_bag() {
    each_is_told(BAG, BAGS);
}

#[test]
fn mistakes_in_tasks_that_run_programs_of_the_user_s_own() {
    each_is_told(BAG, OWN);
}

#[test]
fn mistakes_in_an_experiment_of_parallel_jobs() {
    each_is_told(JOBS, PARALLEL);
}

#[test]
fn all_mistakes_of_a_file_are_told_at_once_in_the_order_of_their_places() {
    let text = BAG
        .replace("seed = 1", "sede = 1")
        .replace("ec2-2020", "ec2-2021")
        .replace("count = 4", "count = 0")
        .replace("\"200s\"", "{ \"c3.lrage\" = 200 }")
        .replace("burst-hads\"", "burst-hads\"\nalpha = 7");
    let error = said(&text);
    let places: Vec<_> = error.lines().map(|line| line.split(' ').nth(1).unwrap()).collect();
    let wanted = ["2:1", "4:1", "10:1", "12:13", "15:1"].map(|at| format!("bad.toml:{at}:"));
    assert_eq!(places, wanted, "{error}");
}

#[test]
fn a_log_is_no_experiment_and_what_to_do_is_said() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("my.swf"), "; MaxProcs: 4\n").unwrap();
    let mut command = Command::new(dormouse());
    let output = command.args(["run", "my.swf"]).current_dir(folder.path()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("--set workload.log=my.swf"), "{error}");
}

/// Every command that reads an experiment refuses files that its text names outside its folder, directly or by a link,
/// unless the user allows their folder; files that the user names are not restricted.
#[test]
fn an_experiment_of_a_stranger_names_files_in_its_own_folder() {
    let folder = tempfile::tempdir().unwrap();
    let exp = folder.path().join("exp");
    fs::create_dir(&exp).unwrap();
    fs::write(folder.path().join("secret"), "of whoever runs it").unwrap();
    std::os::unix::fs::symlink("../secret", exp.join("link")).unwrap();
    for (n, input) in ["../secret", "link", "./../exp/../sec*"].into_iter().enumerate() {
        let task = format!("command = [\"sort\"]\ninputs = [{input:?}]");
        fs::write(exp.join(format!("{n}.toml")), BAG.replace("count = 4", &task)).unwrap();
    }
    let of_run = |n: &str, command: &[&str], allowed: bool| {
        let mut words: Vec<&str> = command.to_vec();
        words.push(n);
        words.extend(if allowed { &["--allow-inputs", ".."][..] } else { &[] });
        words.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let commands: [&[&str]; 6] = [
        &["run"],
        &["coordinator"],
        &["sweep", "--seeds", "1", "--out", "swept"],
        &["compare", "--schedulers", "hads,burst-hads", "--seeds", "1", "--on"],
        &["measure"],
        &["show", "--json"],
    ];
    for command in commands {
        for n in ["0.toml", "1.toml", "2.toml"] {
            let words = of_run(n, command, false);
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            refused(&exp, &words, 2, &["outside of the experiment's folder", "--allow-inputs /"]);
        }
    }
    for (command, n) in [(commands[0], "0.toml"), (commands[2], "1.toml"), (commands[5], "2.toml")]
    {
        let words = of_run(n, command, true);
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let output = run_in(&exp, &words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let own = ["run", "--on", "j60-sc2", "--runtime", "5m", "--input", "../secret", "--", "sort"];
    let output = run_in(&exp, &own);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let nowhere = ["run", "0.toml", "--allow-inputs", "nowhere"];
    refused(&exp, &nowhere, 2, &["--allow-inputs nowhere: there is no such folder"]);
}

/// A catalogue without prices: those that are given beside it are had, and the rest is left out, which is said.
#[test]
fn a_catalogue_without_prices_takes_those_of_the_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let types = r#"[{"name": "n1-standard-2", "guestCpus": 2, "memoryMb": 7680, "zone": "us-central1-a"},
        {"name": "n1-standard-2", "guestCpus": 2, "memoryMb": 7680, "zone": "us-central1-b"},
        {"name": "e2-micro", "guestCpus": 2, "memoryMb": 1024, "zone": "us-central1-a"}]"#;
    fs::write(at.join("types.json"), types).unwrap();
    let text = r#"name = "priced"
[cloud]
catalogue = "types.json"
type-prices = { "n1-standard-2" = { on-demand = 0.1, spot = 0.03 }, "n1-standard-2@us-central1-b" = { spot = 0.02 } }
[workload]
deadline = "9h"
task = [{ runtime = "1h", count = 2 }]
[checkpoint]
policy = "none"
[scheduler]
name = "fifo"
fleet = [{ type = "n1-standard-2@us-central1-a", market = "spot" }]
"#;
    fs::write(at.join("x.toml"), text).unwrap();
    let output = run_in(at, &["run", "x.toml", "--json", "--out", "out"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("types of the catalogue left out, as they have no price: 1"), "{said}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!((summary["cost_usd"].as_f64().unwrap() - 0.03).abs() < 1e-9, "{summary}");
    let shown = run_in(at, &["show", "x.toml", "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let types = &shown["setup"]["catalogue"]["types"];
    assert_eq!(types["n1-standard-2@us-central1-b"]["spot"], 20_000_000, "{types}");
    assert!(
        types["n1-standard-2@us-central1-b"]["on_demand"].is_null(),
        "a name with a zone is of it alone"
    );
    let without: String = text
        .lines()
        .filter(|line| !line.starts_with("type-prices"))
        .map(|l| format!("{l}\n"))
        .collect();
    fs::write(at.join("x.toml"), without).unwrap();
    refused(at, &["run", "x.toml"], 2, &["none of its types has a price", "type-prices = {"]);
    fs::write(at.join("x.toml"), text.replace("{ \"n1-standard-2\" =", "{ \"n1-standard-3\" ="))
        .unwrap();
    refused(
        at,
        &["run", "x.toml"],
        2,
        &["cloud.type-prices", "the catalogue has no type 'n1-standard-3'"],
    );
}

/// Rates by hour and day are of the run's dates, or of those that it is given.
#[test]
fn weekly_rates_need_a_date_and_interrupt_in_their_hours_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let hours = "0,0,0,0,0,0,0,0,0,4,4,4,4,4,4,4,4,0,0,0,0,0,0,0";
    let text = |more: &str, cloud: &str| {
        format!(
            r#"name = "weekly"
[cloud]
catalogue = "ec2-2020"
boot = "0s"
{cloud}
[workload]
deadline = "200h"
task = [{{ runtime = {{ "c3.large" = "30h" }} }}]
[checkpoint]
policy = "every"
period = "5m"
fixed = "1s"
[scheduler]
name = "fifo"
fleet = [{{ type = "c3.large", market = "spot" }}]
[[interruption]]
model = "weekly"
hours = [{hours}]
days = [1, 0]
utc-offset = -5
{more}
"#
        )
    };
    // A Friday, 12:00 on that clock: five hours with rates, then none until Monday at 9:00, 64 hours later.
    let begins = "begins = \"2024-02-02 17:00:00\"";
    fs::write(at.join("x.toml"), text(begins, "")).unwrap();
    let taken = |out: &str| -> Vec<f64> {
        let rows = fs::read_to_string(at.join(out).join("vms.csv")).unwrap();
        let ends = rows.lines().filter(|row| row.contains(",preempted,"));
        ends.map(|row| row.split(',').nth(8).unwrap().parse().unwrap()).collect()
    };
    for seed in ["1", "2", "3"] {
        let output =
            run_in(at, &["run", "x.toml", "-q", "--seed", seed, "--out", "out", "--force"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let all = taken("out");
        assert!(all.len() > 3, "{all:?}");
        // Each was told two minutes before.
        assert!(all.iter().all(|at| *at <= 5.0 * 3_600.0 + 120.0), "{all:?}");
    }
    // Of prices with dates the date is theirs, whatever the seed draws.
    fs::write(at.join("p.csv"), "2024-02-02 17:00:00,0.03\n2024-03-02 17:00:00,0.03\n").unwrap();
    fs::write(at.join("x.toml"), text("", "prices = { \"c3.large\" = \"p.csv\" }")).unwrap();
    let output = run_in(at, &["run", "x.toml", "-q", "--seed", "3", "--out", "priced"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(taken("priced"), taken("out"));
    for (more, cloud, words) in [
        ("", "", &["the run has no date", "begins = "][..]),
        ("begins = \"soon\"", "", &["interruption.0.begins", "'soon' is not a date"]),
        (
            "begins = \"2024-02-03 17:00:00\"",
            "prices = { \"c3.large\" = \"p.csv\" }",
            &["the prices of the run begin at 2024-02-02 17:00:00"],
        ),
        ("begins = \"2024-02-02\"\naction = \"resume\"", "", &["interruption.0.action"]),
    ] {
        fs::write(at.join("x.toml"), text(more, cloud)).unwrap();
        refused(at, &["run", "x.toml"], 2, words);
    }
    for (from, to, words) in [
        (hours, "1, 2", &["it has 2 numbers, and a day 24 hours"][..]),
        ("days = [1, 0]", "days = [1, 0, 1]", &["it has 3 numbers", "give 7"]),
        ("days = [1, 0]", "days = [0, 0]", &["nothing is ever interrupted"]),
        ("days = [1, 0]", "days = [900, 0]", &["3600 interruptions an hour are too many"]),
    ] {
        fs::write(at.join("x.toml"), text(begins, "").replace(from, to)).unwrap();
        refused(at, &["run", "x.toml"], 2, words);
    }
}
