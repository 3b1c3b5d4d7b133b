//! Files as other systems write them, used from the command line: each gives the result that its own system has.

use std::fs;
use std::path::Path;

use dormouse_tests::run_in;
use serde_json::Value;

fn output_of(folder: &Path, args: &[&str]) -> String {
    let output = run_in(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn summary_of(folder: &Path, args: &[&str]) -> Value {
    let args = [&["run"], args, &["--json", "--force", "--out", "out"]].concat();
    serde_json::from_str(&output_of(folder, &args)).unwrap()
}

#[test]
fn jobs_of_batsim_fail_as_their_profiles_say() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let log = r#"{"nb_res": 4, "jobs": [
 {"id": "a", "subtime": 0, "walltime": 100, "res": 4, "profile": "ok"},
 {"id": "b", "subtime": 0, "walltime": 100, "res": 4, "profile": "bad"},
 {"id": "c", "subtime": 0, "walltime": 5, "res": 4, "profile": "ok"},
 {"id": "d", "subtime": 0, "walltime": -1, "res": 4, "profile": "ok"}],
 "profiles": {"ok": {"type": "delay", "delay": 10}, "bad": {"type": "delay", "delay": 10, "ret": 1}}}"#;
    fs::write(at.join("ret.json"), log).unwrap();
    let experiment = "name = \"ret\"\n[workload]\nkind = \"swf\"\nlog = \"ret.json\"\nran-over = \"cut\"\n[scheduler]\nname = \"easy\"\n";
    fs::write(at.join("ret.toml"), experiment).unwrap();
    let said = output_of(at, &["run", "ret.toml", "--out", "out"]);
    assert!(said.contains("1 fail at their end ('ret' of their profiles)"), "{said}");
    let jobs = fs::read_to_string(at.join("out/jobs.csv")).unwrap();
    let ends: Vec<Vec<&str>> = jobs
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            [6, 7, 8, 10].map(|n| cells[n]).to_vec()
        })
        .collect();
    let right = [
        ["1", "COMPLETED_SUCCESSFULLY", "0", "10"],
        ["0", "COMPLETED_FAILED", "10", "20"],
        ["0", "COMPLETED_WALLTIME_REACHED", "20", "25"],
        ["1", "COMPLETED_SUCCESSFULLY", "25", "35"],
    ];
    assert_eq!(ends, right);
    let schedule = fs::read_to_string(at.join("out/schedule.swf")).unwrap();
    let status = |line: &str| line.split_whitespace().nth(10).unwrap().to_owned();
    let statuses: Vec<String> =
        schedule.lines().filter(|l| !l.starts_with(';')).map(status).collect();
    assert_eq!(statuses, ["1", "0", "0", "1"]);
    assert!(run_in(at, &["check", "out"]).status.success());
}

#[test]
fn amazon_s_bill_of_today_is_its_own_tariff() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let experiment = r#"
name = "others"
[cloud]
boot = "0s"
preemption-notice = "0s"
[[cloud.type]]
name = "a"
vcpus = 1
memory = "4 GiB"
on-demand = 3.6
spot = 1.2
[[interruption]]
model = "schedule"
acts = [{ at = "30m", action = "preempt", vm = 0 }]
[workload]
kind = "bag"
deadline = "10h"
[[workload.task]]
runtime = "50m"
[checkpoint]
policy = "none"
[scheduler]
name = "fifo"
fleet = [{ type = "a", market = "spot" }]
"#;
    fs::write(at.join("b.toml"), experiment).unwrap();
    // The first VM is preempted after half an hour; the second has the 50 minutes.
    for (tariff, usd) in [
        ("second", 1.6),
        ("hour", 1.2),
        ("started-hour", 2.4),
        ("ec2", 1.0),
        ("gce", 1.6),
        ("azure", 1.6),
    ] {
        let set = format!("cloud.tariff=\"{tariff}\"");
        let summary = summary_of(at, &["b.toml", "--set", &set]);
        assert_eq!(summary["cost_usd"], usd, "{tariff}");
        assert!(run_in(at, &["check", "out"]).status.success(), "{tariff}");
    }
    let set =
        ["--set", "cloud.tariff=\"ec2\"", "--set", "interruption.0.acts.0.at=\"90m\"", "--set"];
    let args = [&["b.toml"][..], &set, &["workload.task.0.runtime=\"100m\""]].concat();
    // 90 minutes that it took away, and 100 in which the task is done.
    assert_eq!(summary_of(at, &args)["cost_usd"], (90.0 + 100.0) / 60.0 * 1.2);
}

