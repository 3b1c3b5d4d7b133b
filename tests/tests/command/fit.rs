//! Tests of `dormouse fit`: valid and damaged files of lifetimes, and the use of the fit in an experiment.

use std::fs;
use std::path::{Path, PathBuf};

use dormouse_tests::{BAG, refused, run_in};
use serde_json::Value;

const HEAD: &str = "machine_type,zone,workload,end_event,lifetime_s,hr_of_day,insert_time\n";

/// A valid file of lifetimes: forty VMs of two types, every fourth of which was stopped; from 90 s to 40 h, in
/// seconds.
fn good() -> String {
    let row = |n: u32| {
        let end = if n.is_multiple_of(4) { "stop" } else { "preempted" };
        let kind = ["c3.large", "c4.large"][n as usize % 2];
        format!("{kind},z-{},idle,{end},{},{},t{n}\n", n % 3, n * n * 90, n % 24)
    };
    HEAD.to_owned() + (1..=40).map(row).collect::<String>().as_str()
}

/// The JSON that the command prints.
fn fitted(folder: &Path, args: &[&str]) -> Value {
    let output = run_in(folder, &[&["fit", "--json"], args].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The files of a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut all: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    all.sort();
    all
}

#[test]
fn damaged_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let rows = |rows: &str| format!("{HEAD}{rows}");
    for (text, words) in [
        (
            String::new(),
            &["f.csv:1:1: ", "there is no column 'lifetime_s'", "name the columns"][..],
        ),
        ("end_event,lifetime\nstop,3\n".to_owned(), &["f.csv:1:1: ", "'lifetime_s'"]),
        (HEAD.to_owned(), &["f.csv: ", "too few ages", "0 VMs", "two different ages"]),
        // Nobody was preempted.
        (rows("a,z,i,stop,5,1,t1\na,z,i,stop,6,1,t2\n"), &["too few ages", "2 VMs, 0 preempted"]),
        (rows("a,z,i,preempted,5,1,t1\n"), &["too few ages", "1 VMs, 1 preempted"]),
        // All at the same age.
        (
            rows("a,z,i,preempted,5,1,t1\na,z,i,preempted,5,1,t2\na,z,i,preempted,5.0,1,t3\n"),
            &["too few ages", "3 VMs, 3 preempted"],
        ),
        (rows("a,z,i,preempted,5,1,t1\na,z,i,stop,0,1,t\n"), &["f.csv:3:1: '0' is not a lifetime"]),
        (rows("a,z,i,preempted,-5,1,t1\n"), &["f.csv:2:1: ", "'-5'", "seconds above 0"]),
        (rows("a,z,i,preempted,nan,1,t1\n"), &["f.csv:2:1: ", "'nan'"]),
        (rows("a,z,i,preempted,inf,1,t1\n"), &["f.csv:2:1: ", "'inf'"]),
        (rows("a,z,i,preempted,1e99,1,t1\n"), &["f.csv:2:1: ", "'1e99'"]),
        (rows("a,z,i,crashed,5,1,t1\n"), &["f.csv:2:1: ", "'crashed'", "preempted, or stop"]),
        (rows("a,z,i,preempted,5,noon,t1\n"), &["f.csv:2:1: ", "'noon'", "0 to 23"]),
        (rows("a,z,i,preempted\n"), &["f.csv:2:1: ", "4 columns", "names 7"]),
        (rows("\"a,z\ni"), &["f.csv:2:1: ", "a cell has a line break in it"]),
    ] {
        fs::write(at.join("f.csv"), text).unwrap();
        refused(at, &["fit", "f.csv", "--bootstrap", "0"], 2, words);
    }
    fs::write(at.join("f.csv"), b"\x7fELF\xff\xfe").unwrap();
    refused(at, &["fit", "f.csv"], 2, &["f.csv", "UTF-8"]);
    refused(at, &["fit", "none.csv"], 2, &["none.csv", "existing file"]);
    refused(at, &["fit", "."], 2, &["not a directory"]);
    for (option, value, words) in [
        ("--by", "colour", "type, zone, hour or workload"),
        ("--law", "batthub", "there is no law 'batthub'"),
        ("--bootstrap", "-1", "-1"),
        ("--bootstrap", "99999", "99999"),
    ] {
        let output = run_in(at, &["fit", "f.csv", option, value]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(words), "{said}");
    }
    assert_eq!(names(at), ["f.csv"], "nothing is left behind");
}

