//! How long programs of the user's own waited for their inputs to come to their hosts, before they ran.

use dormouse_analysis::Mode;
use dormouse_units::Span;

use super::Line;
use super::outcome::OfBag;

/// Real seconds of which something is said: every program has to be born.
const WORTH_TELLING_S: f64 = 1.0;

/// The longest time from the command to start a program from its beginning to its first instruction, emulated, of
/// VMs that were not frozen; `None`: the run was virtual or had no such programs.
pub(super) fn longest(of: &OfBag<'_>) -> Option<Span> {
    let header = of.of.header;
    let programs = &header.experiment.own_programs;
    if header.mode != Mode::Live || programs.is_empty() {
        return None;
    }
    let own = of.tasks().filter(|task| programs.contains_key(&task.id()));
    let attempts = own.flat_map(|task| &task.is.attempts);
    let from_scratch = attempts.filter(|attempt| {
        let vm = of.record.vms.get(&attempt.vm);
        attempt.from.is_none() && vm.is_some_and(|vm| vm.hibernations.is_empty())
    });
    from_scratch.filter_map(|attempt| Some(attempt.started?.since(attempt.sent))).max()
}

/// The line, where it is worth telling.
pub(super) fn line(of: &OfBag<'_>) -> Option<Line> {
    let longest = longest(of)?;
    let real_s = of.of.header.experiment.live.speedup.real(longest).as_secs_f64();
    let emulated_s = longest.as_secs_f64();
    (real_s >= WORTH_TELLING_S).then(|| {
        let what = format!(
            "{real_s:.1} s of real time at most, {emulated_s:.0} s emulated, until they were on their host"
        );
        Line::plain("inputs", what)
    })
}
