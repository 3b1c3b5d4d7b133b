//! Claims on a paper's page: how many of them hold, and for each its verdict with a paragraph on how it was judged.

use dormouse_estimate::{Said, Verdict};
use dormouse_view::number::{capitalise, fixed};
use dormouse_view::{ClaimMark, ClaimRange, ClaimVerdict, PageAnswer};

use super::super::cause::ClaimCause;
use super::super::claims::{JudgedClaim, said};
use super::super::finished::FinishedReproduction;
use super::tables;

/// Greatest number of failing claims that the answer names.
const MOST_FAILURES: usize = 3;

/// The answer what holds: the number of claims by verdict, the first that fail, and the reading; `None` if no claim was judged.
pub(super) fn answer(done: &FinishedReproduction) -> Option<PageAnswer> {
    if done.ours.judged() + done.ours.count(Verdict::Undecidable) == 0 {
        return None;
    }
    let reading = match done.ours.factors.is_empty() {
        true => "under the default reading of the text".to_owned(),
        false => format!("under the reading {}", done.ours.name()),
    };
    let held = capitalise(&tables::held_in_words(&done.ours));
    let answer = PageAnswer::new("What holds?", format!("{held}, {reading}."));
    let fail = marks(done).into_iter().filter(|claim| claim.verdict == ClaimVerdict::Fails);
    let answer = fail
        .take(MOST_FAILURES)
        .fold(answer, |answer, claim| answer.item(format!("✗ {}", claim.number), claim.says));
    Some(match [Verdict::Fails, Verdict::Holds].map(|verdict| done.ours.count(verdict)) {
        [0, 0] => answer,
        [fail, _] => answer.verdict(fail == 0),
    })
}

/// The judged claims for the page's strip and list.
pub(super) fn marks(done: &FinishedReproduction) -> Vec<ClaimMark> {
    let mark = |(number, of): (usize, &JudgedClaim)| {
        let verdict = match of.verdict {
            Verdict::Holds => ClaimVerdict::Holds,
            Verdict::Fails => ClaimVerdict::Fails,
            Verdict::Open => ClaimVerdict::Open,
            Verdict::Undecidable => ClaimVerdict::Undecidable,
            Verdict::Silent => return None,
        };
        let says = match (of.claim.figure.first(), of.claim.says.strip_suffix(", %")) {
            (Some(x), Some(says)) => format!("{says} {x:.2} %"),
            (Some(x), None) => format!("{}: {x:.2}", of.claim.says),
            (None, _) => of.claim.says.clone(),
        };
        let is_percent = of.claim.measure.is_percent();
        let is_each = of.claim.is_about_each();
        let (mean, holds) = (of.ours.mean, values_that_hold(said(&of.claim)));
        let bounds = holds.filter(|_| !is_each).map_or_else(String::new, bounds_in_words);
        let sign = of.claim.figure.first().zip(holds).filter(|_| !is_each);
        let sign = sign.and_then(|(figure, holds)| sign_in_words(*figure, holds, of.ours.ci95));
        let bounds = bounds + sign.unwrap_or_default();
        let ours = match of.ours.ci95 {
            // The paragraph counts the cells.
            _ if is_each => capitalise(&of.how),
            None => format!("ours {mean:.1}{bounds}"),
            Some((low, high)) => format!("ours {mean:.1} [{low:.1}, {high:.1}]{bounds}"),
        };
        let interval = of.ours.ci95.filter(|_| !is_each);
        let printed = of.claim.figure.first().copied();
        let range = holds.zip(interval);
        let range = range.map(|(holds, interval)| ClaimRange {
            holds,
            printed,
            mean,
            interval,
            is_percent,
        });
        Some(ClaimMark { number, verdict, says, ours, range, how: claim_paragraph(done, of) })
    };
    (1..).zip(&done.ours.claims).filter_map(mark).collect()
}

/// Least and greatest value for which a claim holds, infinite where it has no bound; `None` if the paper claims nothing.
fn values_that_hold(said: Said) -> Option<(f64, f64)> {
    match said {
        Said::Nothing => None,
        Said::Within { low, high } => Some((low, high)),
        Said::Order { above, below } => {
            Some((above.unwrap_or(f64::NEG_INFINITY), below.unwrap_or(f64::INFINITY)))
        }
    }
}

