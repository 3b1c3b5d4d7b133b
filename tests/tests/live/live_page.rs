//! The live page in a real Chromium, during real runs.
//!
//! It needs what live runs need (`tests/live.rs`), and Debian's `chromium` and `chromium-driver`.
//! Elsewhere each test is skipped and says so; with `CI=true` that is a failure.

use std::fs;
use std::path::Path;
use std::time::Duration;

use dormouse_tests::{
    Browser, UnderWay, Watch, checks_and_replays, dormouse_says, events, summary, text,
    timed_live_turn, wait_for,
};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const LOOKS: &str = include_str!("live_page/looks.js");

/// Six tasks of 600 s on spot VMs: 24 seconds of real time and what actions on the page add; only the page interrupts
/// them.
const EXPERIMENT: &str = r#"name = "looked-at"
seed = 1
[cloud]
catalogue = "ec2-2020"
boot = "60s"
[workload]
kind = "bag"
deadline = "28m"
[[workload.task]]
name = "small"
count = 6
memory = "10 MB"
runtime = { "c3.large" = "600s", "t3.large" = "600s" }
[scheduler]
name = "burst-hads"
alpha = 0.1
[live]
speedup = 30
share = 0.1
"#;

/// The address of a run's page, read from the run's folder once the page is served.
fn address_in(out: &Path) -> String {
    wait_for("the page is served", Duration::from_secs(30), || {
        let file = out.join("http");
        let said =
            fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        match said.trim() {
            "" => Err("its address is not whole yet".to_owned()),
            said => Ok(said.trim_start_matches("http://").trim_end_matches('/').to_owned()),
        }
    })
}

/// Writes a part of a virtual run to `out`, as if the run had been killed.
fn unfinished(out: &Path, folder: &Path) {
    fs::create_dir(folder).unwrap();
    let log = fs::read_to_string(out.join("events.jsonl")).unwrap();
    let some: Vec<_> = log.lines().take(200).map(|line| format!("{line}\n")).collect();
    fs::write(folder.join("events.jsonl"), some.concat()).unwrap();
}

/// A script that clicks the dialog's button and gives the milliseconds until the VM's row has one of these states.
const CONFIRM: &str = r##"
const [vm, states, done] = arguments;
const row = () => document.querySelector(`#vms [data-vm="${vm}"]`);
const begun = performance.now();
const look = () => {
  if (states.includes(row()?.dataset.state)) done(performance.now() - begun);
  else if (performance.now() - begun > 20000) done(null);
  else requestAnimationFrame(look);
};
document.querySelector("#interrupt [data-confirm]").click();
look();
"##;

