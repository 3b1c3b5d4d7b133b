//! Tests of `dormouse advise`: its answers, its files, and what it refuses.

use std::path::Path;

use dormouse_tests::{refused, run_in};
use serde_json::Value;

fn said(folder: &Path, args: &[&str]) -> Value {
    let args: Vec<_> = ["advise"].iter().chain(args).chain(&["--json"]).copied().collect();
    let output = run_in(folder, &args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn work(advice: &Value) -> Vec<f64> {
    let rows = advice["table"].as_array().unwrap();
    rows.iter().map(|row| row["work_min"].as_f64().unwrap()).collect()
}

#[test]
fn when_to_checkpoint_a_job_of_five_hours() {
    let folder = tempfile::tempdir().unwrap();
    let of = |args: &[&str]| said(folder.path(), &[&["checkpoints", "--job", "5h"], args].concat());
    let theirs = of(&["--mode", "artifact"]);
    assert_eq!(work(&theirs), [15.0, 18.0, 22.0, 28.0, 38.0, 59.0, 120.0]);
    assert!((theirs["own_sum_min"].as_f64().unwrap() - 310.0687).abs() < 0.01);
    let ours = of(&["--out", "advice"]);
    assert!((ours["expected_min"].as_f64().unwrap() - 316.06).abs() < 0.01);
    let own_sum = ours["own_sum_min"].as_f64().unwrap();
    assert!((ours["expected_min"].as_f64().unwrap() - own_sum).abs() < 1e-6, "{ours}");
    // By one reckoning theirs is the longer one.
    assert!(theirs["expected_min"].as_f64() > ours["expected_min"].as_f64(), "{theirs}");
    for file in ["table.csv", "plot.svg", "report.html"] {
        assert!(folder.path().join("advice").join(file).is_file(), "{file}");
    }
    // VMs that never fail: all in one go.
    assert_eq!(work(&of(&["--model", "mean = \"1000000d\""])), [300.0]);
    // A fit is a model.
    let file = "[[interruption]]\nmodel = \"lifetime\"\nuniform = { to = \"24h\" }\n";
    std::fs::write(folder.path().join("fit.toml"), file).unwrap();
    assert!(work(&of(&["--model", "fit.toml"])).len() > 1);
}

#[test]
fn whether_to_take_the_vm_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let of = |age| said(folder.path(), &["reuse", "--job", "6h", "--age", age])["reuse"].clone();
    assert_eq!([of("6h"), of("20h"), of("24h")], [true, false, false]);
}

/// The advice on bids for two types: the provider takes one away every second hour, the other after eight hours of
/// ten.
#[test]
fn what_to_bid_and_of_which_type() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, rows: &[(u32, &str)]| {
        let rows = rows.iter().map(|(hour, price)| format!("{},{price}\n", hour * 3_600));
        std::fs::write(folder.path().join(name), rows.collect::<String>()).unwrap();
    };
    let hourly: Vec<_> = (0..11).map(|h| (h, if h % 2 == 0 { "0.05" } else { "0.3" })).collect();
    write("hourly.csv", &hourly);
    write("steady.csv", &[(0, "0.05"), (8, "0.3"), (10, "0.05")]);
    let of = |args: &[&str]| {
        let files = ["bid", "hourly.csv", "steady.csv"];
        said(folder.path(), &[&files, args, &["--job", "4h", "--restart", "0s"]].concat())
    };
    let advice = of(&["--on-demand", "0.3,0.2", "--out", "advice"]);
    assert_eq!(advice["type"], "steady");
    let rows = advice["table"].as_array().unwrap();
    assert_eq!((&rows[0]["taken"], &rows[1]["taken"]), (&5.into(), &1.into()));
    assert_eq!(
        (rows[1]["expected_min"].as_f64(), &rows[0]["expected_min"]),
        (Some(240.0), &Value::Null)
    );
    assert_eq!(rows[1]["none_usd"].as_f64(), Some(0.2), "four hours at five cents");
    assert!(folder.path().join("advice/report.html").is_file());
    // Nobody is left alone for four hours by a bid below every price.
    assert_eq!(of(&["--bid", "0.01"])["type"], Value::Null);
}

#[test]
fn nonsense_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("junk.csv"), "0,0.1\n60,many\n").unwrap();
    std::fs::write(folder.path().join("empty.csv"), "").unwrap();
    std::fs::write(folder.path().join("none.toml"), "[[interruption]]\nmodel = \"poisson\"\n")
        .unwrap();
    for (args, words) in [
        ("checkpoints --job 0s", "--job 0s"),
        ("checkpoints --job 90s", "not a whole number"),
        ("checkpoints --job 1h --step 0s", "another --step"),
        ("checkpoints --job 400d", "coarser steps"),
        ("checkpoints --job 5h --age 25h", "no VM reaches the age"),
        ("checkpoints --job 5h --mode text", "conditional"),
        ("checkpoints --job 5h --model mean=1", "write a text with its unit"),
        ("checkpoints --job 5h --model gone.toml", "gone.toml"),
        ("checkpoints --job 5h --model none.toml", "no law of lifetimes"),
        ("checkpoints --job 5h --model uniform={to=\"30s\"}", "no VM lives long enough"),
        ("reuse --job 0s", "give a job longer than 0s"),
        ("reuse --job 1h --age 30h", "no VM reaches this age"),
        ("reuse --job 1h --policy best", "expected-time"),
        ("bid empty.csv --bid 0.1", "it has no prices"),
        ("bid junk.csv --bid 0.1", "junk.csv:2"),
        ("bid gone.csv --bid 0.1", "gone.csv"),
        ("bid empty.csv", "--on-demand"),
        ("bid empty.csv --bid=-1", "--bid"),
        ("bid empty.csv --bid 0.1 --job 0s", "--job 0s"),
    ] {
        let args: Vec<_> = ["advise"].into_iter().chain(args.split(' ')).collect();
        refused(folder.path(), &args, 2, &[words]);
    }
}