/// What our interval tells of the sign of a printed figure, if the figure's tolerance reaches beyond 0 and so has room for the
/// opposite of what is printed; `None` if the tolerance does not reach so far.
fn sign_in_words(
    figure: f64,
    (low, high): (f64, f64),
    interval: Option<(f64, f64)>,
) -> Option<&'static str> {
    let is_beyond = if figure > 0.0 { low < 0.0 } else { figure < 0.0 && high > 0.0 };
    let is_shown = interval.is_some_and(|(from, until)| match figure > 0.0 {
        true => from > 0.0,
        false => until < 0.0,
    });
    is_beyond.then_some(match is_shown {
        true => "; the tolerance reaches beyond 0, our interval does not",
        false => {
            "; the tolerance and our interval reach beyond 0, so that the direction is not shown"
        }
    })
}

/// The values for which a claim holds, in words, with decimals enough for its width.
fn bounds_in_words((low, high): (f64, f64)) -> String {
    // A rounded bound is off by a twentieth of what holds at most.
    let near = (high - low) / 20.0;
    let is_near = |bound: f64, digits: usize| {
        let rounded = fixed(bound, digits).parse::<f64>().unwrap_or(bound);
        !bound.is_finite() || (rounded - bound).abs() <= near
    };
    let digits = (1..4).find(|&digits| is_near(low, digits) && is_near(high, digits)).unwrap_or(4);
    let [least, most] = [low, high].map(|bound| fixed(bound, digits));
    match (low.is_finite(), high.is_finite()) {
        (true, true) => format!(", to hold {least} to {most}"),
        (true, false) => format!(", to hold above {least}"),
        (false, true) => format!(", to hold below {most}"),
        (false, false) => String::new(),
    }
}

/// Paragraph on how a claim was judged: the paper's words, our estimate, and the cause if
/// known.
fn claim_paragraph(done: &FinishedReproduction, of: &JudgedClaim) -> String {
    let ours = match of.ours.ci95 {
        // The words on the verdict count the cells.
        _ if of.claim.is_about_each() => String::new(),
        None => format!("Ours is {:.2}. ", of.ours.mean),
        Some((low, high)) => format!("Ours is {:.2} [{low:.2}, {high:.2}]. ", of.ours.mean),
    };
    let quote = match (&*of.claim.quote, &*of.claim.place) {
        ("", _) => String::new(),
        (quote, place) => format!("The paper, {place}: \u{201c}{quote}\u{201d}. "),
    };
    let mut text = format!("{quote}{ours}{how}.", how = capitalise(&of.how));
    if let Some(few) = of.as_printed {
        let is = if few.is_within { "could" } else { "could not" };
        text += &format!(
            " A mean of {} of our runs, as many as the paper averaged, {is} be the printed figure: 95 % of such means lie \
             from {:.2} to {:.2}.",
            few.runs, few.range.0, few.range.1
        );
    }
    if let Some(cause) = ClaimCause::find(&done.paper, of, done.as_trials()) {
        text += " ";
        text += &cause.sentences(&of.claim.tried);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure of 11.82 with a tolerance of 15 points may be -3: whether the sign is the paper's is said apart.
    #[test]
    fn a_tolerance_beyond_zero_is_said_with_what_is_shown_of_the_sign() {
        let words = |figure, holds, interval| sign_in_words(figure, holds, Some(interval));
        let shown = words(11.82, (-3.18, 26.82), (14.0, 15.0)).unwrap_or_default();
        assert!(shown.ends_with("our interval does not"), "{shown}");
        let open = words(1.92, (-13.08, 16.92), (-0.8, 6.9)).unwrap_or_default();
        assert!(open.ends_with("the direction is not shown"), "{open}");
        assert_eq!(words(44.37, (29.37, 59.37), (59.2, 63.7)), None);
        let below = words(-2.0, (-17.0, 13.0), (-4.0, -1.0)).unwrap_or_default();
        assert!(below.ends_with("our interval does not"), "{below}");
    }

    #[test]
    fn what_a_claim_takes_to_hold_is_said_with_digits_enough() {
        let words = |said| values_that_hold(said).map(bounds_in_words);
        let within = |low, high| words(Said::Within { low, high });
        assert_eq!(within(29.37, 59.37).as_deref(), Some(", to hold 29.4 to 59.4"));
        assert_eq!(within(0.395, 0.405).as_deref(), Some(", to hold 0.395 to 0.405"));
        assert_eq!(within(f64::NEG_INFINITY, 10.0).as_deref(), Some(", to hold below 10.0"));
        let above = Said::Order { above: Some(52.0), below: None };
        assert_eq!(words(above).as_deref(), Some(", to hold above 52.0"));
        assert_eq!(words(Said::Nothing), None);
    }
}
