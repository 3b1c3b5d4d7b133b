//! Figure 4: work wasted by a preemption, and the longer running time of a job without checkpoints.

use dormouse_policies::service::{running_time, wasted};

use super::draw::RecordDraw;
use super::evidence::LifetimeEvidence;
use super::{Figures, laws, number};

/// Wasted work (Eq. 5) and increase of the running time (Eq. 7) under a law, by length of the job.
pub(super) fn wasted_by_length(
    law: &str,
    evidence: &LifetimeEvidence,
    draw: RecordDraw,
) -> Option<Figures> {
    let law = evidence.law(law, draw)?;
    let of = |hours: usize| {
        let job = number(hours);
        let increase = running_time(law.law(), job) - job;
        let figures = [
            ("wasted_h", wasted(law.law(), job).unwrap_or(0.0)),
            ("increase_h", increase),
            ("increase_pct", 100.0 * increase / job),
        ];
        figures.map(|(name, x)| (format!("job-{hours}/{name}"), x))
    };
    Some((1..laws::LONGEST).flat_map(of).collect())
}