#[test]
fn inspect_knows_files_of_other_systems() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let pbs = "03/01/2024 10:10:10;E;101.srv;user=ann group=g queue=workq ctime=1709287200 start=1709287210 \
               exec_host=n1/0*4 Resource_List.ncpus=4 Resource_List.walltime=01:00:00 end=1709287810 Exit_status=0\n";
    let events = r#"{"detail-type":"EC2 Spot Instance Interruption Warning","time":"2024-05-01T10:00:00Z","resources":["arn:aws:ec2:us-east-2a:instance/i-1"],"detail":{"instance-action":"terminate"}}
{"detail-type":"EC2 Instance Rebalance Recommendation","time":"2024-05-01T09:30:00Z","resources":["arn:aws:ec2:us-east-2a:instance/i-1"],"detail":{}}
"#;
    let types = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone\n\
                 m5.large,,,2.0,8.0,,0.096,0.0353,us-east-1,us-east-1a\n\
                 m5.large,,,2.0,8.0,,0.096,0.0401,us-east-1,us-east-1b\n";
    let trace = r#"{"metadata": {"gap_seconds": 600, "start_time": 1682150400.0}, "data": [1,1,0,1], "prices": [0.918, 0.918, 1.2, 0.95]}"#;
    let history = "ClusterId = 101\nProcId = 0\nQDate = 1709287200\nJobCurrentStartDate = 1709287210\n\
                   CompletionDate = 1709287810\nJobStatus = 4\nRequestCpus = 4\n";
    let helios = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n\
                  7,u1,vcA,8,32,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:10,2020-04-01 00:10:10,600,10\n";
    for (name, text, words) in [
        (
            "history.txt",
            history,
            &[
                "a history of HTCondor",
                "read are ClusterId, ProcId, QDate, JobStatus,",
                "jobs             1",
                "kind = \"swf\"",
            ][..],
        ),
        (
            "cluster_log.csv",
            helios,
            &["a job log of Helios", "read are gpu_num, submit_time, job_id, user, vc, state,"],
        ),
        ("pbs.txt", pbs, &["parallel jobs", "an accounting file of PBS", "jobs             1"]),
        (
            "events.json",
            events,
            &[
                "interruptions",
                "JSON of the cloud's events",
                "2024-05-01 09:30:00",
                "preempt zone us-east-2a",
            ],
        ),
        ("types.csv", types, &["instance types", "m5.large@us-east-1a, m5.large@us-east-1b"]),
        (
            "trace.json",
            trace,
            &["availability of spot VMs", "4, which [cloud.prices] reads of this file"],
        ),
    ] {
        fs::write(at.join(name), text).unwrap();
        let said = output_of(at, &["inspect", name]);
        for word in words {
            assert!(said.contains(word), "{name}, {word}: {said}");
        }
    }
    // Types in zones run with the interruptions of one and with the prices of a trace.
    let experiment = r#"
name = "others"
[cloud]
boot = "0s"
preemption-notice = "0s"
catalogue = "types.csv"
[[interruption]]
model = "schedule"
file = "events.json"
begins = "2024-05-01 09:40:00"
[workload]
kind = "bag"
deadline = "10h"
task = [{ runtime = "40m" }]
[scheduler]
name = "fifo"
fleet = [{ type = "m5.large@us-east-1a", market = "spot" }]
"#;
    let warning = events.lines().next().unwrap().replace("us-east-2a", "us-east-1a");
    fs::write(at.join("events.json"), warning).unwrap();
    fs::write(at.join("a.toml"), experiment).unwrap();
    let summary = summary_of(at, &["a.toml", "--set", "checkpoint.policy=\"none\""]);
    // Taken away 22 minutes after it began, two after the warning.
    assert_eq!(summary["makespan_s"], 60.0 * (22.0 + 40.0), "{summary:#}");
    let (unhit, _) = experiment.split_once("[[interruption]]").unwrap();
    let (_, rest) = experiment.split_once("[workload]").unwrap();
    let priced =
        format!("{unhit}prices = {{ \"m5.large@us-east-1a\" = \"trace.json\" }}\n[workload]{rest}");
    fs::write(at.join("p.toml"), priced).unwrap();
    let usd = 0.918 / 3.0 + 1.2 / 6.0 + 0.95 / 6.0;
    let cost = summary_of(at, &["p.toml", "--set", "checkpoint.policy=\"none\""])["cost_usd"]
        .as_f64()
        .unwrap();
    assert!((cost - usd).abs() < 1e-6, "{cost}, {usd}");
}

