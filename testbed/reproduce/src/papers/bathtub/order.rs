//! Figure 2: which VMs live longer, also among VMs of the same type and zone.

use std::collections::BTreeMap;

use dormouse_cloud::lifetimes::hours;
use dormouse_fit::{Curve, RecordedLife};

use super::draw::RecordDraw;
use super::evidence::LifetimeEvidence;
use super::{Figures, number};

/// Type, zone and part of the week of a VM, which would confound a comparison of groups: users who launch at night may launch
/// another type elsewhere.
type Stratum<'a> = [&'a str; 3];

/// Difference of the mean lifetimes of two groups (`GROUP-over-GROUP`), in hours; `None` without a record.
pub(super) fn order(of: &str, evidence: &LifetimeEvidence, draw: RecordDraw) -> Option<Figures> {
    let (one, other) = of.split_once("-over-")?;
    let (one, other) = (evidence.lives(one, draw)?, evidence.lives(other, draw)?);
    let mut figures = Figures::new();
    // A group without preempted VMs has no mean.
    if ![&one, &other].iter().all(|lives| lives.iter().any(|life| life.was_taken)) {
        return Some(figures);
    }
    let mean = |curve: fn(&[&RecordedLife]) -> Curve| curve(&one).mean() - curve(&other).mean();
    let preempted = mean(|lives| Curve::empirical(lives.iter().copied()));
    let all = mean(|lives| Curve::kaplan_meier(lives.iter().copied()));
    figures.insert("preempted/longer_h".to_owned(), preempted);
    figures.insert("kaplan-meier/longer_h".to_owned(), all);
    // Types can't be compared within a type.
    let by_type = has_one_type(&one) && has_one_type(&other);
    for (name, by_day) in [("longer_within_h", false), ("longer_within_day_h", true)] {
        let found = difference_within(&one, &other, |life| stratum_of(life, by_type, by_day));
        if let Some((longer, vms)) = found {
            figures.insert(format!("preempted/{name}"), longer);
            if draw == RecordDraw::Whole && !by_day {
                figures.insert("preempted/vms_within".to_owned(), vms);
            }
        }
    }
    Some(figures)
}

fn has_one_type(lives: &[&RecordedLife]) -> bool {
    lives.windows(2).all(|pair| pair[0].kind == pair[1].kind)
}

/// Stratum of a VM: its type (empty if types are compared), its zone, and whether it was launched at a weekend (empty
/// unless `by_day`).
fn stratum_of(life: &RecordedLife, by_type: bool, by_day: bool) -> Stratum<'_> {
    let is_weekend = ["Saturday", "Sunday"].contains(&life.day.as_str());
    let day = if is_weekend { "weekend" } else { "week" };
    [if by_type { "" } else { &life.kind }, &life.zone, if by_day { day } else { "" }]
}

