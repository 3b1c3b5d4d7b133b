//! Tests of `dormouse prices`: its output on records of prices, and what it refuses.

use std::fs;
use std::path::Path;

use dormouse_tests::{refused, run_in};
use serde_json::Value;

const HISTORY: &str = r#"{"SpotPriceHistory": [
    {"AvailabilityZone": "us-east-1b", "InstanceType": "c3.large", "ProductDescription": "Linux/UNIX",
     "SpotPrice": "0.09", "Timestamp": "2020-01-02T03:00:00Z"},
    {"AvailabilityZone": "us-east-1a", "InstanceType": "c3.large", "ProductDescription": "Linux/UNIX",
     "SpotPrice": "0.04", "Timestamp": "2020-01-02T02:00:00.000Z"},
    {"AvailabilityZone": "us-east-1a", "InstanceType": "c3.large", "ProductDescription": "Linux/UNIX",
     "SpotPrice": "0.06", "Timestamp": "2020-01-02T02:00:00+01:00"},
    {"AvailabilityZone": "us-east-1a", "InstanceType": "c3.large", "ProductDescription": "Linux/UNIX",
     "SpotPrice": "0.02", "Timestamp": "2020-01-02T00:00:00Z"}]}"#;

fn described(folder: &Path, args: &[&str]) -> Value {
    let args = [&["prices", "describe", "--json"], args].concat();
    let output = run_in(folder, &args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_price_history_is_described_and_made_a_csv_of() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("h.json"), HISTORY).unwrap();
    let zone = ["h.json", "--zone", "us-east-1a", "--bid", "0.05"];
    let files = ["--write", "a.csv", "--plot", "a.svg"];
    let said = described(folder.path(), &[&zone[..], &files].concat());
    let [record] = &said["records"].as_array().unwrap()[..] else { panic!("one: {said}") };
    // An hour at 2 cents and one at 6.
    assert_eq!((record["rows"].as_u64(), record["taken"].as_u64()), (Some(3), Some(1)), "{said}");
    for (name, figure) in
        [("mean_usd", 0.04), ("median_usd", 0.02), ("most_usd", 0.06), ("available_pct", 50.0)]
    {
        assert!((record[name].as_f64().unwrap() - figure).abs() < 1e-9, "{name}: {said}");
    }
    let csv = fs::read_to_string(folder.path().join("a.csv")).unwrap();
    let dated = "time,price\n2020-01-02 00:00:00,0.02\n2020-01-02 01:00:00,0.06\n2020-01-02 02:00:00,0.04\n";
    assert_eq!(csv, dated);
    assert!(folder.path().join("a.svg").is_file());
    let again = described(folder.path(), &["a.csv", "--bid", "0.05"]);
    assert_eq!(again["records"][0]["mean_usd"], record["mean_usd"]);
    // All that a file has, but for one of which there is one price only.
    let all = described(folder.path(), &["h.json"]);
    let [one] = &all["records"].as_array().unwrap()[..] else { panic!("one: {all}") };
    assert_eq!(one["record"], "h.json: c3.large us-east-1a Linux/UNIX", "{all}");
    assert!(all["notes"].to_string().contains("us-east-1b Linux/UNIX: left out"), "{all}");
    // It is an experiment's record of prices, too.
    let experiment = r#"
name = "priced"
[cloud]
catalogue = "ec2-2020"
prices."c3.large" = { file = "h.json", zone = "us-east-1a" }
[workload]
deadline = "2h"
task = [{ runtime = "10m" }]
[checkpoint]
policy = "none"
[scheduler]
name = "fifo"
fleet = [{ type = "c3.large", market = "spot", count = 1 }]
"#;
    fs::write(folder.path().join("priced.toml"), experiment).unwrap();
    let output = run_in(folder.path(), &["run", "priced.toml", "--json", "--out", "out"]);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cost = summary["cost_usd"].as_f64().unwrap();
    assert!((cost - 0.02 / 6.0).abs() < 1e-6, "ten minutes at two cents an hour: {cost}");
}

