//! Invalid input gives one clear error: the right exit status, the place named, nothing left behind.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use dormouse_log::{Chain, SEAL, Seal};
use dormouse_tests::{BAG, dormouse, refused, run_in, tree};

/// Writes the valid experiment with one text replaced; returns the file's path.
fn with(folder: &Path, from: &str, to: &str) -> String {
    assert!(BAG.contains(from), "'{from}' is not in the good experiment");
    fs::write(folder.join("bad.toml"), BAG.replacen(from, to, 1)).unwrap();
    "bad.toml".to_owned()
}

#[test]
fn the_good_experiment_is_good() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("good.toml"), BAG).unwrap();
    let output = run_in(folder.path(), &["run", "good.toml"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for file in ["summary.json", "events.jsonl", "tasks.csv", "vms.csv", "gantt.svg", "report.html"]
    {
        assert!(folder.path().join("runs/good-burst-hads-s1").join(file).is_file(), "{file}");
    }
}

#[test]
fn bad_experiment_files() {
    let cases: &[(&str, &str, &[&str])] = &[
        // Syntax.
        ("seed = 1", "seed = ", &["bad.toml:2:"]),
        ("[cloud]", "[cloud", &["bad.toml:3:"]),
        ("seed = 1", "seed = 1\nseed = 2", &["bad.toml:3:1", "duplicate"]),
        ("count = 4", "count = 4\ncount = 5", &["bad.toml:11:1", "duplicate"]),
        // Unknown keys and names.
        ("seed = 1", "sede = 1", &["bad.toml:2:1: sede", "did you mean 'seed'"]),
        ("[scheduler]", "[shceduler]", &["bad.toml:13:", "did you mean 'scheduler'"]),
        ("kind = \"bag\"", "kind = \"bug\"", &["bad.toml:6:1", "did you mean 'bag'"]),
        ("ec2-2020", "ec2-2021", &["bad.toml:4:1: cloud.catalogue", "did you mean 'ec2-2020'"]),
        ("burst-hads", "brust-hads", &["bad.toml:14:1", "did you mean 'burst-hads'"]),
        ("count = 4", "cuont = 4", &["workload.task.0.cuont", "did you mean 'count'"]),
        ("\"200s\"", "{ \"c4.lrage\" = \"200s\" }", &["c4.lrage", "did you mean 'c4.large'"]),
        // Numbers.
        ("seed = 1", "seed = -1", &["bad.toml:2:1: seed", "-1 is out of range"]),
        ("seed = 1", "seed = 99999999999999999999", &["bad.toml:2:1: seed", "too large"]),
        ("seed = 1", "seed = \"one\"", &["seed", "not a whole number"]),
        ("count = 4", "count = 0", &["workload.task.0.count", "0 is out of range"]),
        ("count = 4", "count = 4.5", &["workload.task.0.count", "not a whole number"]),
        ("count = 4", "count = 99999999", &["workload.task.0.count", "out of range"]),
        ("name = \"burst-hads\"", "alpha = nan", &["scheduler.alpha", "not a finite number"]),
        ("name = \"burst-hads\"", "alpha = 1.5", &["scheduler.alpha", "from 0 to 1"]),
        ("name = \"burst-hads\"", "swap-rate = 0", &["scheduler.swap-rate", "out of range"]),
        // Quantities.
        ("\"45m\"", "\"-45m\"", &["workload.deadline", "it is negative"]),
        ("\"45m\"", "\"45\"", &["workload.deadline", "the unit of a number is missing"]),
        ("\"45m\"", "\"0s\"", &["workload.deadline", "above 0"]),
        ("\"45m\"", "45", &["workload.deadline", "write a text with its unit"]),
        ("\"45m\"", "2020-09-01", &["workload.deadline", "a date"]),
        ("\"45m\"", "\"99999999999999d\"", &["workload.deadline", "too large"]),
        ("\"10 MB\"", "\"ten MB\"", &["workload.task.0.memory", "its unit is not one of"]),
        ("\"10 MB\"", "\"10 MX\"", &["workload.task.0.memory", "its unit is not one of"]),
        ("\"200s\"", "\"0s\"", &["workload.task.0.runtime", "above 0"]),
        // Sense.
        ("\"10 MB\"", "\"64 GiB\"", &["bad.toml:5:", "small-0", "64 GiB", "the largest VM"]),
        ("\"45m\"", "\"5m\"", &["bad.toml:5:", "the deadline 5m can't be met"]),
        ("count = 4", "count = 4000", &["can't be met", "raise cloud.limits"]),
        ("\"good\"", "\"../good\"", &["bad.toml:1:", "not fit for a folder"]),
        (
            "kind = \"bag\"",
            "name = \"j60\"",
            &["more than one of name, job, workflow, task and tasks"],
        ),
        (
            "\"ec2-2020\"",
            "\"ec2-2020\"\nlimits = { spot = 0, on-demand = 0 }",
            &["cloud", "its limits are 0"],
        ),
        (
            "\"ec2-2020\"",
            "\"ec2-2020\"\nhosts = [{ vcpus = 1 }]",
            &["cloud.hosts", "no host has room"],
        ),
        (
            "[scheduler]",
            "[[interruption]]\nmodel = \"poison\"\n[scheduler]",
            &["interruption.0.model", "did you mean 'poisson'"],
        ),
        (
            "[scheduler]",
            "[[interruption]]\nmodel = \"poisson\"\nk-hibernate = -5\n[scheduler]",
            &["bad.toml:15:1: interruption.0.k-hibernate", "out of range"],
        ),
        ("ec2-2020\"", "ec2-2020\"\nplacement = \"pakc\"", &["cloud.placement", "'pack'"]),
        ("ec2-2020\"", "ec2-2020\"\nplacement = 3", &["cloud.placement", "write one of spread"]),
        (
            "ec2-2020\"",
            "ec2-2020\"\nplacement = { schedular = \"opie\" }",
            &["cloud.placement.schedular", "did you mean 'scheduler'"],
        ),
        (
            "ec2-2020\"",
            "ec2-2020\"\nplacement = { scheduler = \"opi\" }",
            &["bad.toml:5:", "cloud.placement.scheduler", "did you mean 'opie'"],
        ),
        (
            "ec2-2020\"",
            "ec2-2020\"\nplacement = { filters = [\"vcpus\", \"ram\"] }",
            &["cloud.placement.filters.1", "vcpus, memory, disk"],
        ),
        (
            "ec2-2020\"",
            "ec2-2020\"\nplacement = { filters = [\"memory\"] }",
            &["cloud.placement.filters", "add \"vcpus\""],
        ),
        (
            "ec2-2020\"",
            "ec2-2020\"\nplacement = { weighers = [{ name = \"overcomit\" }] }",
            &["cloud.placement.weighers.0", "did you mean 'overcommit'"],
        ),
        (
            "ec2-2020\"",
            "ec2-2020\"\nplacement = { weighers = [{ name = \"free-vcpus\", multiplier = 0.5 }] }",
            &["weighers.0.multiplier", "not a whole number"],
        ),
        (
            "ec2-2020\"",
            "ec2-2020\"\nplacement = { weighers = [{ name = \"overcommit\" }, { name = \"overcommit\" }] }",
            &["cloud.placement.weighers.1", "a second time"],
        ),
        (
            "ec2-2020\"",
            "ec2-2020\"\nplacement = { retry-weighers = [{ name = \"overcommit\" }] }",
            &["cloud.placement.retry-weighers", "scheduler = \"retry\""],
        ),
        (
            "ec2-2020\"",
            "ec2-2020\"\nplacement = { cost = \"hour\" }",
            &["cloud.placement.cost", "period, age, number"],
        ),
        (
            "ec2-2020\"",
            "ec2-2020\"\nhosts = [{ vcpus = 4, memory = \"-8 GiB\" }]",
            &["bad.toml:5:", "cloud.hosts.0.memory", "it is negative"],
        ),
        (
            "ec2-2020\"",
            "ec2-2020\"\nhosts = [{ vcpus = 4, memory = \"0 B\" }]",
            &["cloud.hosts.0.memory", "above 0"],
        ),
        (
            "ec2-2020\"",
            "ec2-2020\"\nhosts = [{ vcpus = 8, memory = \"16 GB\" }]\n\
             type = [{ name = \"x\", vcpus = 9, memory = \"1 GB\", spot = 1 }]",
            &["cloud.type.0", "a VM of x takes 9 vCPUs", "more than any host has"],
        ),
        ("ec2-2020\"", "ec2-2020\"\ntariff = \"minute\"", &["cloud.tariff", "second, hour"]),
        ("ec2-2020\"", "ec2-2020\"\nprices = \"p.csv\"", &["cloud.prices", "not a table"]),
        (
            "ec2-2020\"",
            "ec2-2020\"\nprices = { \"t3.large\" = \"p.csv\" }",
            &["cloud.prices.t3.large", "there is no spot type 't3.large'"],
        ),
        (
            "ec2-2020\"",
            "ec2-2020\"\nprices = { \"c3.large\" = \"p.csv\" }",
            &["p.csv", "No such file"],
        ),
        (
            "ec2-2020\"",
            "ec2-2020\"\nprices = { \"c3.large\" = { start = \"1h\" } }",
            &["cloud.prices.c3.large", "'file' is missing"],
        ),
        (
            "ec2-2020\"",
            "ec2-2020\"\nhosts = [{ vcpus = 9, disk = \"1 GB\" }]\n\
             type = [{ name = \"x\", vcpus = 1, memory = \"1 GB\", disk = \"2\", spot = 1 }]",
            &["cloud.type.0.disk", "unit is missing"],
        ),
        (
            "name = \"burst-hads\"",
            "name = \"fifo\"\nfleet = [{ type = \"c3.large\", market = \"spot\", bid = -1 }]",
            &["scheduler.fleet.0.bid", "-1 is not a price"],
        ),
        (
            "[scheduler]",
            "[[interruption]]\nmodel = \"lifetime\"\n[scheduler]",
            &["interruption.0", "one law of lifetimes"],
        ),
        (
            "[scheduler]",
            "[[interruption]]\nmodel = \"lifetime\"\nmean = \"0s\"\n[scheduler]",
            &["bad.toml:15:1: interruption.0.mean", "above 0"],
        ),
        (
            "[scheduler]",
            "[[interruption]]\nmodel = \"lifetime\"\nrecorded = []\n[scheduler]",
            &["interruption.0.recorded", "no lifetimes"],
        ),
        (
            "[scheduler]",
            "[[interruption]]\nmodel = \"lifetime\"\nrecorded = \"bad.toml\"\n[scheduler]",
            &["bad.toml:2:1: ", "is not a lifetime"],
        ),
        (
            "[scheduler]",
            "[checkpoint]\nfixed = \"0s\"\n[scheduler]",
            &["checkpoint.fixed", "at least"],
        ),
        (
            "[scheduler]",
            "[live]\ntasks = { kind = \"ed\", class = \"Z\" }\n[scheduler]",
            &["live.tasks.class", "there are S, W, A, B"],
        ),
        (
            "[cloud]",
            "[[cloud.type]]\nname = \"x\"\nvcpus = 2\nmemory = \"1 GiB\"\n[cloud]",
            &["bad.toml:"],
        ),
        (
            "catalogue = \"ec2-2020\"",
            "type = [{ name = \"x\", vcpus = 2, memory = \"1 GiB\" }]",
            &["neither an on-demand nor a spot price"],
        ),
    ];
    for (from, to, words) in cases {
        let folder = tempfile::tempdir().unwrap();
        let file = with(folder.path(), from, to);
        refused(folder.path(), &["run", &file], 2, words);
    }
}

#[test]
fn files_that_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir(at.join("folder.toml")).unwrap();
    fs::write(at.join("empty.toml"), "").unwrap();
    fs::write(at.join("junk.toml"), b"\x7fELF\x02\x01\x01\x00\xff\xfe\x80").unwrap();
    fs::write(at.join("cut.toml"), &BAG[..BAG.len() / 2]).unwrap();
    refused(at, &["run", "missing.toml"], 2, &["missing.toml", "No such file"]);
    refused(at, &["run", "folder.toml"], 2, &["folder.toml", "not a directory"]);
    refused(at, &["run", "empty.toml"], 2, &["empty.toml", "'name' is missing"]);
    refused(at, &["run", "junk.toml"], 2, &["junk.toml", "UTF-8"]);
    refused(at, &["run", "cut.toml"], 2, &["cut.toml:"]);
    refused(at, &["run", "j6O"], 2, &["j6O", "did you mean 'j60'"]);
    refused(at, &["run", "j60-sc7"], 2, &["did you mean 'j60-sc"]);
    refused(at, &["show", "j99"], 2, &["j99", "no built-in"]);
    refused(at, &["replay", "nowhere"], 2, &["nowhere/events.jsonl", "No such file"]);
}

