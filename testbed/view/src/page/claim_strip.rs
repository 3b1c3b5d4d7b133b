//! Judged claims: a strip with a symbol for each, and a list with the evidence of each and a paragraph that a click shows.

use maud::{Markup, html};

use crate::number::unbroken;
use crate::plot::{AxisScale, LaidAxis};

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
    /// Whether the values are per cent: all such claims of a page are drawn over the same axis.
    pub is_percent: bool,
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
    /// Width and height of the drawing, and height of its band, in pixels.
    const SIZE: (f64, f64) = (260.0, 34.0);
    const BAND: f64 = 16.0;

    /// The axis of these ranges: all figures and bounds are on it, and of intervals as much as is as wide again.
    fn axis(ranges: &[Self]) -> LaidAxis {
        let ends = |values: &mut dyn Iterator<Item = f64>| {
            let finite = values.filter(|x| x.is_finite());
            finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)))
        };
        let figures = |it: &Self| [it.holds.0, it.holds.1, it.mean, it.printed.unwrap_or(it.mean)];
        let (low, high) = ends(&mut ranges.iter().flat_map(figures));
        let room = (high - low).max(1e-9);
        let within = |x: f64| x.clamp(low - room, high + room);
        let intervals = ranges.iter().flat_map(|it| [within(it.interval.0), within(it.interval.1)]);
        let (low, high) = ends(&mut intervals.chain([low, high]));
        let margin = (high - low).max(1e-9) * 0.03;
        let paper = (10.0, Self::SIZE.0 - 14.0);
        LaidAxis::exactly(AxisScale::Linear, (low - margin, high + margin), paper)
    }

    /// The values that hold as a band, the printed figure as a ring, and our mean and interval as a dot with a line.
    fn to_markup(self, tone: &str, axis: &LaidAxis) -> Markup {
        let (wide, high) = Self::SIZE;
        let middle = Self::BAND / 2.0;
        let x = |value: f64| axis.at(value);
        // What has no bound goes on to the end of the axis.
        let (left, right) = (x(self.holds.0), x(self.holds.1));
        let place = |x: f64| format!("{x:.1}");
        html! {
            svg class={ "fig range " (tone) } viewBox=(format!("0 0 {wide} {high}")) width=(wide) height=(high) aria-hidden="true" {
                rect class="band" x=(place(left)) width=(place((right - left).max(1.0))) height=(Self::BAND) {}
                (axis.draw("grid", (0.0, Self::BAND + 3.0), Self::BAND + 15.0))
                path class="whisker" d={ "M" (place(x(self.interval.0))) " " (middle) "H" (place(x(self.interval.1))) } {}
                circle class="mean" cx=(place(x(self.mean))) cy=(middle) r="4" {}
                @if let Some(printed) = self.printed {
                    circle class="ring" cx=(place(x(printed))) cy=(middle) r="5.5" {}
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
    let in_percent: Vec<_> =
        claims.iter().filter_map(|claim| claim.range.filter(|range| range.is_percent)).collect();
    let common = ClaimRange::axis(&in_percent);
    let drawn = |range: ClaimRange, verdict: ClaimVerdict| match range.is_percent {
        true => range.to_markup(verdict.word(), &common),
        false => range.to_markup(verdict.word(), &ClaimRange::axis(&[range])),
    };
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
                            @if let Some(range) = claim.range { (drawn(range, claim.verdict)) " " }
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

    /// From 30 to 60 holds, 40 is printed, and ours is 65 with an interval from 50 to 80: the axis goes from 30 to 80, with
    /// 3 % more on either side, so that 236 pixels are 53.
    #[test]
    fn an_estimate_is_drawn_beside_what_holds_over_an_axis_with_numbers() {
        let range = ClaimRange {
            holds: (30.0, 60.0),
            printed: Some(40.0),
            mean: 65.0,
            interval: (50.0, 80.0),
            is_percent: true,
        };
        let draw =
            |range: ClaimRange| range.to_markup("open", &ClaimRange::axis(&[range])).into_string();
        let drawn = draw(range);
        for part in [
            "class=\"band\" x=\"16.7\" width=\"133.6\"",
            "M105.7 8H239.3",
            "class=\"mean\" cx=\"172.5\"",
            "class=\"ring\" cx=\"61.2\"",
            ">40</text>",
            ">70</text>",
        ] {
            assert!(drawn.contains(part), "{part} is not in {drawn}");
        }
        let above = ClaimRange { holds: (60.0, f64::INFINITY), printed: None, ..range };
        let drawn = draw(above);
        // From 60 to the right end.
        assert!(drawn.contains("width=\"") && !drawn.contains("ring") && !drawn.contains("inf"));
        let same = ClaimRange {
            holds: (1.0, 1.0),
            printed: Some(1.0),
            mean: 1.0,
            interval: (1.0, 1.0),
            is_percent: false,
        };
        assert!(!draw(same).contains("NaN"));
    }

    /// Of two claims in per cent the same value is at the same place, however wide their own ranges are; a claim in
    /// another unit has an axis of its own.
    #[test]
    fn claims_in_per_cent_share_an_axis() {
        let range = |is_percent, mean: f64, holds| ClaimRange {
            holds,
            printed: None,
            mean,
            interval: (mean, mean),
            is_percent,
        };
        let claim = |number, range| ClaimMark {
            number,
            verdict: ClaimVerdict::Holds,
            says: String::new(),
            ours: String::new(),
            range: Some(range),
            how: String::new(),
        };
        let claims = [
            claim(1, range(true, 20.0, (0.0, 40.0))),
            claim(2, range(true, 20.0, (15.0, 100.0))),
            claim(3, range(false, 20.0, (0.0, 40.0))),
        ];
        let list = claim_list(&claims).into_string();
        let places: Vec<&str> = list
            .split("class=\"mean\" cx=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let [one, two, own] = places.as_slice() else { panic!("three claims: {list}") };
        assert_eq!(one, two);
        assert_ne!(one, own);
    }
}
