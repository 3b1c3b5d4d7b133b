//! Requests for VMs through the command line: requests of a model are written and read again for the same run, and an
//! invalid section or file gives one clear error with its place and what would be right.

use std::fs;

use dormouse_tests::{refused, run_in};

/// An experiment with requests drawn from a model, on hosts of 3 vCPUs.
const MODEL: &str = r#"name = "good"
[cloud]
catalogue = "ec2-2020"
boot = "1m"
placement = { scheduler = "opie" }
hosts = [{ vcpus = 3, memory = "8 GiB", count = 4 }]
[workload]
kind = "requests"
[workload.model]
requests = 200
arrivals = { process = "diurnal", every = "10m", amplitude = 0.8, peak = "14h", weekend = 0.5 }
duration = { law = "exponential", mean = "2h", least = "10m", most = "300m" }
preemptible-duration = { law = "lognormal", mean = "1h", variation = 1.5 }
preemptible = 0.5
[[workload.model.mix]]
type = "c3.large"
weight = 3
[[workload.model.mix]]
type = "t3.large"
preemptible = 0
"#;

#[test]
fn a_stream_is_written_and_read_in_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (model, section) = MODEL.split_at(MODEL.find("[workload.model]").unwrap());
    fs::write(at.join("good.toml"), format!("{model}{section}")).unwrap();
    fs::write(at.join("read.toml"), format!("{model}csv = \"stream.csv\"\n")).unwrap();
    let done = |args: &[&str]| {
        let output = run_in(at, args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let requests = ["workload", "requests", "good.toml", "-o", "stream.csv", "--json"];
    let drawn: serde_json::Value = serde_json::from_str(&done(&requests)).unwrap();
    assert_eq!(drawn["requests"], 200);
    assert_eq!(drawn["vcpus"], 12);
    assert!(drawn["offered_load"].as_f64().unwrap() > 0.0);
    let read = ["workload", "requests", "read.toml", "-o", "again.csv", "--json"];
    assert_eq!(serde_json::from_str::<serde_json::Value>(&done(&read)).unwrap(), drawn);
    let bytes = |name: &str| fs::read(at.join(name)).unwrap();
    assert_eq!(bytes("stream.csv"), bytes("again.csv"));
    let stats = done(&["workload", "stats", "stream.csv"]);
    assert!(stats.starts_with("requests              200\n"), "{stats}");
    let other = ["workload", "requests", "good.toml", "--set", "seed=2", "-o", "other.csv"];
    done(&other);
    assert_ne!(bytes("stream.csv"), bytes("other.csv"));
    for name in ["good", "read"] {
        done(&["run", &format!("{name}.toml"), "--out", name]);
    }
    let digest = |name: &str| {
        let text = fs::read_to_string(at.join(name).join("summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
        summary["decisions_sha256"].clone()
    };
    assert_eq!(digest("good"), digest("read"));
    // What the stream held that a run was made of is kept.
    let header = fs::read_to_string(at.join("read/events.jsonl")).unwrap();
    assert!(header.lines().next().unwrap().contains("\"file\":\"stream.csv\""), "{header}");
}

#[test]
fn bad_models() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let cases: &[(&str, &str, &[&str])] = &[
        ("requests = 200\n", "", &["bad.toml:9:11: workload.model: it has no end; say how many"]),
        ("= 200", "= 0", &["bad.toml:10:1: workload.model.requests: 0 is out of range"]),
        ("= 200", "= -5", &["workload.model.requests: -5 is out of range"]),
        ("requests = 200", "lasts = \"0s\"", &["workload.model.lasts: '0s' is too little"]),
        (
            "requests = 200",
            "lasts = \"99999999d\"",
            &["workload.model.lasts", "requests are expected, more than 1e9"],
        ),
        ("\"diurnal\"", "\"diurnel\"", &["model.arrivals.process", "did you mean 'diurnal'?"]),
        (
            "every = \"10m\"",
            "every = \"0m\"",
            &["workload.model.arrivals.every", "'0m' is too little"],
        ),
        ("every = \"10m\"", "every = \"-10m\"", &["model.arrivals.every", "it is negative"]),
        ("amplitude = 0.8", "amplitude = 1.5", &["model.arrivals.amplitude: 1.5 is out of range"]),
        ("peak = \"14h\"", "peak = \"25h\"", &["model.arrivals.peak: the peak is not within"]),
        ("peak = \"14h\"", "burst = \"1h\"", &["'burst'", "take it out"]),
        ("weekend = 0.5", "weekend = -0.5", &["model.arrivals.weekend: -0.5 is out of range"]),
        ("\"exponential\"", "\"expo\"", &["workload.model.duration.law: there is no law 'expo'"]),
        (
            "least = \"10m\"",
            "least = \"400m\"",
            &["model.duration", "is shorter than its shortest"],
        ),
        ("mean = \"2h\"", "mean = \"1s\"", &["model.duration: fewer than one of a thousand"]),
        ("variation = 1.5", "variation = -1", &["preemptible-duration.variation: -1 is out of"]),
        ("preemptible = 0.5", "preemptible = 1.5", &["bad.toml:14:1: workload.model.preemptible"]),
        ("weight = 3", "weight = 0", &["workload.model.mix.0.weight: 0 is out of range"]),
        ("weight = 3", "weight = -3", &["workload.model.mix.0.weight: -3 is out of range"]),
        ("c3.large", "c3.lrage", &["bad.toml:16:1: workload.model.mix.0.type", "'c3.large'?"]),
        (
            "preemptible = 0\n",
            "",
            &["workload.model.mix.1.type: t3.large is not sold in the spot market; request it in"],
        ),
        (
            "vcpus = 3",
            "vcpus = 1",
            &["bad.toml:6:1: cloud.hosts: no host has room for a VM of any type"],
        ),
        (
            "type = \"c3.large\"",
            "type = \"c3.xlarge\"",
            &[
                "workload.model.mix.0.type: a VM of c3.xlarge takes",
                "more than any host has; request",
            ],
        ),
        (
            "[workload.model]",
            "csv = \"stream.csv\"\n[workload.model]",
            &["bad.toml:7:2: workload: it needs one of request, csv and model"],
        ),
    ];
    for (from, to, words) in cases {
        assert!(MODEL.contains(from), "'{from}' is not in the good experiment");
        fs::write(at.join("bad.toml"), MODEL.replacen(from, to, 1)).unwrap();
        refused(at, &["run", "bad.toml"], 2, words);
        refused(at, &["workload", "requests", "bad.toml", "-o", "some.csv"], 2, words);
    }
}

#[test]
fn bad_files_of_requests() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (cloud, _) = MODEL.split_at(MODEL.find("[workload.model]").unwrap());
    fs::write(at.join("some.toml"), format!("{cloud}csv = \"r.csv\"\n")).unwrap();
    refused(at, &["run", "some.toml"], 2, &["some.toml:9:1: workload.csv: can't read r.csv"]);
    let head = "at,type,market,duration\n0,c3.large,spot,1h\n";
    for (rows, says) in [
        ("", "some.toml:9:1: workload.csv: r.csv has no requests; write a row"),
        (
            "0,c3.large,spot,1h\n",
            "some.toml:9:1: workload.csv: r.csv, line 1: '0,c3.large,spot,1h'",
        ),
        (&format!("{head}junk\n"), "r.csv, line 3: 'junk' has 1 fields, not 4; write at,type"),
        (&format!("{head}5,c3.large,spot,-1h\n"), "r.csv, line 3: its duration, -1h, is negative"),
        (&format!("{head}5,c3.lrage,spot,1h\n"), "line 3: there is no instance type 'c3.lrage'"),
        (&format!("{head}5,t3.large,spot,1h\n"), "line 3: t3.large is not sold in the spot market"),
        (&format!("{head}5,c3.large,sopt,1h\n"), "line 3: there is no market 'sopt'; write on-de"),
        (&format!("{head}5,c3.xlarge,spot,1h\n"), "line 3: a VM of c3.xlarge takes 4 vCPUs"),
        (
            &format!("{head}5,c3.large,spot,1h\n4,c3.large,spot,1h\n"),
            "line 4: its time, 4s, is bef",
        ),
    ] {
        fs::write(at.join("r.csv"), rows).unwrap();
        refused(at, &["run", "some.toml"], 2, &[says]);
        refused(at, &["workload", "requests", "some.toml", "-o", "other.csv"], 2, &[says]);
    }
    fs::write(at.join("r.csv"), [head.as_bytes(), b"\x7fELF\xff\xfe\n"].concat()).unwrap();
    refused(
        at,
        &["run", "some.toml"],
        2,
        &["r.csv, line 3: its byte 5 is not text in UTF-8; give"],
    );
    refused(at, &["workload", "stats", "r.csv"], 2, &["r.csv, line 3: its byte 5 is not text"]);
    let options = ["workload", "stats", "r.csv", "--procs", "4"];
    refused(at, &options, 2, &["r.csv: --procs, --skip-malformed and --plot are of SWF logs"]);
    let bag = ["workload", "requests", "j60"];
    refused(at, &bag, 2, &["j60: it has no requests for VMs; give one with workload.kind"]);
}