#[test]
fn a_torn_log_is_read_as_far_as_it_goes_whatever_it_is_of() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (experiment, whom) in [("j60-sc2", "task0"), ("batch-small", "1")] {
        assert!(run_in(at, &["run", experiment, "-q", "--out", experiment]).status.success());
        let log = fs::read_to_string(at.join(experiment).join("events.jsonl")).unwrap();
        let torn = format!("{experiment}-torn");
        fs::create_dir(at.join(&torn)).unwrap();
        let cut = at.join(&torn).join("events.jsonl");
        fs::write(&cut, &log[..log.len() / 2]).unwrap();
        // A kill leaves the seal of some lines before the last.
        let header = log.find('\n').unwrap() as u64 + 1;
        let head = Chain::of_file(&cut, header).unwrap().head();
        let (beside, resealed) = (None, Vec::new());
        let seal = Seal { log: head, files: BTreeMap::new(), beside, resealed };
        fs::write(at.join(&torn).join(SEAL), seal.text()).unwrap();
        let left_out = format!("{torn}: the last line of its log is torn");
        for command in [&["replay", &torn][..], &["check", &torn], &["explain", &torn, whom]] {
            let output = run_in(at, command);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success() && said.contains(&left_out), "{command:?}: {said}");
            assert_eq!(said.lines().count(), 1, "{command:?}: {said}");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            // Nobody takes what was cut off for a run that was checked to its end.
            assert!(command[0] != "check" || said.contains("did not come to its end"), "{said}");
            assert!(!said.is_empty(), "{command:?}");
        }
        let output = run_in(at, &["twin", &torn]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // Of a whole one nothing is said.
        for command in ["replay", "check"] {
            let output = run_in(at, &[command, experiment]);
            assert!(output.status.success() && output.stderr.is_empty(), "{command}");
        }
    }
}

