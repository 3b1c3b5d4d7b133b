//! Tests of `dormouse inspect`: each kind of file is recognised by its content, whatever its name, and an unknown file
//! gives one clear error.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use dormouse_tests::{refused, run_in};
use serde_json::Value;

const JOBS: &str = "\
; Computer: a machine of ours
; MaxProcs: 8
; UnixStartTime: 1000000000
1 0 -1 60 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1
2 3600 -1 120 8 -1 -1 8 200 -1 1 1 1 1 1 1 -1 -1
3 3700 -1 -1 8 -1 -1 8 200 -1 5 1 1 1 1 1 -1 -1
";

const PRICES: &str = "time,price\n2020-01-01 00:00:00,0.1\n2020-01-01 06:00:00,0.2\n\
                      2020-01-01 06:00:00,0.2\n2020-01-02 00:00:00,0.1\n";

const HISTORY: &str = r#"{"SpotPriceHistory": [
  {"AvailabilityZone": "us-east-1a", "InstanceType": "m1.small", "ProductDescription": "Linux/UNIX",
   "SpotPrice": "0.0347", "Timestamp": "2020-01-02T03:10:00.000Z"},
  {"AvailabilityZone": "us-east-1b", "InstanceType": "m1.small", "ProductDescription": "Linux/UNIX",
   "SpotPrice": "0.5", "Timestamp": "2020-01-02T03:07:00.000Z"}]}"#;

const LIFETIMES: &str = "machine_type,end_event,lifetime_s\nn1-highcpu-2,preempted,3600\n\
                         n1-highcpu-4,stop,7200\nn1-highcpu-2,preempted,-1\n";

const REQUESTS: &str = "at,type,market,duration\n0,c3.large,spot,1h\n90,c3.large,on-demand,2h\n";

const AZURE: &str = "a,s,d,0,900,1,1,1,Unknown,2,4\nb,s,d,300,300,1,1,1,Interactive,>24,>64\n\
                     c,s,d,600,1500,1,1,1,Interactive,>24,>64\n";

const GOOGLE: &str = "{\"time\":\"600000000\",\"type\":\"3\",\"collection_id\":\"9\",\"instance_index\":\"0\",\
     \"priority\":\"25\",\"resource_request\":{\"cpus\":0.02,\"memory\":0.01}}\n\
     {\"time\":\"900000000\",\"type\":\"6\",\"collection_id\":\"9\",\"instance_index\":\"0\",\
     \"priority\":\"25\",\"resource_request\":{\"cpus\":0.02,\"memory\":0.01}}\n";

const TRACE: &str = r#"{"metadata": {"gap_seconds": 300}, "data": [1,1,1,0,0,1,1,1,1,0,1,1]}"#;

const ACTS: &str = "time,action,type\n15m,preempt,c3.large\n45m,hibernate,\n";

const TYPES: &str = "Instance Type,vCPUs,Memory GiB,On Demand,Spot\na1,2,4,0.1,0.03\na2,4,8,0.2,\n";

const DESCRIBED: &str = r#"{"InstanceTypes": [{"InstanceType": "m5.large", "VCpuInfo": {"DefaultVCpus": 2},
    "MemoryInfo": {"SizeInMiB": 8192}, "SupportedUsageClasses": ["on-demand", "spot"]}]}"#;

const ADVISOR: &str =
    r#"{"spot_advisor": {"us-east-1": {"Linux": {"m5.large": {"s": 66, "r": 1}}}}}"#;

const ZONES: &str = "Timestamp,SpotPrice,InstanceType,AvailabilityZone\n\
    2020-01-01 00:00:00,0.02,c3.large,us-east-1a\n2020-01-01 00:00:00,0.03,c3.large,us-east-1b\n\
    2020-01-02 00:00:00,0.03,c3.large,us-east-1a\n2020-01-02 00:00:00,0.02,c3.large,us-east-1b\n";

const ZONES_ALONE: &str = "time,price,zone\n0,0.02,a\n0,0.03,b\n86400,0.03,a\n86400,0.02,b\n";

const TYPES_APART: &str = "time,price,type,zone\n0,0.02,c3.large,a\n0,0.03,c4.large,b\n\
    86400,0.03,c3.large,a\n86400,0.02,c4.large,b\n";

const PRODUCTS: &str = "time,price,type,product\n0,0.02,c3.large,Linux/UNIX\n\
    0,0.05,c3.large,Windows\n86400,0.03,c3.large,Linux/UNIX\n86400,0.06,c3.large,Windows\n";