#[test]
fn prices_are_drawn_with_the_statistics_that_are_stated() {
    let folder = tempfile::tempdir().unwrap();
    let generate = |file: &str, more: &[&str]| -> Value {
        let args =
            [&["prices", "generate", "--json", "--lasts", "365d", "-o", file], more].concat();
        let output = run_in(folder.path(), &args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let said = generate("a.csv", &[]);
    let of = |name: &str, what: &str| said[name][what].as_f64().unwrap();
    let ratio = of("mean_usd", "drawn") / of("mean_usd", "stated");
    assert!((0.99..1.01).contains(&ratio), "{said}");
    assert!((of("in_spikes", "drawn") - of("in_spikes", "stated")).abs() < 0.01, "{said}");
    let record = &described(folder.path(), &["a.csv"])["records"][0];
    assert!((record["mean_usd"].as_f64().unwrap() - of("mean_usd", "drawn")).abs() < 1e-3);
    // The same seed, the same bytes.
    let read = |file: &str| fs::read_to_string(folder.path().join(file)).unwrap();
    generate("b.csv", &["--seed", "1"]);
    generate("c.csv", &["--seed", "2"]);
    assert_eq!((read("a.csv") == read("b.csv"), read("a.csv") == read("c.csv")), (true, false));
    // They are an experiment's prices as well: above the bid the VM goes, and comes back.
    let experiment = r#"
name = "drawn"
[cloud]
catalogue = "ec2-2020"
boot = "0s"
preemption-notice = "0s"
tariff = "hour"
generated-prices."c3.large" = { model = { low = 0.02, high = 0.04, step = 0.01, every = "30m" } }
[checkpoint]
policy = "hour"
[workload]
deadline = "200h"
task = [{ runtime = "10h" }]
[scheduler]
name = "fifo"
fleet = [{ type = "c3.large", market = "spot", count = 1, bid = 0.03 }]
"#;
    fs::write(folder.path().join("drawn.toml"), experiment).unwrap();
    let output = run_in(folder.path(), &["run", "drawn.toml", "--json", "--out", "out"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(summary["counts"]["preemptions"].as_u64() > Some(0), "{summary:#}");
    assert_eq!(summary["tasks"]["completed"], 1, "{summary:#}");
    let checked = run_in(folder.path(), &["check", "out"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    for (from, to, words) in [
        ("high = 0.04", "high = 0.01", "'high' is below 'low'"),
        ("step = 0.01", "step = 0", "'step' is 0"),
        ("every = \"30m\"", "every = \"1s\"", "too many price changes for a log"),
        ("every = \"30m\"", "every = \"30m\", spike-lasts = \"1h\"", "spike-every"),
    ] {
        fs::write(folder.path().join("drawn.toml"), experiment.replace(from, to)).unwrap();
        refused(folder.path(), &["run", "drawn.toml"], 2, &["drawn.toml:", words]);
    }
    refused(folder.path(), &["prices", "generate", "--step", "0", "-o", "x.csv"], 2, &["'step'"]);
}

#[test]
fn nonsense_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("h.json", HISTORY);
    write("broken.json", "{\"SpotPriceHistory\": [{]}");
    write("other.json", "{\"Prices\": []}");
    write("empty.csv", "\n");
    write("one.csv", "6000,0.4\n");
    write("negative.csv", "6000,0.4\n6001,-0.4\n");
    for (args, words) in [
        ("h.json --zone us-west-9z", "it has prices of c3.large us-east-1a"),
        ("h.json --zone us-east-1b", "no price in it holds for any time"),
        ("broken.json", "broken.json:1"),
        ("other.json", "SpotPriceHistory"),
        ("empty.csv", "it has no prices"),
        ("one.csv", "no price in it holds for any time"),
        ("negative.csv", "negative.csv:2"),
        ("one.csv --zone us-east-1a", "leave type, zone and product out"),
        ("gone.csv", "gone.csv"),
        ("one.csv empty.csv --write x.csv", "give one file"),
        ("one.csv --bid cheap", "--bid"),
    ] {
        let args: Vec<_> = ["prices", "describe"].into_iter().chain(args.split(' ')).collect();
        refused(folder.path(), &args, 2, &[words]);
    }
    assert!(!folder.path().join("x.csv").exists());
}

/// Of two types in one answer of the provider's call, `advise bid` prefers the type that is never above the bid.
#[test]
fn the_types_of_a_history_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let entry = |kind: &str, hour: u32, price: &str| {
        format!(
            "{{\"InstanceType\": \"{kind}\", \"SpotPrice\": \"{price}\", \"Timestamp\": \"2020-01-{:02}T{:02}:00:00Z\"}}",
            1 + hour / 24,
            hour % 24
        )
    };
    let both = |hour: u32| {
        let unsteady = if hour % 3 == 2 { "0.09" } else { "0.03" };
        [
            entry("unsteady", hour, unsteady),
            entry("steady", hour, ["0.04", "0.041"][hour as usize % 2]),
        ]
    };
    let all: Vec<String> = (0..480).flat_map(both).collect();
    fs::write(
        folder.path().join("h.json"),
        format!("{{\"SpotPriceHistory\": [{}]}}", all.join(",")),
    )
    .unwrap();
    let args = ["advise", "bid", "h.json", "--on-demand", "0.05", "--job", "4h", "--json"];
    let output = run_in(folder.path(), &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = said["table"].as_array().unwrap().iter();
    let types: Vec<Value> = rows.map(|row| row["type"].clone()).collect();
    assert_eq!(
        (types, &said["type"]),
        (vec!["steady".into(), "unsteady".into()], &"steady".into()),
        "{said}"
    );
    // An experiment has to say which.
    let pick = ["prices", "describe", "h.json", "--write", "x.csv"];
    refused(folder.path(), &pick, 2, &["there are 2", "records, --type"]);
}

/// Writes records of two series over twenty days: in turn two hours at a price below a bid, and an hour at a price
/// above it.
fn records(folder: &Path) {
    for (series, low, high) in [
        ("eu-west-1.linux.m1.xlarge", "0.304", "0.34"),
        ("us-east-1.linux.m2.2xlarge", "0.401", "0.45"),
    ] {
        let price = |hour: u32| if hour % 3 == 2 { high } else { low };
        let rows = (0..480).map(|hour| format!("{},{}\n", hour * 3_600, price(hour)));
        fs::write(folder.join(format!("{series}.csv")), rows.collect::<String>()).unwrap();
    }
}

#[test]
fn the_schemes_are_compared_over_records_that_are_given() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    records(&data);
    let args = ["reproduce", "acc/figure-7", "--seeds", "2", "--data", "data", "--out", "out"];
    let output = run_in(folder.path(), &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = fs::read_to_string(folder.path().join("out/table.csv")).unwrap();
    let cost = |scheme: &str| -> f64 {
        let case = format!("us-east-1.linux.m2.2xlarge/standard/bid-0.421/{scheme},cost_usd,");
        let row =
            table.lines().find(|row| row.starts_with(&case)).unwrap_or_else(|| panic!("{table}"));
        row.split(',').nth(3).unwrap().parse().unwrap()
    };
    // Nobody is left alone for 500 minutes; whoever knows when it ends pays the least.
    assert!(!table.contains("bid-0.421/none,cost_usd,"), "{table}");
    assert!(cost("opt") < cost("acc") && cost("acc") < cost("hour"), "{table}");
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("Of 2 records 0 are odd"), "{page}");
    // What is odd about a record is said on the page and beside the figures, of all that are given.
    fs::write(data.join("other.csv"), "7200,0.3\n0,0.2\n3600,0.3\n").unwrap();
    let output = run_in(folder.path(), &[&args[..], &["--force"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    let results: Value = serde_json::from_str(&read("results.json")).unwrap();
    let records = results["price_records"].as_array().unwrap();
    let notes: Vec<_> =
        records.iter().map(|record| record["notes"].as_array().unwrap().len()).collect();
    assert_eq!((notes, &records[1]["file"]), (vec![0, 1, 0], &"other.csv".into()), "{records:?}");
    for said in [read("report.html"), records[1]["notes"].to_string()] {
        assert!(said.contains("1 of 3 rows are earlier than the one before"), "{said}");
    }
    // What is missing is said.
    fs::remove_file(data.join("us-east-1.linux.m2.2xlarge.csv")).unwrap();
    refused(
        folder.path(),
        &args[..6],
        2,
        &["it has no record called us-east-1.linux.m2.2xlarge (.csv or .json, any ending)"],
    );
    fs::write(data.join("broken.csv"), "1,2\n1;2\n").unwrap();
    refused(folder.path(), &args[..6], 2, &["broken.csv:2"]);
    refused(folder.path(), &["reproduce", "acc/figure-7"], 2, &["--data DIR"]);
}

/// The folder may have records of any format; files that are not records are named and skipped.
#[test]
fn records_of_a_folder_are_of_any_form() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    records(&data);
    let args = ["reproduce", "acc/figure-7", "--seeds", "2", "--data", "data", "--force", "--out"];
    let table = |out: &str| {
        let output = run_in(folder.path(), &[&args[..], &[out]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (fs::read_to_string(folder.path().join(out).join("table.csv")).unwrap(), said)
    };
    let (from_csv, _) = table("csv");
    for series in ["eu-west-1.linux.m1.xlarge", "us-east-1.linux.m2.2xlarge"] {
        let csv = fs::read_to_string(data.join(format!("{series}.csv"))).unwrap();
        fs::remove_file(data.join(format!("{series}.csv"))).unwrap();
        let entry = |row: &str| {
            let (at, price) = row.split_once(',').unwrap();
            let hour: u32 = at.parse::<u32>().unwrap() / 3_600;
            let at = format!("2016-04-{:02} {:02}:00:00+00:00", 1 + hour / 24, hour % 24);
            format!("{{\"Timestamp\": \"{at}\", \"SpotPrice\": \"{price}\"}}")
        };
        let mut entries: Vec<_> = csv.lines().map(entry).collect();
        entries.reverse();
        let json = format!("{{\"SpotPriceHistory\": [{}]}}", entries.join(",\n"));
        fs::write(data.join(format!("{series}.json")), json).unwrap();
    }
    fs::write(data.join("README.md"), "Prices of two types.\n").unwrap();
    fs::write(data.join("c1.medium-us-east-1d"), "").unwrap();
    let (from_json, said) = table("json");
    assert_eq!(from_json, from_csv);
    for file in ["README.md", "c1.medium-us-east-1d"] {
        assert!(
            said.contains(&format!("{file}: it has no spot prices, and was left out")),
            "{said}"
        );
    }
    for name in ["eu-west-1.linux.m1.xlarge", "us-east-1.linux.m2.2xlarge"] {
        fs::remove_file(data.join(format!("{name}.json"))).unwrap();
    }
    let none = ["reproduce", "acc/figure-7", "--data", "data"];
    refused(folder.path(), &none, 2, &["it has no files of spot prices"]);
}

/// Columns of prices are found by their headings, or can be named, in experiments too.
#[test]
fn columns_of_prices_can_be_said() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "when,cost now,where\n2024-05-01T06:00:00Z,0.034,a\n2024-05-01T06:00:00Z,9,b\n\
                2024-05-01T10:00:00Z,0.035,a\n2024-05-01T10:00:00Z,9.5,b\n";
    fs::write(folder.path().join("p.csv"), rows).unwrap();
    let said = ["--column", "time=when", "--column", "price=cost now,zone=where"];
    let all = described(folder.path(), &[&["p.csv"], &said[..]].concat());
    assert_eq!(all["records"].as_array().unwrap().len(), 2, "{all}");
    refused(
        folder.path(),
        &["prices", "describe", "p.csv"],
        2,
        &["p.csv:1:1", "is not a time and a price"],
    );
    let args = ["prices", "describe", "p.csv", "--column", "cost=what"];
    refused(folder.path(), &args, 2, &["no column is called 'cost' here"]);
    let experiment = r#"
name = "priced"
[cloud]
catalogue = "ec2-2020"
prices."c3.large" = { file = "p.csv", zone = "a", columns = { time = "when", price = "cost now", zone = "where" } }
[workload]
deadline = "2h"
task = [{ runtime = "10m" }]
[checkpoint]
policy = "none"
[scheduler]
name = "fifo"
fleet = [{ type = "c3.large", market = "spot", count = 1 }]
"#;
    fs::write(folder.path().join("priced.toml"), experiment).unwrap();
    let output = run_in(folder.path(), &["run", "priced.toml", "--json", "--out", "out"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cost = summary["cost_usd"].as_f64().unwrap();
    assert!((cost - 0.034 / 6.0).abs() < 1e-6, "ten minutes at 3.4 cents an hour: {cost}");
}

/// The types are those in the folder, one or many; each is swept over all bids.
#[test]
fn every_type_of_a_folder_is_swept_over_all_bids() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    records(&data);
    let figure = |part: &str, figure: &str| -> f64 {
        let args = ["reproduce", part, "--seeds", "2", "--data", "data", "--force", "--out", "out"];
        let output = run_in(folder.path(), &args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let table = fs::read_to_string(folder.path().join("out/table.csv")).unwrap();
        let row = table.lines().find(|row| row.starts_with(figure));
        row.unwrap_or_else(|| panic!("{figure}: {table}"))
            .split(',')
            .nth(3)
            .unwrap()
            .parse()
            .unwrap()
    };
    // Without checkpoints a job of 500 minutes is done only where it is never taken: from .340 and from .450 on.
    let pairs = "folder/standard/all-bids/acc,pairs,";
    assert!((figure("acc/sweep", pairs) - f64::from(1_661 + 1_551)).abs() < 1e-6);
    let done = "folder/standard/all-bids/hour,done_pct,";
    assert!(figure("acc/sweep", done) > 100.0 * f64::from(1_661 + 1_551) / 4_002.0 * 0.9);
    fs::remove_file(data.join("us-east-1.linux.m2.2xlarge.csv")).unwrap();
    assert!((figure("acc/sweep", pairs) - 1_661.0).abs() < 1e-6);
    refused(folder.path(), &["reproduce", "acc/sweep"], 2, &["--data DIR"]);
}

#[test]
fn without_records_prices_are_generated() {
    let folder = tempfile::tempdir().unwrap();
    // What is of the paper needs its records: no claim can be judged, and no status of success says so.
    let output = run_in(folder.path(), &["reproduce", "acc", "--seeds", "2", "--out", "out"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains("none of the paper's claims could be judged")
            && error.contains("--data DIR")
    );
    let table = fs::read_to_string(folder.path().join("out/table.csv")).unwrap();
    assert!(table.contains("generated/standard/available-50/acc,cost_usd,"), "{table}");
    assert!(!table.contains("m1.xlarge"), "{table}");
}