#[test]
fn runs_without_a_twin() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for args in
        [&["run", "j60-sc2", "-q", "--out", "bag"], &["run", "batch-small", "-q", "--out", "jobs"]]
    {
        assert!(run_in(at, args).status.success(), "{args:?}");
    }
    let log = |run: &str| fs::read_to_string(at.join(run).join("events.jsonl")).unwrap();
    let (bag, jobs) = (log("bag"), log("jobs"));
    let half = |text: &str| text[..text.len() / 2].to_owned();
    let first = |text: &str| text.split_inclusive('\n').next().unwrap().to_owned();
    let live = |text: &str| text.replacen("\"mode\":\"virtual\"", "\"mode\":\"live\"", 1);
    let damaged = |text: &str| text.replacen("\n{", "\nnonsense\n{", 1);
    let unknown = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines[2] = lines[2].replacen('{', "{\"surprise\":1,", 1);
        lines.join("\n") + "\n"
    };
    let cases: &[(&str, String, &[&str])] = &[
        ("nothing", String::new(), &["nothing/events.jsonl:1:"]),
        ("junk", "\u{1}\u{2}\n".to_owned(), &["junk/events.jsonl:1:"]),
        ("csv", "task,name\n0,a\n".to_owned(), &["csv/events.jsonl:1:"]),
        ("braces", "{}\n".to_owned(), &["braces/events.jsonl:1:"]),
        ("half-a-header", half(&first(&bag)), &["half-a-header/events.jsonl:1:"]),
        ("header", first(&bag), &["header: the run ended before it began"]),
        ("header-of-jobs", first(&jobs), &["header-of-jobs: the run ended before it began"]),
        ("damaged", damaged(&bag), &["damaged/events.jsonl:2:", "files are unchanged"]),
        ("damaged-jobs", damaged(&jobs), &["damaged-jobs/events.jsonl:2:", "files are unchanged"]),
        ("future", bag.replacen("\"format\":2", "\"format\":9", 1), &["its format is 9"]),
        ("future-jobs", jobs.replacen("\"format\":2", "\"format\":9", 1), &["its format is 9"]),
        ("older", bag.replacen("\"format\":2", "\"format\":1", 1), &["its format is 1"]),
        ("unknown", unknown(&bag), &["unknown/events.jsonl:3:", "no 'surprise'"]),
        ("unknown-jobs", unknown(&jobs), &["unknown-jobs/events.jsonl:3:", "no 'surprise'"]),
        ("no-format", bag.replacen("\"format\":2,", "", 1), &["no-format/events.jsonl:1:"]),
    ];
    for (name, text, words) in cases {
        fs::create_dir(at.join(name)).unwrap();
        fs::write(at.join(name).join("events.jsonl"), text).unwrap();
        if !name.starts_with("header") {
            for command in ["replay", "check"] {
                refused(at, &[command, name], 2, words);
            }
            refused(at, &["explain", name, "1"], 2, words);
        }
        refused(at, &["twin", name], 2, words);
        refused(at, &["twin", name, "--json", "--out", "never"], 2, words);
    }
    fs::create_dir(at.join("empty")).unwrap();
    refused(at, &["twin", "empty"], 2, &["empty/events.jsonl", "No such file"]);
    refused(at, &["twin", "nowhere"], 2, &["nowhere/events.jsonl", "No such file"]);
    refused(at, &["twin", "bag", "--out", "bag/events.jsonl"], 2, &["bag/events.jsonl"]);
    refused(at, &["twin", "bag", "--all", "--json"], 2, &["--all", "--json"]);
    refused(at, &["twin"], 2, &["<DIR>"]);

    // A log that a crash tore is compared as far as it goes, and nothing is left but what is asked.
    fs::create_dir(at.join("torn")).unwrap();
    fs::write(at.join("torn/events.jsonl"), half(&live(&bag))).unwrap();
    let before = tree(at);
    let output = run_in(at, &["twin", "torn"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("its log ends here") && text.contains("they diverge"), "{text}");
    assert_eq!(tree(at), before);
    let output = run_in(at, &["twin", "bag", "--json", "--out", "beside"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (json["tasks"].as_array().unwrap().len(), &json["divergence"]),
        (60, &serde_json::Value::Null)
    );
    let csv = fs::read_to_string(at.join("beside/twin.csv")).unwrap();
    assert_eq!(csv.lines().count(), 61);
}

#[test]
fn bad_options() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let cases: &[(&[&str], &[&str])] = &[
        (&["run", "j60", "--seed", "-1"], &["--seed: seed", "out of range"]),
        (&["run", "j60", "--seed", "x"], &["--seed: seed", "not a whole number"]),
        (&["run", "j60", "--scheduler", "hadz"], &["--scheduler", "did you mean 'hads'"]),
        (&["run", "j60", "--speedup", "0"], &["--speedup: live.speedup", "out of range"]),
        (&["run", "j60", "--set", "scheduler.alpha"], &["--set", "KEY=VALUE"]),
        (&["run", "j60", "--set", "=1"], &["--set", "not the path of a key"]),
        (&["run", "j60", "--set", "scheduler.alhpa=1"], &["did you mean 'alpha'"]),
        (&["run", "j60", "--set", "seed.deep=1"], &["has no 'deep' inside"]),
        (&["run", "j60", "--set", "interruption.5.model=poisson"], &["write a number from 0 to 0"]),
        (&["run", "j60", "--live", "--virtual"], &["--live"]),
        (&["run", "j60", "--quiet", "--json"], &["--quiet", "--json"]),
        (&["run"], &["EXPERIMENT"]),
        (&["rum", "j60"], &["rum", "run"]),
        (&["run", "j60", "--set", "live.worst-error=2"], &["live.worst-error", "out of range"]),
        (&["run", "j60", "--set", "live.mean-error=x"], &["live.mean-error", "number"]),
        (&["run", "j60", "--calibration", "table.json"], &["--live"]),
        (
            &["run", "batch-small", "--set", "workload.memory-per-processor=lots"],
            &["workload.memory-per-processor", "'lots' is not an amount of memory"],
        ),
        (
            &["run", "batch-small", "--set", "workload.memory-per-processor=0 B"],
            &["workload.memory-per-processor", "above 0"],
        ),
        (
            &["run", "batch-small", "--set", "workload.job.0.memory=1 GiB"],
            &[
                "workload.memory-per-processor",
                "1 GiB for each process",
                "the memory of a processor is not given",
            ],
        ),
        (
            &["run", "batch-small", "--set", "workload.burstable={ baseline = 0.2 }"],
            &["workload.burstable", "credits-per-hour"],
        ),
        (&["submit", "x", "--processors", "1", "--runtime", "9s", "--memory", "9"], &["--memory"]),
        // 200,000 jobs of two years.
        (&["run", "fw-like", "--live"], &["it would take at least", "days", "--allow-long"]),
        (&["coordinator", "fw-like"], &["it would take at least", "--speedup", "fewer jobs"]),
        (&["run", "j60", "--live", "--speedup", "0.01"], &["about", "fewer tasks", "--allow-long"]),
        (&["calibrate", "--speedups", "10,x"], &["--speedups", "from 1 to 1000"]),
        (&["calibrate", "--speedups", "0"], &["--speedups", "from 1 to 1000"]),
        (&["calibrate", "--loads", "-1"], &["--loads", "from 0.01 to 10"]),
        (&["calibrate", "--loads", "nan"], &["--loads", "from 0.01 to 10"]),
        (&["calibrate", "--loads", "0.01"], &["--loads 0.01", "vCPUs"]),
        (&["calibrate", "--error", "5"], &["--error", "from 0.0001 to 1"]),
        (&["calibrate", "--mean", "inf"], &["--mean", "from 0.0001 to 1"]),
        (&["calibrate", "--repeat", "0"], &["--repeat"]),
        (&["calibrate", "--quiet", "--json"], &["--quiet", "--json"]),
        (&["run", "j60", "--env", "env.json"], &["--job"]),
    ];
    for (args, words) in cases {
        refused(at, args, 2, words);
    }
}