#[test]
fn the_page_goes_through_a_run_that_is_interrupted_killed_and_gone_on_with() {
    const WHY: &str = "a reader of the page wants to see it";
    const RECOMMENDED: &str = "its reader recommends another";
    let Some(_turn) = timed_live_turn() else { return };
    let Some(page) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("experiment.toml"), folder.path().join("out"));
    fs::write(&file, EXPERIMENT).unwrap();
    let run = UnderWay::live(&out, &file, &["--http", "127.0.0.1:0"]);
    let address = address_in(&out);
    page.open(&format!("http://{address}/"));

    // The chart grows.
    page.until_within(
        "tasks are drawn",
        Duration::from_secs(60),
        "return Number(document.body.dataset.spans) > 0 && document.body.dataset.coordinator === 'serving'",
        &[],
    );
    let (changes, clock) = (page.number("changes"), page.number("clock"));
    page.until(
        "the chart grows",
        "const d = document.body.dataset; return Number(d.changes) > arguments[0] && Number(d.clock) > arguments[1]",
        &[changes.into(), clock.into()],
    );

    // A hibernation that is asked for here shows here, and is in the log.
    let vm = page.script(
        "return Number(document.querySelector('#vms [data-state=running]').dataset.vm)",
        &[],
    );
    page.click(&format!("#vms [data-vm=\"{vm}\"] button"));
    page.until(
        "the VM is selected",
        "return document.body.dataset.selected === `vm${arguments[0]}`",
        std::slice::from_ref(&vm),
    );
    let card = "return document.getElementById('card-fidelity').textContent";
    let so_far = page.script(card, &[]).to_string();
    let says = ["no attempt has ended yet", "no verdict before the end"];
    assert!(says.iter().any(|says| so_far.contains(says)), "{so_far}");
    let rebalance = page.script(
        "const it = document.querySelector('[data-action=rebalance]'); return [it.textContent, it.disabled]",
        &[],
    );
    assert_eq!(rebalance, json!(["Recommend to replace…", false]));
    page.click("[data-action=rebalance]");
    page.type_into("#interrupt [name=why]", RECOMMENDED);
    page.click("#interrupt [data-confirm]");
    page.until(
        "the recommendation is shown",
        "return !document.getElementById('interrupt').open && document.getElementById('selection-facts').textContent.includes(`by user: ${arguments[0]}`)",
        &[RECOMMENDED.into()],
    );
    page.click("[data-action=hibernate]");
    page.type_into("#interrupt [name=why]", WHY);
    let took = page.script_until(CONFIRM, &[vm.clone(), json!(["hibernating", "hibernated"])]);
    let took =
        took.as_f64().unwrap_or_else(|| panic!("VM {vm} does not hibernate: {}", page.state()));
    println!("the hibernation is shown after {took:.0} ms");
    assert!(took < 1_000.0, "it is shown after {took:.0} ms");
    let logged = || fs::read_to_string(out.join("events.jsonl")).unwrap();
    assert!(logged().contains(WHY), "the log does not say why");
    page.until(
        "the act is a user's",
        "return document.getElementById('selection-facts').textContent.includes(`by user: ${arguments[0]}`)",
        &[WHY.into()],
    );
    page.type_into("#events-about", &format!("vm{vm}"));
    page.until(
        "the event is listed",
        "return [...document.querySelectorAll('#events [data-seq]')].some((row) => !row.hidden && row.textContent.includes('hibernat'))",
        &[],
    );

    // A reload keeps the place.
    page.type_into("#find-text", "task 3\u{e007}");
    page.until(
        "the task is selected",
        "return document.body.dataset.selected.startsWith('task')",
        &[],
    );
    page.click("#zoom-in");
    page.until("the window is told", "return document.body.dataset.window.startsWith('free')", &[]);
    page.until(
        "the place is in the address",
        "return ['window=free', 'selected=task', 'about=vm'].every((word) => location.hash.includes(word))",
        &[],
    );
    let place = "const d = document.body.dataset; return [d.window, d.selected, document.getElementById('events-about').value]";
    let before = page.script(place, &[]);
    page.reload();
    page.until(
        "the page is there again",
        "return document.body.dataset.coordinator === 'serving' && Number(document.body.dataset.vms) > 0",
        &[],
    );
    assert_eq!(page.script(place, &[]), before);
    page.click("#show-all");

    // The coordinator is killed and gone on with; the page goes on, and is not loaded again for it.
    let _ = page.script("document.documentElement.dataset.loaded = 'once'", &[]);
    let _ = page.errors();
    let _ = run.told(Signal::SIGKILL);
    page.until(
        "the page says that the coordinator is away",
        "return document.body.dataset.connection === 'lost' && !document.getElementById('banner').hidden",
        &[],
    );
    let (changes, clock) = (page.number("changes"), page.number("clock"));
    let dir = out.display().to_string();
    let run = UnderWay::begin(&out, &["resume", &dir, "--http", &address]);
    page.until_within(
        "the page goes on",
        Duration::from_secs(60),
        "const d = document.body.dataset; return d.connection === 'open' && d.coordinator === 'serving' && Number(d.changes) > arguments[0] && Number(d.clock) > arguments[1]",
        &[changes.into(), clock.into()],
    );
    let loaded = page.script("return document.documentElement.dataset.loaded", &[]);
    assert_eq!(loaded, "once", "the page was loaded again");
    page.until(
        "it no longer says that the coordinator is away",
        "return document.getElementById('banner').hidden",
        &[],
    );
    let told =
        page.script("return document.querySelectorAll('#vms .row:not([hidden])').length", &[]);
    assert!(told.as_u64() > Some(0), "no VM is listed: {}", page.state());

    let ended = run.ended();
    assert!(ended.status.success(), "{}", text(&ended));
    assert_eq!(summary(&out)["tasks"]["verified"], 6);
    let log = events(&out);
    let acts = log.iter().filter(|event| event.to_string().contains(WHY)).count();
    assert_eq!(acts, 1, "it is in the log once");
    let effects =
        log.iter().flat_map(|event| event["effects"].as_array().cloned().unwrap_or_default());
    let recommended =
        |effect: &Value| effect["action"] == "rebalance" && effect["vms"] == json!([vm]);
    assert_eq!(
        effects.filter(recommended).count(),
        1,
        "the VM is recommended to be replaced, once"
    );
    checks_and_replays(&out);

    // The page of the run that is over has its verdict.
    let watch = Watch::over(&out, &[]);
    page.open(&format!("http://{}/", watch.address()));
    page.until("it is over", "return document.body.dataset.over === 'true'", &[]);
    page.until(
        "the verdict is said",
        "return /faithful$/i.test(document.getElementById('card-fidelity').textContent)",
        &[],
    );
}

