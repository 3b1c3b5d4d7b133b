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
    let recorded_digest = recorded_digest(dir)?;
    if as_json {
        let difference = difference.as_deref();
        let all = json!({
            "steps": steps,
            "decisions": decisions,
            "digest": digest,
            "recorded_digest": recorded_digest,
            "difference": difference.map(|(recorded, again)| json!([recorded, again])),
        });
        print(&format!("{all:#}"))?;
        return match difference {
            Some((recorded, _)) => {
                Err(broken(format!("step {} comes out otherwise", recorded.seq)))
            }
            None if recorded_digest.is_some_and(|recorded| recorded != digest) => {
                Err(broken("the decisions come out otherwise".to_owned()))
            }
            None => Ok(()),
        };
    }
    if let Some(difference) = difference {
        let (recorded, again) = &*difference;
        let json = |step| serde_json::to_string(step).unwrap_or_default();
        print(&format!("recorded: {}\nreplayed: {}", json(recorded), json(again)))?;
        return Err(broken(format!("step {} comes out otherwise", recorded.seq)));
    }
    if let Some(recorded) = recorded_digest
        && recorded != digest
    {
        print(&format!("recorded: {recorded}\nreplayed: {digest}"))?;
        return Err(broken("the decisions come out otherwise".to_owned()));
    }
    print(&format!("{steps} steps, {decisions} decisions: all as recorded\n{digest}"))
}