#[test]
fn workers_that_cannot_begin() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir(at.join("folder")).unwrap();
    fs::write(at.join("empty"), "").unwrap();
    fs::write(at.join("short"), "a5a5\n").unwrap();
    fs::write(at.join("junk"), b"\x7fELF\x02\x01\xff\xfe").unwrap();
    fs::write(at.join("bare"), "a5".repeat(32)).unwrap();
    let none = "a token of a run, which is one line that begins with `dm1.`";
    let worker = ["worker", "--coordinator", "127.0.0.1:1"];
    for (file, word) in [
        ("missing", "No such file"),
        ("folder", "directory"),
        ("empty", none),
        ("short", none),
        ("bare", "dormouse identity DIR"),
        ("junk", none),
        ("/dev/zero", none),
    ] {
        // Whatever is no file is not waited for.
        let wait = if ["missing", "empty"].contains(&file) { "0s" } else { "5m" };
        let args = [&worker[..], &["--wait", wait, "--secret-file", file]].concat();
        refused(at, &args, 2, &[file, word, "the run's folder on the coordinator's host"]);
    }
    refused(at, &worker, 2, &["--secret-file", "DORMOUSE_SECRET_FILE"]);
    for address in [
        "",
        "host",
        "host:",
        ":7380",
        "host:0",
        "host:65536",
        "http://host:7380",
        "::1:7380",
        "a b:1",
    ] {
        let args = ["worker", "--coordinator", address, "--secret-file", "short"];
        refused(at, &args, 2, &["--coordinator", "HOST:PORT"]);
    }
}

