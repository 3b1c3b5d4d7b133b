//! `dormouse replay`.

use std::path::Path;

use serde_json::json;

use super::failure::Failure;
use super::print::print;
use super::recorded::{not_again, read_log};
use crate::replay::{Replayed, recorded_digest, replay};

pub(crate) fn run(dir: &Path, as_json: bool) -> Result<(), Failure> {
    let log = read_log(dir)?;
    let Replayed { steps, decisions, digest, difference } = replay(&log).map_err(not_again(dir))?;
    let broken = |what: String| {
        Failure::Broken(format!(
            "{}: {what}; it was made by version {}, this is {}",
            dir.display(),
            log.header.dormouse,
            env!("CARGO_PKG_VERSION")
        ))
    };
    let (difference, recorded_digest) = (difference.as_deref(), recorded_digest(dir)?);
    let wrong = match (difference, &recorded_digest) {
        (Some((recorded, _)), _) => Some(format!("step {} comes out otherwise", recorded.seq)),
        (None, Some(recorded)) if *recorded != digest => {
            Some("the decisions come out otherwise".to_owned())
        }
        (None, _) => None,
    };
    print(&if as_json {
        let all = json!({
            "steps": steps,
            "decisions": decisions,
            "digest": digest,
            "recorded_digest": recorded_digest,
            "difference": difference.map(|(recorded, again)| json!([recorded, again])),
        });
        format!("{all:#}")
    } else if let Some((recorded, again)) = difference {
        let json = |step| serde_json::to_string(step).unwrap_or_default();
        format!("recorded: {}\nreplayed: {}", json(recorded), json(again))
    } else if let Some(recorded) = recorded_digest.filter(|_| wrong.is_some()) {
        format!("recorded: {recorded}\nreplayed: {digest}")
    } else {
        format!("{steps} steps, {decisions} decisions: all as recorded\n{digest}")
    })?;
    wrong.map_or(Ok(()), |what| Err(broken(what)))
}