const ONE_TYPE: &str = "time,price,type,product\n0,0.02,c3.large,Linux/UNIX\n\
    86400,0.03,c3.large,Linux/UNIX\n";

fn inspected(folder: &Path, args: &[&str]) -> String {
    let args: Vec<&str> = ["inspect"].iter().chain(args).copied().collect();
    let output = run_in(folder, &args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn each_kind_is_told_by_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (text, says) in [
        (
            JOBS,
            &[
                "parallel jobs",
                "Standard Workload Format",
                "jobs             2",
                "first            2001-09-09 01:46:40",
                "last             2001-09-09 02:46:40",
                "run times        1m to 2m",
                "1 that never ran",
                "kind = \"swf\"\nlog = \"some.file\"",
            ][..],
        ),
        (
            PRICES,
            &[
                "spot prices",
                "prices           3",
                "2020-01-01 00:00:00 to 2020-01-02 00:00:00",
                "1 row repeats the time and the price of another",
                "[cloud.prices]\n\"TYPE\" = \"some.file\"",
            ],
        ),
        (
            LIFETIMES,
            &[
                "lifetimes of VMs",
                "VMs              2",
                "preempted        1",
                "1 malformed ones",
                "--skip-malformed",
            ],
        ),
        (
            REQUESTS,
            &[
                "requests for VMs",
                "separated by commas",
                "at from 'at', type from 'type'",
                "requests         2",
                "last             1m30s",
                "csv = \"some.file\"",
            ],
        ),
        (
            AZURE,
            &[
                "Azure Public Dataset, vmtable",
                "left out: 1 without any duration (the first on line 2)",
                "1 >24 vCPUs >64 GiB on-demand",
                "types-map",
            ],
        ),
        (
            TRACE,
            &[
                "availability of spot VMs",
                "JSON of spot-traces",
                "changes          4",
                "VMs at a time    0 to 1",
                "[cloud.availability]\n\"TYPE\" = \"some.file\"",
            ],
        ),
        (
            ACTS,
            &["interruptions", "acts             2", "last             45m", "hibernate all VMs"],
        ),
        (
            TYPES,
            &[
                "instance types",
                "types            2",
                "with spot price  1",
                "catalogue = \"some.file\"",
            ],
        ),
        (DESCRIBED, &["instance types", "describe-instance-types", "m5.large"]),
        (
            r#"[{"name": "n1-standard-4", "guestCpus": 4, "memoryMb": 15360, "zone": "us-central1-a"}]"#,
            &[
                "instance types",
                "JSON of gcloud compute machine-types list",
                "vCPUs are 'guestCpus', memory is 'memoryMb' in MiB",
                "memory           15 GiB to 15 GiB",
                "it has no prices: give those of the types that you use",
                "[cloud.type-prices]\n\"n1-standard-4\" = { on-demand = PRICE, spot = PRICE }",
            ],
        ),
        (
            r#"[{"memoryInMB": 3584, "name": "Standard_D1_v2", "numberOfCores": 1}]"#,
            &["instance types", "JSON of az vm list-sizes", "Standard_D1_v2", "it has no prices"],
        ),
        (
            "SpotPriceHistory:\n- SpotPrice: '0.034'\n  Timestamp: '2024-05-01T06:00:00+00:00'\n",
            &["spot prices", "YAML of the price-history call", "prices           1"],
        ),
        (ADVISOR, &["savings on spot VMs", "66 to 66 %", "advisor = \"some.file\""]),
        (
            GOOGLE,
            &[
                "Google cluster trace 2019, instance_events as JSON",
                "spot             1",
                "1 1/32 of a machine spot",
                "600 s of the file",
                "machine-vcpus = ",
            ],
        ),
    ] {
        fs::write(at.join("some.file"), text).unwrap();
        let said = inspected(at, &["some.file"]);
        for part in says {
            assert!(said.contains(part), "'{part}' is not in\n{said}");
        }
        let json: Value = serde_json::from_str(&inspected(at, &["some.file", "--json"])).unwrap();
        assert!(
            says[0].contains(json["kind"].as_str().unwrap())
                || says[0].contains("trace")
                || says[0].contains("vmtable"),
            "{json}"
        );
        assert!(said.ends_with(&format!("{}\n", json["experiment"].as_str().unwrap().trim_end())));
    }
    // The JSON of the provider's call, by the ending that its reader knows.
    fs::write(at.join("h.json"), HISTORY).unwrap();
    let said = inspected(at, &["h.json"]);
    let lines = "[cloud]\nzones = [\"us-east-1a\", \"us-east-1b\"]\n[cloud.prices]\n\
                 \"m1.small\" = { file = \"h.json\", type = \"m1.small\" }\n";
    assert!(said.contains("series           2") && said.ends_with(lines), "{said}");
}

#[test]
fn packing_and_columns_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(
        b"begun;took;what;why\n2020-01-01 00:00:10;20;x;z\n2020-01-01 00:00:05;5,5;y;z\n",
    )
    .unwrap();
    fs::write(at.join("packed"), gzip.finish().unwrap()).unwrap();
    let columns = ["packed", "--column", "at=begun", "--column", "duration=took,type=what"];
    let said = inspected(at, &columns);
    for part in [
        "table of VMs, separated by semicolons, gzip",
        "at from 'begun', type from 'what', duration from 'took'",
        "not used         why",
        "first            2020-01-01 00:00:05",
        "on-demand for    6s to 20s",
        "columns = { at = \"begun\", duration = \"took\", type = \"what\" }",
    ] {
        assert!(said.contains(part), "'{part}' is not in\n{said}");
    }
    let json: Value = serde_json::from_str(&inspected(
        at,
        &["packed", "--column", "at=begun,duration=took,type=what", "--json"],
    ))
    .unwrap();
    assert_eq!((&json["packing"], &json["unused"][0]), (&"gzip".into(), &"why".into()));
    assert_eq!(json["facts"]["requests"], "2");
}

