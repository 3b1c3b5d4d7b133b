//! Built-in experiments with random damage: each can be read, or every mistake is reported with its place.

use dormouse_experiment::{BuiltinExperiment, ExperimentSource, open};
use dormouse_units::RandomStream;

/// Values that replace a value of an experiment.
const VALUES: [&str; 16] = [
    "0",
    "-1",
    "1e300",
    "0.5",
    "true",
    "\"\"",
    "\"45m\"",
    "\"x\"",
    "[]",
    "[1, \"a\"]",
    "{}",
    "{ a = 1 }",
    "2020-01-01",
    "nan",
    "18446744073709551616",
    "\"\\u0000\"",
];

/// The text with one line dropped, repeated, moved, renamed, or given another value.
fn damage(text: &str, random: &mut RandomStream) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = random.draw_below(lines.len());
    let line = lines[at].clone();
    match random.draw_below(6) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, line),
        2 => {
            lines.remove(at);
            lines.insert(random.draw_below(lines.len()), line);
        }
        3 => lines[at] = line.replacen('e', "", 1),
        4 => lines[at] = line.chars().take(random.draw_below(line.chars().count() + 1)).collect(),
        _ => {
            let key = line.split('=').next().unwrap_or_default();
            lines[at] = format!("{key}= {}", VALUES[random.draw_below(VALUES.len())]);
        }
    }
    lines.join("\n")
}

#[test]
fn whatever_is_damaged_is_read_or_has_its_place() {
    let texts: Vec<String> = BuiltinExperiment::all().map(|builtin| builtin.text()).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    let source = ExperimentSource { experiment: path.to_str(), ..ExperimentSource::default() };
    let (mut read, mut refused) = (0, 0);
    for n in 0..1_500 {
        let mut random = RandomStream::new(n, "mutation", 0);
        let mut text = texts[random.draw_below(texts.len())].clone();
        for _ in 0..=random.draw_below(3) {
            text = damage(&text, &mut random);
        }
        std::fs::write(&path, &text).unwrap();
        let Err(error) = open(&source) else {
            read += 1;
            continue;
        };
        refused += 1;
        assert!(!error.mistakes().is_empty(), "{text}");
        for one in error.mistakes() {
            assert!(!one.what.is_empty() && !one.remedy.is_empty(), "{one:?}\n{text}");
            let Some((line, column)) = one.place.at else {
                // Of the whole file: something is missing from it.
                let of_all = ["missing", "neither a catalogue nor a type is given"];
                assert!(of_all.iter().any(|what| one.what.contains(what)), "{one:?}\n{text}");
                continue;
            };
            let found = text.lines().nth(line - 1).unwrap_or_default();
            assert!(column <= found.chars().count() + 1, "{one:?}\n{text}");
        }
    }
    assert!(read > 100 && refused > 500, "{read} read, {refused} refused");
}
