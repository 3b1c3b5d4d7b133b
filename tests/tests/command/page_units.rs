//! Every page has one unit of time for all times that a reader compares.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use dormouse_tests::dormouse;

/// Symbols of units of time.
const UNITS: [&str; 5] = ["ms", "s", "min", "h", "d"];

/// The page that `dormouse` with these words writes into a folder of its own.
fn page(folder: &Path, words: &str) -> String {
    let words = words.split(' ').chain(["--out", "out"]);
    let output = Command::new(dormouse()).args(words.clone()).current_dir(folder).output().unwrap();
    let words: Vec<_> = words.collect();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(folder.join("out/report.html")).unwrap();
    fs::remove_dir_all(folder.join("out")).unwrap();
    page
}

/// The texts that a reader sees, also by pointing: all text between tags except scripts, styles, and commands to be
/// copied.
fn shown(page: &str) -> Vec<String> {
    let (mut texts, mut rest) = (Vec::new(), page);
    while let Some((before, after)) = rest.split_once('<') {
        texts.push(before.replace("&amp;", "&"));
        let hidden = ["script", "style", "pre"].iter().find(|tag| after.starts_with(**tag));
        let after = match hidden {
            Some(tag) => after.split_once(&format!("</{tag}")).map_or("", |(_, after)| after),
            None => after,
        };
        rest = after.split_once('>').map_or("", |(_, after)| after);
    }
    texts
}

fn is_number(word: &str) -> bool {
    let word = word.trim_start_matches(['+', '-', '(', '[', '~']).trim_end_matches([']', ')']);
    word.parse::<f64>().is_ok()
}

/// Whether a word is a length of time in the notation of experiment files: `45m`, `1h30m`.
fn is_glued(word: &str) -> bool {
    let word = word.trim_matches(|c: char| c.is_ascii_punctuation());
    let letters: String = word.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect();
    word.starts_with(|c: char| c.is_ascii_digit())
        && ["s", "m", "h", "hm", "ms", "hms", "hs"].contains(&&*letters)
}

/// The units of the times in these texts, each with a text in which it occurs.
fn units(texts: &[String]) -> BTreeMap<String, String> {
    let mut units = BTreeMap::new();
    for text in texts {
        let words: Vec<_> = text.split_whitespace().collect();
        for pair in words.windows(2) {
            let unit = pair[1].trim_end_matches([',', '.', ';', ':', ')', ']']);
            // After a number, or at the end of a heading: `makespan, s`.
            if UNITS.contains(&unit) && (is_number(pair[0]) || pair[0].ends_with(',')) {
                units.entry(unit.to_owned()).or_insert_with(|| text.clone());
            }
        }
        for word in words.iter().filter(|word| is_glued(word)) {
            units.entry("as in a file".to_owned()).or_insert_with(|| format!("{word}: {text}"));
        }
    }
    units
}

#[test]
fn a_page_with_two_units_is_noticed() {
    let of = |page: &str| units(&shown(page)).into_keys().collect::<Vec<_>>();
    assert_eq!(of("<p>it took 45.0 min of 2700 s, at $0.03/h</p>"), ["min", "s"]);
    assert_eq!(of("<th>makespan, s</th><title>from 1.5 s to 1h30m</title>"), ["as in a file", "s"]);
    assert_eq!(
        of("<pre>run 5 h</pre><style>a{b:1 s}</style>work lost, vCPU h, by vm3 s3"),
        [""; 0]
    );
}

#[test]
fn each_page_has_one_unit_of_time() {
    let folder = tempfile::tempdir().unwrap();
    for (words, unit) in [
        ("run j60-sc2", "s"),
        ("run shared-small", "s"),
        ("run batch-small", "s"),
        // Waits until VMs have left are seconds where the run is hours, and are not compared with it.
        ("run provider-testbed", "h s"),
        ("run bathtub-bags", "h"),
        ("sweep j60-sc2 --set scheduler.alpha=0.1,0.9 --seeds 2", "s"),
        ("sweep bathtub-bags --set scheduler.vms=24,32 --seeds 2", "h"),
        ("compare --schedulers burst-hads,hads --on j60-sc2 --seeds 2", "s"),
        ("compare --schedulers easy,measy --on batch-small --seeds 2", "s"),
        ("advise checkpoints --job 5h --age 6h", "min"),
        ("advise reuse --job 6h --age 10h", "h"),
    ] {
        let units = units(&shown(&page(folder.path(), words)));
        let all: Vec<_> = units.keys().map(String::as_str).collect();
        assert_eq!(all, unit.split(' ').collect::<Vec<_>>(), "{words}: {units:#?}");
    }
}
