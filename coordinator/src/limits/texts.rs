//! Texts of a worker's reports, as they may go into the log and be shown.

use std::borrow::Cow;

use dormouse_proto::v1;
use dormouse_tasks::limits::{CHANGES, RESULT_BYTES, WHY_BYTES};
use dormouse_units::one_line;
use v1::report::Report as R;

/// Cuts each text of a report to [`WHY_BYTES`] and makes it one line without control characters.
///
/// # Errors
///
/// The result of a task is too long.
pub(crate) fn bound_texts(report: &mut v1::Report) -> Result<(), String> {
    let Some(report) = &mut report.report else { return Ok(()) };
    let text = match report {
        R::VmFailed(it) => &mut it.why,
        R::TaskFailed(it) => &mut it.why,
        R::CheckpointFailed(it) => &mut it.why,
        R::Unsupported(it) => &mut it.what,
        R::HostLoad(it) => &mut it.machine,
        R::FaultFelt(v1::FaultFelt { felt: Some(v1::fault_felt::Felt::Refused(why)), .. }) => why,
        R::TaskMoved(v1::TaskMoved { lost: Some(why), .. }) => why,
        R::TaskCompared(it) => {
            it.changes.truncate(CHANGES);
            it.changes.iter_mut().for_each(cut_text);
            return Ok(());
        }
        R::TaskFinished(v1::TaskFinished { result: Some(result), .. }) => {
            return match result.len() {
                // It is JSON: cut it would be none.
                0..=RESULT_BYTES => Ok(()),
                long => Err(format!(
                    "a result of {long} bytes is too long: the limit is {RESULT_BYTES}"
                )),
            };
        }
        _ => return Ok(()),
    };
    cut_text(text);
    Ok(())
}

fn cut_text(text: &mut String) {
    if let Cow::Owned(bound) = one_line(text, WHY_BYTES) {
        *text = bound;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_longer_than_it_may_be_or_moves_a_terminal() {
        let bad = || "\u{1b}[2J".to_owned() + &"x".repeat(4_000_000);
        let refused = Some(v1::fault_felt::Felt::Refused(bad()));
        for report in [
            R::VmFailed(v1::VmFailed { why: bad(), ..Default::default() }),
            R::TaskFailed(v1::TaskFailed { why: bad(), ..Default::default() }),
            R::CheckpointFailed(v1::CheckpointFailed { why: bad(), ..Default::default() }),
            R::Unsupported(v1::Unsupported { what: bad(), ..Default::default() }),
            R::HostLoad(v1::HostLoad { machine: bad(), ..Default::default() }),
            R::FaultFelt(v1::FaultFelt { felt: refused, ..Default::default() }),
            R::TaskMoved(v1::TaskMoved { lost: Some(bad()), ..Default::default() }),
        ] {
            let mut report = v1::Report { report: Some(report) };
            bound_texts(&mut report).expect("it is cut");
            let text = format!("{report:?}");
            assert!(
                text.len() < 5_000 && text.contains("u001b[2Jxx"),
                "{} {text:.200}",
                text.len()
            );
        }
        let compared =
            R::TaskCompared(v1::TaskCompared { changes: vec![bad(); 40], ..Default::default() });
        let mut report = v1::Report { report: Some(compared) };
        bound_texts(&mut report).expect("it is cut");
        let text = format!("{report:?}");
        assert_eq!(text.matches("u001b[2Jxx").count(), CHANGES);
        assert!(text.len() < CHANGES * 5_000, "{}", text.len());
        let result = Some("1".repeat(RESULT_BYTES + 1));
        let finished = R::TaskFinished(v1::TaskFinished { result, ..Default::default() });
        let no = bound_texts(&mut v1::Report { report: Some(finished) }).expect_err("too long");
        assert!(no.contains("65537 bytes"), "{no}");
    }
}