/// Difference in hours of the mean lifetimes of two groups' preempted VMs within strata, and the
/// number of VMs in strata with both groups. Each stratum has the weight with which its difference
/// is known, n m / (n + m). `None` if no stratum has VMs of both.
fn difference_within<'a>(
    one: &[&'a RecordedLife],
    other: &[&'a RecordedLife],
    stratum: impl Fn(&'a RecordedLife) -> Stratum<'a>,
) -> Option<(f64, f64)> {
    let mut strata: BTreeMap<Stratum<'a>, [(f64, f64); 2]> = BTreeMap::new();
    for (n, lives) in [one, other].into_iter().enumerate() {
        for life in lives.iter().filter(|life| life.was_taken) {
            let (count, sum) = &mut strata.entry(stratum(life)).or_default()[n];
            *count += 1.0;
            *sum += hours(life.span);
        }
    }
    let both = || strata.values().filter(|[(n, _), (m, _)]| *n > 0.0 && *m > 0.0);
    let weight = |[(n, _), (m, _)]: &[(f64, f64); 2]| n * m / (n + m);
    let weights: f64 = both().map(weight).sum();
    let sum: f64 =
        both().map(|both @ [(n, of), (m, than)]| weight(both) * (of / n - than / m)).sum();
    let vms: f64 = both().map(|[(n, _), (m, _)]| n + m).sum();
    (weights > 0.0).then(|| (sum / weights, vms))
}

/// Number of VMs in a group, and of preempted ones.
pub(super) fn counts(lives: &[&RecordedLife]) -> (f64, f64) {
    (number(lives.len()), number(lives.iter().filter(|life| life.was_taken).count()))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use dormouse_fit::{LifeQuery, read_lifetimes};
    use dormouse_input::Source;

    use super::*;

    /// A record in which VMs launched at night live two hours longer in each zone, but all VMs live ten hours less in
    /// the zone where most launches are at night. `hr_of_day` is always 12: as in the authors' record, it does not tell
    /// the local hour of the launch.
    fn record() -> LifetimeEvidence {
        let mut rows =
            "machine_type,zone,workload,end_event,lifetime_s,hr_of_day,insert_time\n".to_owned();
        let mut row = |zone: &str, at: &str, hours: u32| {
            let second = rows.lines().count();
            let life = hours * 3_600;
            rows += &format!("a,{zone},x,preempted,{life},12,2019-03-25T{at}:{second:02}-07:00\n");
        };
        for _ in 0..9 {
            row("us-east1-b", "10:30", 12);
            row("us-central1-c", "20:30", 4);
        }
        for _ in 0..3 {
            // 10 PM in the east, and 10 AM in the centre.
            row("us-east1-b", "19:00", 14);
            row("us-central1-c", "08:00", 2);
        }
        let source = Source::new(Cursor::new(rows.into_bytes())).expect("text");
        LifetimeEvidence::new(Some(read_lifetimes(source, &LifeQuery::default()).expect("rows")))
    }

    #[test]
    fn night_is_when_a_vm_is_launched_and_is_compared_within_a_zone() {
        let of = |draw| order("night-over-day", &record(), draw).expect("a record");
        let whole = of(RecordDraw::Whole);
        let figure = |name: &str| whole[&format!("preempted/{name}")];
        assert!((figure("longer_within_h") - 2.0).abs() < 1e-9, "{whole:?}");
        assert!((figure("longer_within_day_h") - 2.0).abs() < 1e-9, "{whole:?}");
        assert!((figure("vms_within") - 24.0).abs() < 1e-9, "{whole:?}");
        // 6.5 h at night, 9.5 h by day: the zones, and not the hours.
        assert!((figure("longer_h") + 3.0).abs() < 1e-9, "{whole:?}");
        let resample = of(RecordDraw::Resample(1));
        assert!((resample["preempted/longer_within_h"] - 2.0).abs() < 1e-9, "{resample:?}");
        assert_eq!(of(RecordDraw::Resample(1)), resample);
        assert_ne!(of(RecordDraw::Resample(2)), resample);
    }

    #[test]
    fn types_are_compared_within_a_zone_and_groups_that_share_no_stratum_are_not() {
        let life = |kind: &str, zone: &str, hours: u64| RecordedLife {
            span: dormouse_units::Span::from_secs(hours * 3_600),
            was_taken: true,
            kind: kind.to_owned(),
            zone: zone.to_owned(),
            workload: if zone == "p" { "idle" } else { "busy" }.to_owned(),
            ..RecordedLife::default()
        };
        let lives =
            vec![life("s", "z", 9), life("s", "p", 7), life("l", "z", 4), life("l", "p", 3)];
        let evidence =
            LifetimeEvidence::new(Some(dormouse_fit::Record { lives, ..Default::default() }));
        let types = order("s-over-l", &evidence, RecordDraw::Whole).expect("a record");
        assert!((types["preempted/longer_within_h"] - 4.5).abs() < 1e-9, "{types:?}");
        let idle = order("idle-over-busy", &evidence, RecordDraw::Whole).expect("a record");
        assert_eq!(idle.get("preempted/longer_within_h"), None, "no type and zone have both");
        assert!(idle.contains_key("preempted/longer_h"));
        assert_eq!(order("s-over-l", &LifetimeEvidence::default(), RecordDraw::Whole), None);
    }
}