#[test]
fn calibrations_that_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir(at.join("folder")).unwrap();
    fs::write(at.join("empty.json"), "").unwrap();
    fs::write(at.join("junk.json"), b"\x7fELF\x02\x01\xff\xfe").unwrap();
    fs::write(at.join("torn.json"), "{\"format\": 1, \"made\": \"2026-").unwrap();
    fs::write(at.join("other.json"), "{\"format\": 99}").unwrap();
    fs::write(at.join("lacking.json"), "{\"format\": 1}").unwrap();
    for (file, word) in [
        ("missing.json", "dormouse calibrate --out missing.json"),
        ("folder", "irectory"),
        ("empty.json", "is not a calibration"),
        ("junk.json", "UTF-8"),
        ("torn.json", "is not a calibration"),
        ("other.json", "its format is 99"),
        ("lacking.json", "missing field"),
    ] {
        refused(at, &["run", "j60", "--live", "--calibration", file], 2, &[file, word]);
    }
}

#[test]
fn folders_for_results() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("file"), "mine").unwrap();
    fs::create_dir(at.join("full")).unwrap();
    fs::write(at.join("full/letter.txt"), "mine").unwrap();
    refused(at, &["run", "j60", "--out", "file"], 2, &["--out file", "it is a file"]);
    refused(at, &["run", "j60", "--out", "file/deeper"], 2, &["file"]);
    refused(at, &["run", "j60", "--out", "full"], 2, &["--out full", "--force"]);
    refused(at, &["run", "j60", "--out", "/proc/dormouse/x"], 2, &["/proc/dormouse"]);

    assert!(run_in(at, &["run", "j60", "-q", "--out", "full", "--force"]).status.success());
    assert!(at.join("full/letter.txt").is_file() && at.join("full/summary.json").is_file());
    // A former run's folder is replaced, and nothing else is touched.
    for _ in 0..2 {
        assert!(run_in(at, &["run", "j60", "-q", "--out", "new/deep"]).status.success());
    }
    let inside = tree(&at.join("new")).len();
    assert_eq!(inside, 1 + 8, "{:?}", tree(&at.join("new")));
}

#[test]
fn a_full_disk() {
    if !nix::unistd::geteuid().is_root() {
        skip("a full disk needs root, to mount a tiny one");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=32k", "dormouse-test"])
        .arg(&disk)
        .output()
        .unwrap();
    if !mounted.status.success() {
        skip("mount is not allowed here");
        return;
    }
    let mounted = Mounted(disk);
    refused(&mounted.0, &["run", "j60"], 1, &["No space left on device", "free space", "--out"]);
    // Even the message may find no room: standard output is full.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = Command::new(dormouse()).arg("list").stdout(full).output().unwrap().status;
    assert_eq!(status.code(), Some(1));
}

/// A guard that unmounts a path when its test ends, however that is.
struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn skip(why: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "skipped in CI: {why}");
    println!("skipped: {why}");
}
