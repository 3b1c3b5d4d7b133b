//! Sharing of a processor by two VMs, from `[sharing]`, and the measurements of `dormouse reproduce
//! measy/two-tier`.

use std::path::Path;

use dormouse_documents::{InputError, Mistakes, Node, from_json, missing, read_whole};
use dormouse_vm::ProcessorSharing;
use schemars::JsonSchema;
use serde::Deserialize;

use super::files;
use super::sections::{Part, SharingSection};

/// A file of measured distributions. Its other contents, for people, are ignored.
#[derive(Deserialize, JsonSchema)]
struct Measured {
    sharing: SharingSection,
}

/// Reads measured distributions.
///
/// # Errors
///
/// The file can't be read, or has no distributions.
pub fn read_sharing(path: &Path) -> Result<ProcessorSharing, InputError> {
    parse_measured(path, &files::read_text(path)?)
}

fn parse_measured(path: &Path, text: &str) -> Result<ProcessorSharing, InputError> {
    let root = from_json(&path.display().to_string(), text)?;
    let Measured { sharing } = read_whole(&root)?;
    let (node, mut found) = (root.innermost("sharing"), Mistakes::default());
    for key in ["loss", "single", "several-normal", "several-within"] {
        if node.get(key).is_none() {
            missing(node, key, "[0.2, 0.8]", &mut found);
        }
    }
    let sharing = check(sharing, node, &mut found);
    found.or(sharing)
}

/// Resolves the section `[sharing]`, which stands at `node`: the paper's figures or measured ones,
/// each of which the section can override.
pub(crate) fn check(
    section: SharingSection,
    node: &Node,
    found: &mut Mistakes,
) -> Option<ProcessorSharing> {
    let standard = match &section.measured {
        None => ProcessorSharing::default(),
        Some(file) => {
            let place = node.place_of("measured");
            let path = place.file(file);
            let unreadable = |error: std::io::Error| {
                let remedy = "give the two-tier.json of `dormouse reproduce measy/two-tier`";
                InputError::new(place, format!("can't read {}: {error}", path.display()), remedy)
            };
            let text = std::fs::read_to_string(&path).map_err(unreadable);
            let text = found.take(text)?;
            found.take(parse_measured(&path, &text))?
        }
    };
    for (key, range) in [
        ("loss", section.loss),
        ("single", section.single),
        ("several-within", section.several_within),
    ] {
        if let Some((Part(low), Part(high))) = range
            && low > high
        {
            let what = format!("{low} is above {high}");
            found.add(node.place_of(key), what, "write the lower end first");
        }
    }
    let pair = |said: Option<(Part, Part)>, or| said.map_or(or, |(Part(a), Part(b))| (a, b));
    Some(ProcessorSharing {
        loss: pair(section.loss, standard.loss),
        single: pair(section.single, standard.single),
        several_normal: pair(section.several_normal, standard.several_normal),
        several_within: pair(section.several_within, standard.several_within),
        each_process: section.each_process.unwrap_or(standard.each_process),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{ "command": "c", "sharing": { "loss": [0.001, 0.02],
        "single": [0.9, 0.95], "several-normal": [0.5, 0.1], "several-within": [0.2, 0.8],
        "each-process": false },
        "figures": [] }"#;

    fn read(text: &str) -> Result<ProcessorSharing, String> {
        parse_measured(Path::new("two-tier.json"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_is_read() {
        let sharing = read(GOOD).expect("it is right");
        assert_eq!((sharing.loss, sharing.single), ((0.001, 0.02), (0.9, 0.95)));
        assert_eq!((sharing.several_normal, sharing.several_within), ((0.5, 0.1), (0.2, 0.8)));
        assert!(!sharing.each_process);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (from, to, says) in [
            ("[0.001, 0.02]", "[0.03, 0.02]", "1:32: sharing.loss: 0.03 is above 0.02"),
            ("[0.9, 0.95]", "[0.9, 1.95]", "2:25: sharing.single.1: 1.95 is out of range"),
            ("[0.5, 0.1]", "[0.5, -0.1]", "2:56: sharing.several-normal.1: -0.1 is out of range"),
            ("\"loss\"", "\"lost\"", "there is no key 'lost' here; did you mean 'loss'?"),
            ("\"loss\": [0.001, 0.02],", "", "1:19: sharing: 'loss' is missing"),
            ("[0.2, 0.8]", "[0.2]", "2:62: sharing.several-within: there are 1 in it"),
            ("{ \"command\"", "{ command", "1:3: not valid JSON"),
        ] {
            let error = read(&GOOD.replace(from, to)).expect_err(to);
            assert!(error.contains(says) && error.contains("two-tier.json"), "{error}");
        }
        assert!(read_sharing(Path::new("/nowhere")).is_err());
    }
}