#[test]
fn workflows_are_told_by_their_lines_and_their_keys() {
    let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/workflows"));
    for (file, says) in [
        (
            "diamond.dag",
            &[
                "diamond.dag: a workflow\n  format           DAGMan\n  tasks            4\n",
                "levels           3, the widest of 2 tasks",
                "run time         5m in all, 3m30s of the longest chain",
                "kind = \"bag\"\nworkflow = \"diamond.dag\"",
            ][..],
        ),
        (
            "blast-small.json",
            &[
                "format           WfCommons",
                "tasks            9",
                "workflow = \"blast-small.json\"",
            ],
        ),
    ] {
        let said = inspected(examples, &[file]);
        assert!(says.iter().all(|part| said.contains(part)), "{said}");
    }
    // The lines of a DAG whose submit file is not there are told of as that.
    let folder = tempfile::tempdir().unwrap();
    fs::copy(examples.join("diamond.dag"), folder.path().join("alone.dag")).unwrap();
    refused(folder.path(), &["inspect", "alone.dag"], 2, &["step.sub"]);
}

#[test]
fn a_table_of_lifetimes_may_be_headed_by_their_unit() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lives.csv"), "hours,preempted\n2,true\n0.5,false\n").unwrap();
    let said = inspected(folder.path(), &["lives.csv"]);
    for part in ["lifetimes are 'hours' in hours", "lifetimes        30m to 2h"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn what_is_no_file_of_a_known_kind_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir(at.join("run")).unwrap();
    let known = ["give one of these", "prices", "lifetimes", "requests", "jobs"];
    for (text, says) in [
        (&b"Dear diary,\n"[..], &["'Dear diary,'", known[0], known[1], known[4]][..]),
        (b"", &["it is empty; give a file of", known[2]]),
        (b" \n\n", &["it is empty"]),
        (b"\x00\x01\x02", &["'???'", known[3]]),
        (b"{\"a\": 1}", &["'{\"a\": 1}'", known[0]]),
        (
            b"SQLite format 3\0",
            &["it is SQLite, which can't be read here; unpack or convert it first"],
        ),
        (
            b"at,type,market,duration\n5,x,spot,soon\n",
            &["line 2: its duration, 'soon', is not a time"],
        ),
    ] {
        fs::write(at.join("file"), text).unwrap();
        let says: Vec<&str> = ["file"].iter().chain(says).copied().collect();
        refused(at, &["inspect", "file"], 2, &says);
        refused(at, &["inspect", "file", "--json"], 2, &says);
    }
    fs::write(at.join("file"), "when,what\n5m,preempt\n").unwrap();
    refused(at, &["inspect", "file", "--column", "time=when"], 2, &["file: it begins with"]);
    refused(at, &["inspect", "run"], 2, &["run: it is a folder; give a file"]);
    refused(at, &["inspect", "nowhere"], 2, &["nowhere"]);
    fs::write(at.join("file"), REQUESTS).unwrap();
    refused(at, &["inspect", "file", "--column", "at"], 2, &["NAME=HEADING"]);
    refused(at, &["inspect", "file", "--column", "on=at"], 2, &["file"]);
    fs::write(at.join("file"), JOBS).unwrap();
    refused(at, &["inspect", "file", "--column", "at=submit"], 2, &["leave --column out"]);
}