/// A history is written as SWF, as CSV and for Batsim, and each file gives a run the same jobs.
#[test]
fn logs_of_jobs_are_converted_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let history = "ClusterId = 101\nProcId = 0\nQDate = 1709287200\nJobCurrentStartDate = 1709287210\n\
                   CompletionDate = 1709287810\nJobStatus = 4\nRequestCpus = 4\nOwner = \"ann\"\nExitCode = 1\n\n\
                   ClusterId = 102\nProcId = 0\nQDate = 1709287300\nJobStatus = 3\n\
                   EnteredCurrentStatus = 1709287400\nRequestCpus = 1\n";
    fs::write(at.join("history"), history).unwrap();
    let to = |format: &str, more: &[&str]| {
        let args = ["workload", "convert", "history", "--to", format, "--out", format];
        output_of(at, &[&args[..], more].concat())
    };
    for format in ["swf", "csv"] {
        let said = to(format, &[]);
        assert!(said.contains(&format!("2 jobs written to {format}")), "{said}");
        assert!(said.contains("read as a history of HTCondor"), "{said}");
        let said = output_of(at, &["workload", "stats", format, "--procs", "8"]);
        assert!(said.contains("left out 1 that never ran"), "{format}: {said}");
    }
    let said = to("batsim", &["--procs", "8"]);
    for words in ["1 jobs written", "1 left out, whose run time or size is not known", "no users"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let workload = fs::read_to_string(at.join("batsim")).unwrap();
    let right = "{\"nb_res\": 8, \"jobs\": [\n {\"id\": 101, \"subtime\": 0, \"walltime\": -1, \"res\": 4, \
                 \"profile\": \"fails600000000us\"}],\n\"profiles\": {\n \"fails600000000us\": {\"type\": \"delay\", \
                 \"delay\": 600, \"ret\": 1}}}\n";
    assert_eq!(workload, right);
    let refused = run_in(at, &["workload", "convert", "history", "--to", "batsim", "--out", "x"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("give the number with --procs"), "{said}");
}

/// Tasks of a workflow with several cores are no tasks of a bag; as parallel jobs they have as many processors, and
/// follow those that they follow in the file.
#[test]
fn a_workflow_with_several_cores_is_refused_or_becomes_parallel_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let flow = r#"{"schemaVersion": "1.4", "workflow": {"tasks": [
 {"name": "join", "id": "j", "runtimeInSeconds": 5.5, "parents": ["a", "b"], "cores": 1},
 {"name": "a", "id": "a", "runtimeInSeconds": 10, "cores": 4, "memoryInBytes": 4096000},
 {"name": "b", "id": "b", "runtimeInSeconds": 20, "cores": 2}]}}"#;
    fs::write(at.join("flow.json"), flow).unwrap();
    let bag = "name = \"flow\"\n[cloud]\ncatalogue = \"ec2-2020\"\n[workload]\nkind = \"bag\"\nworkflow = \"flow.json\"\n\
               deadline = \"1h\"\n[scheduler]\nname = \"fifo\"\nfleet = [{ type = \"c3.large\", market = \"spot\" }]\n";
    fs::write(at.join("flow.toml"), bag).unwrap();
    let set = "workload.several-cores=\"refused\"";
    let refused = run_in(at, &["run", "flow.toml", "--set", set, "--out", "refused"]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("'a' asks for several cores, as do 2 tasks in all"), "{said}");
    assert!(said.contains("dormouse workload convert flow.json --to swf -o flow.swf"), "{said}");
    assert_eq!(summary_of(at, &["flow.toml"])["tasks"]["completed"], 3);

    let said =
        output_of(at, &["workload", "convert", "flow.json", "--to", "swf", "-o", "flow.swf"]);
    assert!(said.contains("3 jobs written to flow.swf"), "{said}");
    assert!(said.contains("MaxProcs is 4, as the largest task has"), "{said}");
    let log = fs::read_to_string(at.join("flow.swf")).unwrap();
    let jobs: Vec<&str> = log.lines().filter(|line| !line.starts_with(';')).collect();
    // 4,096,000 bytes are 1,000 KiB for each of four processors; 5.5 s are six whole seconds.
    assert_eq!(
        jobs,
        [
            "1 0 -1 10 4 -1 -1 4 10 1000 1 -1 -1 -1 -1 -1 -1 -1",
            "2 0 -1 20 2 -1 -1 2 20 -1 1 -1 -1 -1 -1 -1 -1 -1",
            "3 0 -1 6 1 -1 -1 1 6 -1 1 -1 -1 -1 -1 -1 1&2 0",
        ]
    );
    let jobs = "name = \"jobs\"\n[workload]\nkind = \"swf\"\nlog = \"flow.swf\"\nprocessors = 6\nusage = \"full\"\n\
                memory-per-processor = \"1 GiB\"\n[scheduler]\nname = \"easy\"\n";
    fs::write(at.join("jobs.toml"), jobs).unwrap();
    // Both at once, and then the one that follows both.
    assert_eq!(summary_of(at, &["jobs.toml"])["makespan_s"], 26.0);
}