#[test]
fn order_and_repetition_change_nothing_and_what_is_left_out_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let text = good();
    fs::write(at.join("a.csv"), &text).unwrap();
    let mut rows: Vec<_> = text.lines().skip(1).collect();
    rows.reverse();
    let (first, junk) = (rows[0], "a,z,i,preempted,soon,1,t");
    let torn = format!("{HEAD}{}\n{junk}\n{first}\n", rows.join("\r\n"));
    fs::write(at.join("b.csv"), torn).unwrap();
    let options = ["--bootstrap", "0", "--by", "type"];
    let [a, b] = ["a.csv", "b.csv"]
        .map(|file| fitted(at, &[&[file, "--skip-malformed"], &options[..]].concat()));
    assert_eq!(a["groups"], b["groups"]);
    assert_eq!(a["left_out"], serde_json::json!({ "repeated": 0, "malformed": 0 }));
    assert_eq!(b["left_out"], serde_json::json!({ "repeated": 1, "malformed": 1 }));
    assert_eq!(a["groups"].as_array().map(Vec::len), Some(3));
    let output = run_in(at, &["fit", "b.csv", "--skip-malformed", "--bootstrap", "0"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.contains("1 malformed ones, the first in line 42: 'soon' is not a lifetime"),
        "{said}"
    );
}

