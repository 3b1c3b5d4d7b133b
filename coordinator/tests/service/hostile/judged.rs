//! The verdict on the log of a run with workers that lie.

use dormouse_analysis::fidelity::{AllowedErrors, FidelityVerdict, notes};
use dormouse_analysis::{Evidence, LiveFacts, RunRecord};
use dormouse_log::LogReader;
use dormouse_model::{Setup, Step};
use dormouse_units::Speedup;

pub(super) const SPEEDUP: Speedup = Speedup::times_real(30);

/// Contents of a run's log, and the verdict on it.
pub(super) struct Judged {
    pub(super) steps: Vec<Step>,
    pub(super) record: RunRecord,
    pub(super) evidence: Evidence,
    pub(super) fidelity: FidelityVerdict,
}

pub(super) fn judged(log: &std::path::Path, setup: &Setup) -> Judged {
    let steps: Vec<Step> = LogReader::open(log).unwrap().steps().unwrap();
    let mut record = RunRecord::new(setup).at(SPEEDUP);
    let mut facts = LiveFacts::default();
    for step in &steps {
        record.see(step);
        facts.see(step);
    }
    let evidence = Evidence::from_steps(setup, SPEEDUP, &steps);
    let allowed = AllowedErrors { worst_error: 0.05, mean_error: 0.005, speedup: SPEEDUP };
    let mut noticed = notes(setup, &allowed, &record, &facts);
    noticed.extend(evidence.notes());
    let fidelity = FidelityVerdict::from_record(setup, &allowed, &record, noticed, None);
    Judged { steps, record, evidence, fidelity }
}

impl Judged {
    pub(super) fn assert_denied(&self, words: &str) {
        let FidelityVerdict { faithful, notes, .. } = &self.fidelity;
        let is_said = notes.iter().any(|note| note.contains(words));
        assert!(!faithful && is_said, "no word of '{words}': {notes:?}");
    }
}