/// Eight jobs of eight cores on a node of ten, and a hundred of one core: with the higher priority the large ones run one
/// after the other, and the small ones on the two cores that they leave free.
#[test]
fn small_jobs_fill_the_gaps_beside_those_of_a_higher_priority() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut log = "; MaxProcs: 10\n; UnixStartTime: 0\n".to_owned();
    for number in 1..=108 {
        let (run, size, queue) = if number <= 100 { (1, 1, 1) } else { (10, 8, 2) };
        log += &format!(
            "{number} 0 -1 {run} {size} -1 -1 {size} {run} -1 1 1 1 -1 {queue} -1 -1 -1\n"
        );
    }
    fs::write(at.join("node.swf"), log).unwrap();
    let experiment = "name = \"node\"\n[workload]\nkind = \"swf\"\nlog = \"node.swf\"\nusage = \"full\"\n\
                      priority = \"highest-queue\"\n[scheduler]\nname = \"priority\"\n";
    fs::write(at.join("node.toml"), experiment).unwrap();
    let ends = |set: &str| -> (Vec<f64>, f64) {
        let summary = summary_of(at, &["node.toml", "--set", set]);
        assert_eq!(summary["tasks"]["completed"], 108);
        let jobs = fs::read_to_string(at.join("out/jobs.csv")).unwrap();
        let cell = |line: &str, at: usize| line.split(',').nth(at).unwrap().parse::<f64>().unwrap();
        let mut rows: Vec<(f64, f64)> =
            jobs.lines().skip(1).map(|line| (cell(line, 0), cell(line, 10))).collect();
        rows.sort_by(|one, other| one.0.total_cmp(&other.0));
        let ends: Vec<f64> = rows.into_iter().map(|(_, end)| end).collect();
        let small = ends[..100].iter().copied().fold(0.0, f64::max);
        let mut large = ends[100..].to_vec();
        large.sort_by(f64::total_cmp);
        (large, small)
    };
    let tens: Vec<f64> = (1..=8).map(|n| 10.0 * f64::from(n)).collect();
    assert_eq!(ends("workload.priority=\"highest-queue\""), (tens, 50.0));
    // All alike, or the small ones first: ten at a time.
    for order in ["none", "lowest-queue"] {
        let (large, small) = ends(&format!("workload.priority=\"{order}\""));
        assert_eq!((large[0], small), (20.0, 10.0), "{order}");
    }
}