#[test]
fn a_fit_becomes_a_part_of_an_experiment_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("lives.csv"), good()).unwrap();
    fs::write(at.join("x.toml"), BAG).unwrap();
    for law in ["bathtub", "exponential", "weibull", "gompertz-makeham", "uniform"] {
        fs::write(at.join("x.toml"), BAG).unwrap();
        let options = ["--by", "type", "--law", law, "--write", "x.toml", "--bootstrap", "0"];
        let fit = [&["fit", "lives.csv", "--out", "fits"], &options[..]].concat();
        let output = run_in(at, &fit);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let whole = fs::read_to_string(at.join("x.toml")).unwrap();
        assert!(whole.starts_with(BAG) && whole.matches("model = \"lifetime\"").count() == 2);
        let output = run_in(at, &["run", "x.toml", "--force", "--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        refused(
            at,
            &fit,
            2,
            &["x.toml:", "its VMs have lifetimes already", "take those lifetimes out"],
        );
    }
    assert_eq!(
        names(&at.join("fits")),
        ["fit.csv", "interruption.toml", "plot.svg", "report.html"]
    );
    let csv = fs::read_to_string(at.join("fits/fit.csv")).unwrap();
    assert!(csv.starts_with("case,metric,ours_mean,ours_ci95_low,ours_ci95_high,n\n"), "{csv}");
    assert!(csv.contains("\nc4.large/kaplan-meier/weibull,shape,"), "{csv}");
    let page = fs::read_to_string(at.join("fits/report.html")).unwrap();
    assert!(page.contains("kaplan-meier") && !page.contains("NaN"), "{page}");
    // One of all VMs, and the file is made.
    let new = ["fit", "lives.csv", "--write", "new.toml", "--bootstrap", "0", "--kaplan-meier"];
    assert!(run_in(at, &new).status.success());
    let made = fs::read_to_string(at.join("new.toml")).unwrap();
    assert!(made.contains("\nbathtub = { a = 0.") && !made.contains("type ="), "{made}");
    // Or one of some of them, for all.
    fs::write(at.join("x.toml"), BAG).unwrap();
    let options = ["--by", "type", "--group", "c4.large", "--write", "x.toml", "--bootstrap", "0"];
    assert!(run_in(at, &[&["fit", "lives.csv"], &options[..]].concat()).status.success());
    let one = fs::read_to_string(at.join("x.toml")).unwrap();
    assert!(one.contains("\n[[interruption]]\nmodel = \"lifetime\"\nbathtub"), "{one}");
    let other = ["fit", "lives.csv", "--by", "type", "--group", "c4.lage", "--bootstrap", "0"];
    refused(at, &other, 2, &["there are no such VMs", "did you mean 'c4.large'?"]);
    // Types that the experiment has not are left to its reader.
    let less = BAG.replace("catalogue = \"ec2-2020\"", "type = [{ name = \"c4.large\", vcpus = 2, memory = \"4 GiB\", spot = 0.03, on-demand = 0.1 }]");
    assert_ne!(less, BAG);
    fs::write(at.join("x.toml"), less).unwrap();
    let options = ["--by", "type", "--write", "x.toml", "--bootstrap", "0"];
    assert!(run_in(at, &[&["fit", "lives.csv"], &options[..]].concat()).status.success());
    let one = fs::read_to_string(at.join("x.toml")).unwrap();
    assert_eq!(one.matches("\n[[interruption]]").count(), 1, "{one}");
    assert!(one.contains("# The experiment has no such type:\n# [[interruption]]"), "{one}");
    let output = run_in(at, &["run", "x.toml", "--force", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Two ages are enough for a mean, and for no bathtub to write.
    fs::write(at.join("few.csv"), format!("{HEAD}a,,,preempted,9,,\na,,,preempted,400000,,\n"))
        .unwrap();
    let few = fitted(at, &["few.csv", "--bootstrap", "0"]);
    let fits = &few["groups"][0]["preempted"]["fits"];
    assert!(fits["exponential"]["r_squared"].is_number() && fits["bathtub"].is_null(), "{few}");
    refused(at, &["fit", "few.csv", "--write", "few.toml"], 2, &["too few ages", "of five"]);
    assert!(!at.join("few.toml").exists());
}

/// The same VMs with other columns, units and formats give the same fit.
#[test]
fn columns_and_units_can_be_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("a.csv"), good()).unwrap();
    let rows = |of: fn(&str, f64) -> String| -> String {
        let text = good();
        let rows = text.lines().skip(1).map(|row| {
            let cells: Vec<_> = row.split(',').collect();
            of(cells[3], cells[4].parse().unwrap())
        });
        rows.collect()
    };
    let hours = rows(|end, s| format!("{};{}\n", s / 3_600.0, end == "preempted"));
    fs::write(at.join("hours.csv"), format!("Lifetime_Hours;Preempted\n{hours}")).unwrap();
    let own =
        rows(|end, s| format!("{},{}\n", s / 60.0, if end == "stop" { "user" } else { "outbid" }));
    fs::write(at.join("own.csv"), format!("age,why\n{own}")).unwrap();
    let of = |args: &[&str]| fitted(at, &[args, &["--bootstrap", "0"]].concat());
    let said = ["own.csv", "--lifetime", "age", "--unit", "m", "--end", "why=outbid"];
    let plain = of(&["a.csv"])["groups"].clone();
    let near = |other: &Value| {
        let mean = |groups: &Value| {
            let fits = &groups[0]["preempted"]["fits"];
            fits["exponential"]["mean_h"]["value"]
                .as_f64()
                .or(fits["exponential"]["r_squared"].as_f64())
        };
        let (one, two) = (mean(&plain).unwrap(), mean(&other["groups"]).unwrap());
        assert!((one / two - 1.0).abs() < 1e-6, "{one} {two}");
    };
    near(&of(&["hours.csv"]));
    let chosen = of(&said);
    near(&chosen);
    assert!(chosen["notes"].to_string().contains("lifetimes are 'age' in minutes"), "{chosen}");
    refused(
        at,
        &["fit", "own.csv"],
        2,
        &["own.csv:1:1", "there is no column 'lifetime_s'", "--lifetime"],
    );
    refused(
        at,
        &said[..3].iter().copied().fold(vec!["fit"], |mut all, it| {
            all.push(it);
            all
        }),
        2,
        &["end_event"],
    );
    // The same file is what an experiment's VMs live.
    for interruption in [
        "model = \"replay\"\nfile = \"own.csv\"\nlifetime = \"age\"\nunit = \"m\"\nend = \"why=outbid\"",
        "model = \"lifetime\"\nrecorded = { file = \"own.csv\", lifetime = \"age\", unit = \"m\", end = \"why=outbid\" }",
        "model = \"lifetime\"\nrecorded = \"hours.csv\"",
    ] {
        fs::write(at.join("x.toml"), format!("{BAG}\n[[interruption]]\n{interruption}\n")).unwrap();
        let output = run_in(at, &["run", "x.toml", "--force"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert!(said.contains("lifetimes are '"), "{said}");
        assert_eq!(
            said.contains("VMs that were not preempted are left out"),
            interruption.contains("recorded"),
            "{said}"
        );
    }
    let wrong = "model = \"replay\"\nfile = \"own.csv\"\nunit = \"weeks\"";
    fs::write(at.join("x.toml"), format!("{BAG}\n[[interruption]]\n{wrong}\n")).unwrap();
    refused(
        at,
        &["run", "x.toml"],
        2,
        &["x.toml:", "'weeks' is not a possible unit", "write s, m, h or d"],
    );
}

/// The lifetimes of Google's preemptible VMs without one zone, if they are there, beside what was
/// computed from all of them (PAPERS.md, section 4).
#[test]
fn googles_vms_are_near_the_reference() {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let data = std::env::var_os("DORMOUSE_DATA").map_or(beside, PathBuf::from);
    let file = data.join("preemptions/google-2019.csv");
    if !file.exists() {
        println!("skipped: there is no {}; set DORMOUSE_DATA", file.display());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = file.to_string_lossy();
    let all = fitted(folder.path(), &[&*file, "--by", "type", "--bootstrap", "0"]);
    let group = |name: Option<&str>| {
        let all = all["groups"].as_array().unwrap();
        all.iter().find(|group| group["group"].as_str() == name).unwrap()["preempted"].clone()
    };
    // a, b, tau1, tau2 within these parts of the reference, for a zone is missing.
    for (name, reference, r_squared) in [
        (None, [0.4137, 24.453, 0.9498, 0.7675], 0.968),
        (Some("n1-highcpu-16"), [0.4227, 24.453, 1.060, 0.784], 0.957),
        (Some("n1-highcpu-2"), [0.2654, 24.042, 1.711, 0.754], 0.957),
    ] {
        let bathtub = group(name)["fits"]["bathtub"].clone();
        let names = ["a", "b_h", "tau1_h", "tau2_h"].into_iter();
        for ((key, real), near) in names.zip(reference).zip([0.1, 0.01, 0.25, 0.05]) {
            let ours = bathtub["numbers"][key]["value"].as_f64().unwrap();
            assert!((ours / real - 1.0).abs() < near, "{name:?} {key}: {ours}, {real}");
        }
        let ours = bathtub["r_squared"].as_f64().unwrap();
        assert!((ours - r_squared).abs() < 0.015, "{name:?}: {ours}");
    }
    let r_squared = |law: &str| group(None)["fits"][law]["r_squared"].as_f64().unwrap();
    for (law, reference) in
        [("exponential", 0.749), ("weibull", 0.848), ("gompertz-makeham", 0.776)]
    {
        assert!((r_squared(law) - reference).abs() < 0.03, "{law}: {}", r_squared(law));
        assert!(r_squared("bathtub") > r_squared(law) + 0.05, "{law}");
    }
}
