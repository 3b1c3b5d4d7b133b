//! What a page compares its run with is what other runs, and the run's own summary, have.

use std::fs;
use std::path::Path;
use std::process::Command;

use dormouse_tests::{dormouse, dormouse_says};
use serde_json::Value;

/// The page and summary of a run with these words.
fn made(folder: &Path, words: &str) -> (String, Value) {
    let out = folder.join(words.replace([' ', '-'], ""));
    let output =
        Command::new(dormouse()).args(words.split(' ')).arg("--out").arg(&out).output().unwrap();
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    (
        read("report.html").replace('\u{a0}', " "),
        serde_json::from_str(&read("summary.json")).unwrap(),
    )
}

/// The mean response under EASY that the page of another scheduler has is that of a run under EASY, whose own page has none.
#[test]
fn a_page_of_jobs_has_the_times_of_easy() {
    const UNDER: &str =
        "under easy, the usual scheduler of clusters, with one job on each processor: ";
    let folder = tempfile::tempdir().unwrap();
    let (page, summary) = made(folder.path(), "run batch-small");
    let (of_easy, easy) = made(folder.path(), "run batch-small --scheduler easy");
    assert!(!of_easy.contains(UNDER));
    let of = |summary: &Value, name: &str| summary[name].as_f64().unwrap();
    let [is, was] = [&summary, &easy].map(|it| of(it, "mean_response_s"));
    assert!(is < was, "{is} {was}");
    let shorter =
        format!("<b>{:.1} % shorter</b> than {UNDER}{was:.0} s", (1.0 - is / was) * 100.0);
    assert!(page.contains(&shorter), "{shorter} is not in the page");
    let slowdown = format!("{UNDER}{was:.0} s, slowdown {:.2}", of(&easy, "mean_bounded_slowdown"));
    assert!(page.contains(&slowdown), "{slowdown} is not in the page");
    let work = of(&summary, "utilisation") * 16.0;
    let work = format!("processors kept busy, on average <b>{work:.1} of 16</b>");
    assert!(page.contains(&work), "{work} is not in the page");
}

/// A provider's page has the revenue beside that and what was missed, and the requests' load: as its summary's and its
/// table's sums.
#[test]
fn a_page_of_a_provider_has_what_it_could_have_earned_and_served() {
    let folder = tempfile::tempdir().unwrap();
    let (page, summary) = made(folder.path(), "run provider-saturated");
    let lost = summary["requests"]["revenue_lost_usd"].as_object().unwrap();
    let missed: f64 = lost.values().map(|usd| usd.as_f64().unwrap()).sum();
    let earned = summary["cost_usd"].as_f64().unwrap();
    let possible = format!("; ${:.2} with all that it missed.", earned + missed);
    assert!(page.contains(&possible), "{possible} is not in the page");
    let gauge = format!("earned of that <b>{:.1} %</b>", earned / (earned + missed) * 100.0);
    assert!(page.contains(&gauge), "{gauge} is not in the page");
    let table =
        fs::read_to_string(folder.path().join("runprovidersaturated/requests.csv")).unwrap();
    let mut lines = table.lines();
    let heads: Vec<_> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| {
        heads.iter().position(|head| *head == name).unwrap_or_else(|| panic!("{name}: {heads:?}"))
    };
    let [kind, duration, arrived] = ["type", "duration_s", "arrived_s"].map(column);
    let (mut wanted, mut last) = (0.0, 0.0_f64);
    for line in lines {
        let cells: Vec<_> = line.split(',').collect();
        let number = |n: usize| cells[n].parse::<f64>().unwrap();
        let vcpus = match cells[kind] {
            "small" => 1.0,
            "medium" => 2.0,
            _ => 4.0,
        };
        wanted += vcpus * number(duration);
        last = last.max(number(arrived));
    }
    // Four hosts with eight vCPUs each, from the beginning on.
    let load = wanted / (32.0 * last);
    let load = format!("<b>{load:.1} times</b> what the hosts can give was requested");
    assert!(page.contains(&load), "{load} is not in the page");
}

/// The mean cost that a bag's page has of 30 seeds is that of a sweep over them, and the run is dearer than as many of the others
/// as have a lower cost.
#[test]
fn a_page_of_a_bag_has_the_mean_of_a_sweep_over_seeds() {
    let folder = tempfile::tempdir().unwrap();
    let (page, summary) = made(folder.path(), "run j60-sc2");
    let out = folder.path().join("sweep");
    let words = ["sweep", "j60-sc2", "--seeds", "30", "--out", out.to_str().unwrap()];
    let _ = dormouse_says(&words);
    let mean = |metric: &str| {
        let table = fs::read_to_string(out.join("table.csv")).unwrap();
        let line = table.lines().find(|line| line.split(',').nth(2) == Some(metric));
        line.unwrap().split(',').nth(3).unwrap().parse::<f64>().unwrap()
    };
    for said in [
        format!("<b>${:.4}</b> mean cost of 30 seeds", mean("cost_usd")),
        format!("<b>{:.0} s</b> mean makespan", mean("makespan_s")),
    ] {
        assert!(page.contains(&said), "{said} is not in the page");
    }
    let runs = fs::read_to_string(out.join("samples.csv")).unwrap();
    let mut lines = runs.lines();
    let cost = lines.next().unwrap().split(',').position(|head| head == "cost_usd").unwrap();
    let costs = lines.map(|line| line.split(',').nth(cost).unwrap().parse::<f64>().unwrap());
    let own = summary["cost_usd"].as_f64().unwrap();
    let dearer = costs.filter(|other| *other > own + 1e-9).count();
    let said = format!("It is cheaper than {dearer} and faster than ");
    assert!(page.contains(&said), "{said} is not in the page");
}
