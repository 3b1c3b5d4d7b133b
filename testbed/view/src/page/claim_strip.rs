//! Judged claims: a strip with a symbol for each, and a list with the evidence of each and a paragraph that a click shows.

use maud::{Markup, html};

use crate::number::unbroken;

/// A claim with its verdict, for a strip and a list of claims.
#[derive(Clone, Debug)]
pub struct ClaimMark {
    /// Number of the claim on its page.
    pub number: usize,
    /// Verdict on the claim.
    pub verdict: ClaimVerdict,
    /// The claim in a few words.
    pub says: String,
    /// Our estimate in a few words, with what it would take to hold; empty for none.
    pub ours: String,
    /// Our estimate beside what holds, to be drawn; `None` if there is no interval.
    pub range: Option<ClaimRange>,
    /// How the claim was judged.
    pub how: String,
}

/// An estimate beside the values for which a claim holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClaimRange {
    /// Least and greatest value for which the claim holds; infinite where it has no bound.
    pub holds: (f64, f64),
    /// Figure that the paper prints; `None` if the claim is about an order.
    pub printed: Option<f64>,
    /// Our mean.
    pub mean: f64,
    /// Our interval.
    pub interval: (f64, f64),
}

/// Verdict on a claim, with a symbol of its own, so that no reader needs the colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// The claim holds.
    Holds,
    /// The claim fails.
    Fails,
    /// The claim is open: more samples may decide it.
    Open,
    /// No number of samples decides the claim.
    Undecidable,
}

impl ClaimVerdict {
    const ALL: [Self; 4] = [Self::Holds, Self::Fails, Self::Open, Self::Undecidable];

    const fn symbol(self) -> &'static str {
        match self {
            Self::Holds => "✓",
            Self::Fails => "✗",
            Self::Open => "?",
            Self::Undecidable => "∅",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Open => "open",
            Self::Undecidable => "undecidable",
        }
    }
}

impl ClaimRange {
    /// Width and height of the drawing, in pixels.
    const SIZE: (f64, f64) = (150.0, 14.0);

    /// The values that hold as a band, the printed figure as a ring, and our mean and interval as a dot with a line.
    fn to_markup(self, tone: &str) -> Markup {
        let (wide, high) = Self::SIZE;
        let ((low, most), (from, until)) = (self.holds, self.interval);
        let values = [low, most, from, until, self.mean, self.printed.unwrap_or(self.mean)];
        let finite = || values.into_iter().filter(|x| x.is_finite());
        let (least, greatest) =
            (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
        let spread = (greatest - least).max(1e-12);
        // What has no bound goes on to the edge.
        let x = |value: f64| (8.0 + (value - least) / spread * (wide - 16.0)).clamp(0.0, wide);
        let (left, right, middle) = (x(low), x(most), high / 2.0);
        let place = |x: f64| format!("{x:.1}");
        html! {
            svg class={ "fig range " (tone) } viewBox=(format!("0 0 {wide} {high}")) width=(wide) height=(high) aria-hidden="true" {
                rect class="band" x=(place(left)) width=(place((right - left).max(1.0))) height=(high) {}
                path class="whisker" d={ "M" (place(x(from))) " " (middle) "H" (place(x(until))) } {}
                circle class="mean" cx=(place(x(self.mean))) cy=(middle) r="4" {}
                @if let Some(printed) = self.printed {
                    circle class="ring" cx=(place(x(printed))) cy=(middle) r="5" {}
                }
            }
        }
    }
}

/// A symbol for each claim that leads to the claim itself, and the number of claims of each verdict.
pub(super) fn claim_strip(claims: &[ClaimMark]) -> Markup {
    let count = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let there = || ClaimVerdict::ALL.into_iter().filter(|verdict| count(*verdict) > 0);
    html! {
        div.strip role="group" aria-label="Claims by number" {
            @for claim in claims {
                a class=(claim.verdict.word()) href={ "#claim-" (claim.number) }
                    title={ (claim.number) ": " (claim.says) } {
                    (claim.verdict.symbol()) span.heard { " claim" } " " (claim.number)
                    span.heard { " " (claim.verdict.word()) }
                }
            }
            span.dim {
                @for (n, verdict) in there().enumerate() {
                    @if n > 0 { ", " }
                    (verdict.symbol()) " " (count(verdict)) " " (verdict.word())
                }
            }
        }
    }
}

/// Each claim with its verdict; a click on one shows how it was judged.
pub(super) fn claim_list(claims: &[ClaimMark]) -> Markup {
    html! {
        div.claims {
            @for claim in claims {
                details.claim id={ "claim-" (claim.number) } {
                    summary {
                        span class={ "verdict " (claim.verdict.word()) } {
                            (claim.verdict.symbol()) " " (claim.verdict.word())
                        }
                        " " (claim.number) ". " (unbroken(&claim.says))
                        span.evidence {
                            @if let Some(range) = claim.range { (range.to_markup(claim.verdict.word())) " " }
                            (unbroken(&claim.ours))
                        }
                    }
                    p { (unbroken(&claim.how)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From 30 to 60 holds, 40 is printed, and ours is 65 with an interval from 50 to 80: 134 pixels are 50.
    #[test]
    fn an_estimate_is_drawn_beside_what_holds() {
        let range = ClaimRange {
            holds: (30.0, 60.0),
            printed: Some(40.0),
            mean: 65.0,
            interval: (50.0, 80.0),
        };
        let drawn = range.to_markup("open").into_string();
        for part in [
            "class=\"band\" x=\"8.0\" width=\"80.4\"",
            "M61.6 7H142.0",
            "class=\"mean\" cx=\"101.8\"",
            "class=\"ring\" cx=\"34.8\"",
        ] {
            assert!(drawn.contains(part), "{part} is not in {drawn}");
        }
        let above = ClaimRange { holds: (60.0, f64::INFINITY), printed: None, ..range };
        let drawn = above.to_markup("open").into_string();
        // From 60 to the right edge, of 50 to 80.
        assert!(drawn.contains("class=\"band\" x=\"52.7\" width=\"97.3\""), "{drawn}");
        assert!(!drawn.contains("ring"), "{drawn}");
        let same =
            ClaimRange { holds: (1.0, 1.0), printed: Some(1.0), mean: 1.0, interval: (1.0, 1.0) };
        assert!(!same.to_markup("holds").into_string().contains("NaN"));
    }
}
