//! Beginning of a paper's page: the number of claims that hold, the reading, and a paragraph for
//! each claim that does not hold.

use dormouse_estimate::Verdict;
use dormouse_view::PageBlock;

use super::super::cause::ClaimCause;
use super::super::claims::JudgedClaim;
use super::super::finished::FinishedReproduction;
use super::tables;

/// Blocks at the beginning of a paper's page; empty if no claim was judged.
pub(super) fn blocks(done: &FinishedReproduction) -> Vec<PageBlock> {
    let claims = &done.ours.claims;
    if claims.is_empty() {
        return Vec::new();
    }
    let reading = match done.ours.factors.is_empty() {
        true => "under the default reading of the text".to_owned(),
        false => format!("under the reading {}", done.ours.name()),
    };
    let held = capitalise(&tables::held_in_words(&done.ours));
    let mut blocks = vec![PageBlock::text(format!("{held}, {reading}."))];
    blocks.extend(
        tables::printable_in_words(&done.ours)
            .map(|words| PageBlock::text(format!("By how few runs the paper averaged: {words}."))),
    );
    let not = (1..).zip(claims).filter(|(_, of)| {
        matches!(of.verdict, Verdict::Fails | Verdict::Open | Verdict::Undecidable)
    });
    blocks.extend(not.map(|(n, of)| PageBlock::text(claim_paragraph(done, n, of))));
    blocks
}

/// Paragraph on a claim that does not hold: the paper's statement, our estimate, and the cause if
/// known.
fn claim_paragraph(done: &FinishedReproduction, n: usize, of: &JudgedClaim) -> String {
    let verdict = match of.verdict {
        Verdict::Fails => "fails",
        Verdict::Undecidable => "is undecidable",
        _ => "is open",
    };
    let ours = match of.ours.ci95 {
        // The words on the verdict count the cells.
        _ if of.claim.is_about_each() => String::new(),
        None => format!(" Ours is {:.2}.", of.ours.mean),
        Some((low, high)) => format!(" Ours is {:.2} [{low:.2}, {high:.2}].", of.ours.mean),
    };
    let printed = of.claim.figure.first().map(|x| format!(" {x:.2}")).unwrap_or_default();
    let quote = match (&*of.claim.quote, &*of.claim.place) {
        ("", _) => String::new(),
        (quote, place) => format!(" In its words, {place}: \u{201c}{quote}\u{201d}."),
    };
    let mut text = format!(
        "Claim {n} {verdict}. The paper says: {says}{printed}.{quote}{ours} {how}.",
        says = of.claim.says,
        how = capitalise(&of.how)
    );
    if let Some(few) = of.as_printed {
        let is = if few.is_within { "could" } else { "could not" };
        text += &format!(
            " A mean of {} of our runs {is} be what the paper prints: 95 % of such means lie from {:.2} to {:.2}.",
            few.runs, few.range.0, few.range.1
        );
    }
    if let Some(cause) = ClaimCause::find(&done.paper, of, done.as_trials()) {
        text += " ";
        text += &cause.sentences(&of.claim.tried);
    }
    text
}

fn capitalise(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