/// The lines that `inspect` prints for use in an experiment run as they are.
#[test]
fn the_lines_of_an_experiment_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let bag = "[workload]\nkind = \"bag\"\nname = \"j60\"\n[scheduler]\nname = \"burst-hads\"\n";
    let cloud = "[cloud]\ncatalogue = \"ec2-2020\"\n";
    // The section begins in what is printed.
    let in_cloud = "";
    let fleet = "[workload]\nkind = \"bag\"\ndeadline = \"2h\"\ntask = [{ runtime = \"5m\" }]\n[scheduler]\nname = \"fifo\"\n\
                 fleet = [{ type = \"m5.large\", market = \"spot\", count = 4 }]\n";
    let batch = "[scheduler]\nname = \"easy\"\n";
    let of_nobody = JOBS.replace("; MaxProcs: 8\n", "");
    let good = LIFETIMES.replace("n1-highcpu-2,preempted,-1\n", "");
    for (text, name, before, after) in [
        (JOBS, "jobs", "", batch),
        (of_nobody.as_str(), "no-machine", "", batch),
        (PRICES, "prices", cloud, bag),
        (good.as_str(), "lifetimes", cloud, bag),
        (ZONES, "zones", in_cloud, bag),
        (ZONES_ALONE, "zones-alone", in_cloud, bag),
        (TYPES_APART, "types-apart", in_cloud, bag),
        (PRODUCTS, "products", cloud, bag),
        (ONE_TYPE, "one-type", cloud, bag),
        (REQUESTS, "requests", cloud, ""),
        (
            AZURE,
            "azure",
            "[cloud]\n[[cloud.type]]\nname = \"m\"\nvcpus = 32\nmemory = \"99 GiB\"\non-demand = 1\n",
            "",
        ),
        (GOOGLE, "google", cloud, ""),
        (TRACE, "trace", cloud, bag),
        (ACTS, "acts", cloud, bag),
        (DESCRIBED, "described", "", fleet),
        (ADVISOR, "advisor", "", fleet),
    ] {
        fs::write(at.join("some.file"), text).unwrap();
        let json: Value = serde_json::from_str(&inspected(at, &["some.file", "--json"])).unwrap();
        let lines =
            json["experiment"].as_str().unwrap().replace("TYPE\" = \"some", "c3.large\" = \"some");
        let zoned = "[cloud]\nzones = ";
        let lines = lines.replace(zoned, "[cloud]\ncatalogue = \"ec2-2020\"\nzones = ");
        let experiment = format!("name = \"{name}\"\n{before}{lines}\n{after}");
        fs::write(at.join("e.toml"), &experiment).unwrap();
        let output = run_in(at, &["run", "e.toml", "--out", name]);
        assert!(
            output.status.success(),
            "{}\n{experiment}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// For every series of a file of prices, `inspect` prints a line that selects it, with the keys that the file has.
#[test]
fn lines_pick_each_series_of_prices() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (text, lines) in [
        (
            ZONES,
            "[cloud]\nzones = [\"us-east-1a\", \"us-east-1b\"]\n[cloud.prices]\n\
             \"c3.large\" = { file = \"p\", type = \"c3.large\" }\n",
        ),
        (
            ZONES_ALONE,
            "[cloud]\nzones = [\"a\", \"b\"]\n[cloud.prices]\n\
             \"TYPE\" = \"p\" # the instance type that costs this\n",
        ),
        (
            TYPES_APART,
            "[cloud]\nzones = [\"a\", \"b\"]\n[cloud.prices]\n\
             \"c3.large@a\" = { file = \"p\", type = \"c3.large\", zone = \"a\" }\n\
             \"c4.large@b\" = { file = \"p\", type = \"c4.large\", zone = \"b\" }\n",
        ),
        (
            PRODUCTS,
            "[cloud.prices]\n\
             \"c3.large\" = { file = \"p\", type = \"c3.large\", product = \"Linux/UNIX\" }\n\
             # \"c3.large\" = { file = \"p\", type = \"c3.large\", product = \"Windows\" }\n",
        ),
        (ONE_TYPE, "[cloud.prices]\n\"c3.large\" = \"p\"\n"),
    ] {
        fs::write(at.join("p"), text).unwrap();
        let json: Value = serde_json::from_str(&inspected(at, &["p", "--json"])).unwrap();
        assert_eq!(json["experiment"], lines);
    }
    let columns = ["p", "--json", "--column", "price=price,type=type"];
    let json: Value = serde_json::from_str(&inspected(at, &columns)).unwrap();
    let line = "\"c3.large\" = { file = \"p\", columns = { price = \"price\", type = \"type\" } }";
    assert_eq!(json["experiment"], format!("[cloud.prices]\n{line}\n"));
}

/// The separator of a log's fields is that of its jobs, not of the comments above them.
#[test]
fn the_separator_is_that_of_the_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let by = |separator: &str| {
        let line = |line: &str| match line.starts_with(';') {
            true => line.to_owned(),
            false => line.replace(' ', separator),
        };
        JOBS.lines().map(|text| line(text) + "\n").collect::<String>()
    };
    for (separator, says) in [(" ", None), ("\t", Some("tabs")), (";", Some("semicolons"))] {
        fs::write(at.join("log"), by(separator)).unwrap();
        let json: Value = serde_json::from_str(&inspected(at, &["log", "--json"])).unwrap();
        assert_eq!(json["separator"].as_str(), says);
    }
}

