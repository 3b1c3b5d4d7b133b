//! The sample reports of the book (`docs/samples`) are what the program makes now. `SNAPSHOTS=overwrite` makes them anew.

use std::fs;
use std::path::Path;

use dormouse_tests::dormouse_says;

/// The sample of each kind of report, with the command that makes it.
const SAMPLES: [(&str, &str); 6] = [
    ("bag", "run j60-sc2"),
    ("provider", "run provider-saturated"),
    ("jobs", "run batch-small"),
    ("comparison", "compare --schedulers burst-hads,hads --on j60-sc2 --seeds 5"),
    ("sweep", "sweep j60-sc2 --set scheduler.alpha=0.1,0.5,0.9 --seeds 5"),
    ("paper", "reproduce burst-hads/table-4 --seeds 3 --cause-seeds 0"),
];
/// Greatest size of a sample, in bytes.
const LARGEST: usize = 300_000;
/// Sentences of a paper's page that differ from host to host, by their beginnings.
const OF_THE_HOST: [&str; 2] =
    ["<p>Made by dormouse ", "<p>The last command into this folder took "];

/// A report without its sentences on the host that made it.
fn without_host(mut report: String) -> String {
    for begin in OF_THE_HOST {
        let mut from = 0;
        while let Some(at) = report[from..].find(begin).map(|at| at + from) {
            let end = report[at..].find("</p>").expect("a paragraph ends") + at + "</p>".len();
            // That of a run says how many steps it took, and is the same on each host.
            if report[at..end].contains("The digest of the decisions") {
                from = end;
                continue;
            }
            report.replace_range(at..end, "");
            from = at;
        }
    }
    without_single_runs(report)
}

/// A paper's report without its charts of single runs, which are files of their own.
fn without_single_runs(mut report: String) -> String {
    if let Some(image) = report.find("<img src=\"gantt/") {
        let begin = report[..image].rfind("<section aria-labelledby=").expect("a section begins");
        let end = report[image..].find("</section>").expect("it ends") + image + "</section>".len();
        report.replace_range(begin..end, "");
        let link = "\">A representative run of each cell</a>";
        let end = report.find(link).expect("the contents have it");
        let begin = report[..end].rfind("<a href=").expect("a link begins");
        report.replace_range(begin..end + link.len(), "");
    }
    report
}

#[test]
fn the_sample_reports_are_what_the_program_makes() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/samples");
    let is_overwritten = std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite");
    let folder = tempfile::tempdir().unwrap();
    for (name, command) in SAMPLES {
        let out = folder.path().join(name);
        let words: Vec<_> = command.split(' ').chain(["--out", out.to_str().unwrap()]).collect();
        let _ = dormouse_says(&words);
        let made = without_host(fs::read_to_string(out.join("report.html")).unwrap());
        assert!(made.len() <= LARGEST, "{name}: {} bytes", made.len());
        let file = kept.join(format!("{name}.html"));
        if is_overwritten {
            fs::write(&file, &made).unwrap();
        }
        let kept = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            kept == made,
            "docs/samples/{name}.html is not what `dormouse {command}` makes: SNAPSHOTS=overwrite makes it anew"
        );
    }
    let names = |path: &Path| -> Vec<String> {
        let entries = fs::read_dir(path).unwrap().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    };
    let mut expected: Vec<_> = SAMPLES.iter().map(|(name, _)| format!("{name}.html")).collect();
    expected.push("index.md".to_owned());
    expected.sort_unstable();
    assert_eq!(names(&kept), expected, "each sample has its command");
}

/// A job waits or does not: its number has steps, and no slope of means.
#[test]
fn jobs_that_wait_are_drawn_as_whole_jobs() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/samples");
    let page = fs::read_to_string(kept.join("jobs.html")).unwrap();
    let (_, panel) = page.split_once(">Jobs waiting</text>").expect("the page has the plot");
    let (_, line) = panel.split_once("class=\"line k0\" d=\"M").expect("the plot has a line");
    let (line, _) = line.split_once('"').expect("it ends");
    let points: Vec<(&str, &str)> =
        line.split('L').map(|point| point.split_once(' ').expect("x and y")).collect();
    assert!(points.len() > 40, "{points:?}");
    let slopes = points.windows(2).filter(|two| two[0].0 != two[1].0 && two[0].1 != two[1].1);
    assert_eq!(slopes.count(), 0, "{points:?}");
}

#[test]
fn a_report_is_compared_without_what_its_host_says() {
    let report = "<p>a</p><p>Made by dormouse 1 on x.</p><p>b</p>".to_owned();
    assert_eq!(without_host(report), "<p>a</p><p>b</p>");
}
