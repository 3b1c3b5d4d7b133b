//! The live page in a real Chromium with a large run: the time until the page has loaded all of the run, and the time
//! that frames take.
//!
//! `cargo bench -p dormouse-tests --bench live_page`; it needs Debian's `chromium` and `chromium-driver`.

use std::fs;
use std::time::{Duration, Instant};

use dormouse_samples::Samples;
use dormouse_tests::{Browser, Watch, dormouse_says};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const FRAMES: &str = include_str!("live_page/frames.js");

/// A script that reads the stream of changes and parses each change without drawing; gives the milliseconds until the
/// wanted number of changes has come.
const BARE: &str = r#"
const [all, done] = arguments;
const begun = performance.now();
const source = new EventSource("/api/changes?from=0");
source.addEventListener("message", (event) => {
  JSON.parse(event.data);
  if (Number(event.lastEventId) < all) return;
  source.close();
  done(performance.now() - begun);
});
"#;

/// 2,000 VMs at once, which hibernate and resume, and 20,000 tasks on them.
const LARGE: &str = r#"name = "large"
seed = 1
[cloud]
catalogue = "ec2-2020"
limits = { spot = 2000, on-demand = 10 }
[[interruption]]
model = "poisson"
k-hibernate = 3
k-resume = 30
scope = "vm"
[workload]
kind = "bag"
deadline = "12h"
[[workload.task]]
name = "small"
count = 10000
memory = "10 MB"
runtime = { "c3.large" = "1500s", "t3.large" = "1500s" }
[[workload.task]]
name = "large"
count = 10000
memory = "20 MB"
runtime = { "c3.large" = "3000s", "t3.large" = "3000s" }
[checkpoint]
overhead = 0.01
on = "spot"
[scheduler]
name = "fifo"
fleet = [{ type = "c3.large", market = "spot", count = 2000 }]
"#;

fn main() -> Outcome<()> {
    let page = Browser::start().ok_or("the measurement needs Chromium")?;
    let folder = tempfile::tempdir()?;
    let (file, out) = (folder.path().join("large.toml"), folder.path().join("out"));
    fs::write(&file, LARGE)?;
    let [from, to] = [&file, &out].map(|path| path.display().to_string());
    let _ = dormouse_says(&["run", &from, "--virtual", "--out", &to]);
    let lines = fs::read_to_string(out.join("events.jsonl"))?.lines().count();
    let watch = Watch::over(&out, &[]);
    let begun = Instant::now();
    page.open(&format!("http://{}/", watch.address()));
    let whole = "const d = document.body.dataset; return d.over === 'true' && Number(d.bars) > 0";
    page.until_within("the run is there", Duration::from_secs(120), whole, &[]);
    let took = begun.elapsed().as_secs_f64();
    let vms = page.script(
        "return Number(/(\\d+) VMs/.exec(document.getElementById('gantt-canvas').ariaLabel)[1])",
        &[],
    );
    let bare = page.script_until(BARE, &[page.number("changes").into()]);
    let bare = bare.as_f64().ok_or("the bare reader took no time")? / 1e3;
    Samples { ours: vec![took], peer: vec![bare] }.report_costs("page-load")?;
    println!(
        "{lines} events, {} changes; the page has them after {took:.1} s, a bare reader after {bare:.2} s; VMs at the end: {vms}",
        page.told("changes")
    );
    let _ = page.script("document.getElementById('scrub').value = 500; document.getElementById('scrub').dispatchEvent(new Event('input'))", &[]);
    for _ in 0..4 {
        page.click("#zoom-in");
    }
    for kind in ["pan", "zoom", "rows"] {
        let frames = page.script_until(FRAMES, &[kind.into(), 5_000.into()]);
        println!(
            "{kind}: {frames}; drawing took (p50 p95 ms) {}, bars {}",
            page.told("draw"),
            page.told("bars")
        );
        let p95 = frames["p95"].as_f64().ok_or("no frame was drawn")?;
        let display = 1_000.0 / 60.0;
        let paced = Samples { ours: vec![p95], peer: vec![display] };
        paced.report_costs(&format!("page-{kind}"))?;
    }
    page.click("#follow");
    page.click("#play");
    let frames = page.script_until(FRAMES, &["follow".into(), 5_000.into()]);
    println!("follow while it plays: {frames}; drawing took (p50 p95 ms) {}", page.told("draw"));
    let memory = page.script("return Math.round(performance.memory.usedJSHeapSize / 1e6)", &[]);
    let elements = page.script("return document.getElementsByTagName('*').length", &[]);
    println!("{memory} MB of the page's heap, {elements} elements");
    Ok(())
}