/// A broken file that can only be of one kind is read as that kind, so that the place of the mistake is named.
#[test]
fn a_broken_file_has_its_place_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (text, column, says) in [
        (
            r#"{"SpotPriceHistory": [{"Timestamp": null, "SpotPrice": 0.1}]}"#,
            "",
            "SpotPriceHistory.0",
        ),
        (r#"[{"Timestamp": "2024-05-01T00:00:00Z", "SpotPrice": "0.1"]}]"#, "", "not valid JSON"),
        (r#"{"SpotPriceHistory": []} and more"#, "", "not valid JSON"),
        (r#"{"jobs": [], "profiles": {"a": {}}}"#, "", "not a workload of Batsim"),
        (r#"{"jobs": [{"id": 1, "subtime": "#, "", "not a workload of Batsim"),
        ("when,what\n5m,preempt\n", "time=when,action=why", "it has no column 'why'"),
        ("when,what\n5m,explode\n", "time=when,action=what", "'explode' is nothing"),
        ("when,what\n5m,many\n", "time=when,count=what", "'many' is not a number of VMs"),
        ("lifetime_s,end_event\n-1,preempted\nsoon,preempted\n", "", "the first in line 2: '-1'"),
        ("name,vcpus,memory,spot\na,2,65536,1\n", "", "65536 GiB; write the unit"),
    ] {
        fs::write(at.join("file"), text).unwrap();
        let chosen = ["inspect", "file", "--column", column];
        let args = if column.is_empty() { &chosen[..2] } else { &chosen[..] };
        refused(at, args, 2, &["file", says]);
    }
}

/// Files that `run` accepts directly, and paths that are not files, are named as what they are.
#[test]
fn what_is_used_otherwise_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (name, text, says) in [
        ("e.toml", "name = \"x\"\n[workload]\nkind = \"bag\"\n", "dormouse run e.toml"),
        ("job.json", r#"{"job_id": 1, "tasks": {}}"#, "run --job job.json --env env.json"),
        ("env.json", r#"{"global_limits": {}, "instances": {}}"#, "it is an env.json"),
    ] {
        fs::write(at.join(name), text).unwrap();
        refused(at, &["inspect", name], 2, &[name, says]);
    }
    let made = std::process::Command::new("mkfifo").arg(at.join("pipe")).status().unwrap();
    assert!(made.success());
    refused(at, &["inspect", "pipe"], 2, &["pipe: it is a pipe; save it as a file"]);
    refused(at, &["inspect", "/dev/null"], 2, &["it is a device"]);
}

/// `inspect` says what each column is, and what a catalogue has.
#[test]
fn columns_are_said_of_each_kind_that_tells_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (text, says) in [
        (ZONES, &["columns          time from 'Timestamp', price from 'SpotPrice', type from"][..]),
        (
            LIFETIMES,
            &["columns          lifetimes are 'lifetime_s' in seconds, ends are 'end_event'"],
        ),
        ("uptime_h,preempted\n2,true\n", &["columns          lifetimes are 'uptime_h' in hours"]),
        (
            "name,vCPUs,Memory MiB,spot,colour\na1,2,512,0.1,red\na2,4,8192,0.2,blue\n",
            &[
                "columns          name from 'name', vcpus from 'vCPUs', memory from 'Memory MiB'",
                "not used         colour",
                "vCPUs            2 to 4",
                "memory           512 MiB to 8 GiB",
            ],
        ),
    ] {
        fs::write(at.join("some.file"), text).unwrap();
        let said = inspected(at, &["some.file"]);
        for part in says {
            assert!(said.contains(part), "'{part}' is not in\n{said}");
        }
    }
}