#[test]
fn the_page_is_readable_wide_and_narrow_light_and_dark_and_by_keyboard() {
    let Some(page) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let _ = dormouse_says(&["run", "j60-sc2", "--virtual", "--out", out.to_str().unwrap()]);
    let watch = Watch::over(&out, &[]);
    let whole = "const d = document.body.dataset; return d.over === 'true' && Number(d.bars) > 0";
    // A chart that comes into sight is drawn a frame later.
    let drawn = format!(
        "const wrong = (() => {{ {LOOKS} }})(); return !wrong.some((it) => it.endsWith('is not drawn'))"
    );
    for (size, is_dark) in
        [((1500, 1000), false), ((1500, 1000), true), ((390, 844), false), ((390, 844), true)]
    {
        page.look(size, is_dark);
        page.open(&format!("http://{}/#at=600&selected=task3&ended=yes", watch.address()));
        page.until("the run is there", whole, &[]);
        // Charts are drawn when they are seen.
        let _ = page.script("scrollTo(0, document.documentElement.scrollHeight)", &[]);
        page.until(
            "events are listed",
            "return document.querySelectorAll('#events [data-seq]').length > 0",
            &[],
        );
        page.until(
            "it is explained",
            "return document.getElementById('selection-words').textContent.length > 10",
            &[],
        );
        let height = if size.0 > 1_000 { 4_000 } else { 8_000 };
        page.look((size.0, height), is_dark);
        page.until("all charts have been drawn", &drawn, &[]);
        let wrong = page.script(LOOKS, &[]);
        assert_eq!(wrong, Value::Array(Vec::new()), "{size:?}, dark: {is_dark}");
        let open = page.script("document.getElementById('open-help').click(); return document.getElementById('help').open", &[]);
        assert_eq!(open, true);
        let wrong = page.script(LOOKS, &[]);
        assert_eq!(wrong, Value::Array(Vec::new()), "help, {size:?}, dark: {is_dark}");
        page.look(size, is_dark);
        let _ = page.script("document.getElementById('help').close()", &[]);
    }
    assert_eq!(page.errors(), Vec::<String>::new(), "the console has errors");

    // What the provider did is no act of a user, and a host without bounds is told of without figures.
    page.look((1500, 1000), false);
    let _ = page.script("location.hash = '#selected=host0'; location.reload()", &[]);
    page.until(
        "the host is explained",
        "return document.getElementById('selection-words').textContent.includes('host0 (')",
        &[],
    );
    let told = page.script("return document.getElementById('selection-words').textContent", &[]);
    assert!(!told.to_string().contains("4294967295"), "{told}");
    let acts = events(&out);
    let taken =
        acts.iter().flat_map(|event| event["effects"].as_array().cloned().unwrap_or_default());
    let taken = taken.filter(|effect| effect["effect"] == "interrupted");
    let vm = taken.map(|effect| effect["vms"][0].clone()).find(|vm| vm.is_number()).unwrap();
    let _ = page.script(
        "location.hash = `#selected=vm${arguments[0]}`; location.reload()",
        std::slice::from_ref(&vm),
    );
    page.until(
        "the act is the provider's",
        "const said = document.getElementById('selection-facts').textContent; return said.includes('by provider') && !said.includes('by user')",
        &[],
    );
    assert_eq!(page.script("return document.getElementById('state').textContent", &[]), "complete");

    // A run in virtual time has no coordinator that could be away, whether it is over or not.
    let part = folder.path().join("part");
    unfinished(&out, &part);
    let going = Watch::over(&part, &[]);
    page.open(&format!("http://{}/", going.address()));
    page.until(
        "it is not over",
        "return document.getElementById('state').textContent === 'not over'",
        &[],
    );
    page.open(&format!("http://{}/#at=600&selected=task3&ended=yes", watch.address()));
    page.until("the run is there", whole, &[]);

    // Time goes back and on by keys, and what is shown goes with it.
    page.look((1500, 1000), false);
    let _ = page.script("document.activeElement.blur(); scrollTo(0, 0)", &[]);
    page.type_into("body", "\u{e011}");
    page.until("the beginning is shown", "return Number(document.body.dataset.head) === 0", &[]);
    let at_first = page.script("return document.querySelector('#card-done b').textContent", &[]);
    assert_eq!(at_first, "0 of 60");
    page.type_into("body", "l");
    page.until("the end is shown", "return document.body.dataset.live === 'true'", &[]);
    page.until(
        "all tasks are done",
        "return document.querySelector('#card-done b').textContent === '60 of 60'",
        &[],
    );
    page.type_into("body", "+");
    page.until("it is zoomed", "return !document.body.dataset.window.startsWith('all')", &[]);
}
