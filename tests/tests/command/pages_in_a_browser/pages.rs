//! Pages of all kinds, made by the program with small runs.

use std::fs;
use std::path::Path;

use dormouse_tests::{Watch, dormouse_says};

/// Kinds of pages, each with the command that makes one; those that take longest come first.
pub(super) const KINDS: [(&str, &str); 11] = [
    ("reproduce", "reproduce measy/figure-6 --jobs 200 --cause-jobs 0"),
    ("watch", "run j60-sc2 --virtual"),
    ("watch-provider", "run provider-saturated --virtual"),
    ("bag", "run j60-sc2 --virtual"),
    ("tenants", "run shared-small --virtual"),
    ("requests", "run provider-saturated --virtual"),
    ("fit", "fit lifetimes.csv --bootstrap 40"),
    ("sweep", "sweep j60-sc2 --set scheduler.alpha=0.1,0.5 --seeds 2"),
    ("compare", "compare --schedulers burst-hads,hads --on j60-sc2 --seeds 3"),
    ("jobs", "run batch-small --virtual"),
    ("advise", "advise reuse --job 2h"),
];

/// Lifetimes of 60 VMs, in hours: many short, many near a day.
fn lifetimes() -> String {
    let hours = |n: u32| {
        let part = f64::from(n) / 60.0;
        if part < 0.4 { 0.1 + part * 4.0 } else { 24.0 - (1.0 - part) * 6.0 }
    };
    let rows = (0..60).map(|n| format!("{:.3},preempted\n", hours(n)));
    format!("lifetime_h,end_event\n{}", rows.collect::<String>())
}

/// A page, and the process that serves it if there is one.
pub(super) struct Page {
    address: String,
    _server: Option<Watch>,
}

impl Page {
    pub(super) fn address(&self) -> &str {
        &self.address
    }
}

/// Makes a page of this kind in a folder of that name. The page of a replayed run stands for that of a live run.
pub(super) fn made(kind: &str, command: &str, folder: &Path) -> Page {
    let recorded = folder.join("lifetimes.csv");
    let out = folder.join(kind);
    if command.contains("lifetimes.csv") {
        fs::write(&recorded, lifetimes()).unwrap();
    }
    let command = command.replace("lifetimes.csv", recorded.to_str().unwrap());
    let words: Vec<_> = command.split(' ').chain(["--out", out.to_str().unwrap()]).collect();
    let _ = dormouse_says(&words);
    let place = match kind {
        "watch" => Some("at=600&selected=task3&ended=yes"),
        "watch-provider" => Some("at=300000&selected=vm20&rows=host&scale=log"),
        _ => None,
    };
    if let Some(place) = place {
        let server = Watch::over(&out, &[]);
        let address = format!("http://{}/#{place}", server.address());
        return Page { address, _server: Some(server) };
    }
    Page { address: format!("file://{}", out.join("report.html").display()), _server: None }
}
