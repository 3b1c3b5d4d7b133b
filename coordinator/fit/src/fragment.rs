//! Fits written as a part of an experiment file.

use std::fmt::Write as _;

use dormouse_cloud::Lifetimes;
use dormouse_cloud::lifetimes::hours;
use dormouse_documents::{InputError, Node, Value, from_toml};
use dormouse_units::Span;

use crate::{By, Family, LifeGroup, Of};

/// Selection of the fits that are written to an experiment.
#[derive(Clone, Copy, Debug)]
pub struct WantedFragment<'a> {
    /// Property by which VMs were grouped; `None`: all VMs are one group.
    pub by: Option<By>,
    /// Group whose fit applies to all VMs; `None`: if groups are by type, the VMs of a type get the fit of their type's
    /// group, else all VMs get the fit of the group of all VMs.
    pub group: Option<&'a str>,
    /// Family of the law.
    pub family: Family,
    /// The choice of VMs that the law was fitted to.
    pub of: Of,
    /// Known instance types; `None`: any name is accepted.
    pub types: Option<&'a [String]>,
}

/// Text with the `[[interruption]]` tables of these groups: one table per type if groups are by type, else one for all
/// VMs or the selected group, with the other groups' tables as comments.
#[must_use]
pub fn fragment(groups: &[LifeGroup], wanted: &WantedFragment<'_>) -> String {
    let &WantedFragment { by, family, of, .. } = wanted;
    let mut text = String::new();
    let is_by_type = by == Some(By::Type) && wanted.group.is_none();
    for group in groups.iter().filter(|group| !is_by_type || group.of.is_some()) {
        let estimated = group.estimated(of);
        let Some(fit) = estimated.fit(family) else {
            let _ = writeln!(
                text,
                "# {}: too few different lifetimes to fit.\n",
                comment_text(group.name())
            );
            continue;
        };
        let _ = writeln!(
            text,
            "# {}: {} fitted to {} of {} VMs ({}), R² {:.3}.",
            comment_text(group.name()),
            family.name(),
            estimated.vms,
            group.all.vms,
            of.name(),
            fit.r_squared,
        );
        let kind = group.of.as_deref().filter(|kind| is_by_type && !kind.is_empty());
        let is_offered = |kind: &str| {
            wanted.types.is_none_or(|types| types.iter().any(|offered| offered == kind))
        };
        if kind.is_some_and(|kind| !is_offered(kind)) {
            let _ = writeln!(text, "# The experiment has no such type:");
        }
        let mut lines = vec!["[[interruption]]".to_owned(), "model = \"lifetime\"".to_owned()];
        lines.extend(kind.map(|kind| format!("type = {}", toml_text(kind))));
        lines.push(law(&fit.lifetimes));
        // A law of all VMs and one of those of an hour would both preempt.
        let is_meant = match kind {
            _ if !is_by_type => group.of.as_deref() == wanted.group,
            kind => kind.is_some_and(is_offered),
        };
        for line in lines {
            let _ = writeln!(text, "{}{line}", if is_meant { "" } else { "# " });
        }
        text.push('\n');
    }
    text
}

/// A law as TOML key and value.
fn law(lifetimes: &Lifetimes) -> String {
    match lifetimes {
        Lifetimes::Exponential(law) => format!("mean = {}", toml_time(law.mean)),
        Lifetimes::Empirical(law) => {
            let all: Vec<_> = law.recorded.iter().map(|life| toml_time(*life)).collect();
            format!("recorded = [{}]", all.join(", "))
        }
        Lifetimes::Bathtub(law) => {
            let [b, tau1, tau2] = [law.b, law.tau1, law.tau2].map(toml_time);
            format!("bathtub = {{ a = {}, b = {b}, tau1 = {tau1}, tau2 = {tau2} }}", law.a.as_f64())
        }
        Lifetimes::Weibull(law) => {
            format!(
                "weibull = {{ scale = {}, shape = {} }}",
                toml_time(law.scale),
                law.shape.as_f64()
            )
        }
        Lifetimes::GompertzMakeham(law) => {
            let tau1 =
                law.tau1.map(|tau1| format!("tau1 = {}, ", toml_time(tau1))).unwrap_or_default();
            let [b, tau2] = [law.b, law.tau2].map(toml_time);
            format!("gompertz-makeham = {{ {tau1}b = {b}, tau2 = {tau2} }}")
        }
        Lifetimes::Uniform(law) => {
            format!("uniform = {{ from = {}, to = {} }}", toml_time(law.from), toml_time(law.to))
        }
    }
}

/// A duration as TOML text: in hours, exact to a few milliseconds; short durations exactly.
fn toml_time(span: Span) -> String {
    if span < Span::from_secs(36) {
        return format!("\"{span}\"");
    }
    let hours = format!("{:.6}", hours(span));
    format!("\"{}h\"", hours.trim_end_matches('0').trim_end_matches('.'))
}

/// A TOML string literal.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A text as a one-line comment: control characters become blanks.
fn comment_text(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Appends a fragment to an experiment file; `before` is its text, `source` its path.
///
/// # Errors
///
/// The file is no TOML, or its VMs already have lifetimes, so that both laws would apply.
pub fn appended(source: &str, before: &str, fragment: &str) -> Result<String, InputError> {
    let file = from_toml(source, before)?;
    let all = match file.get("interruption").map(|node| &node.value) {
        Some(Value::List(all)) => all.as_slice(),
        _ => &[],
    };
    let is_lifetime = |node: &&Node| node.text("model") == Some("lifetime");
    if let Some(there) = all.iter().find(is_lifetime) {
        let what = "its VMs have lifetimes already";
        return Err(InputError::new(
            &there.place,
            what,
            "take those lifetimes out, or give another file",
        ));
    }
    let between = if before.is_empty() || before.ends_with("\n\n") { "" } else { "\n" };
    let end = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let whole = format!("{before}{end}{between}{}\n", fragment.trim_end());
    // Such as `interruption = [...]`, which can't be added to by another table.
    from_toml(source, &whole)?;
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::{Bathtub, Empirical, GompertzMakeham, Uniform};
    use dormouse_units::Ppm;

    use super::*;
    use crate::{GroupOptions, Record, RecordedLife, groups};

    fn record() -> Record {
        let life = |n: u64| RecordedLife {
            span: Span::from_secs(n * n * 60),
            was_taken: true,
            kind: if n < 3 { "odd \"one\"\n".to_owned() } else { "n1-2".to_owned() },
            ..RecordedLife::default()
        };
        Record { lives: (1..=40).map(life).collect(), ..Record::default() }
    }

    fn fragment_of(by: Option<By>, family: Family) -> String {
        wanted(WantedFragment { by, group: None, family, of: Of::Preempted, types: None })
    }

    fn wanted(wanted: WantedFragment<'_>) -> String {
        let asked = GroupOptions { by: wanted.by, resamples: 0, seed: 1 };
        fragment(&groups(&record(), &asked), &wanted)
    }

    /// The `[[interruption]]` tables of an experiment file, as JSON.
    fn read(text: &str) -> serde_json::Value {
        let file = from_toml("x.toml", text).map_err(|e| e.to_string()).expect("TOML");
        file.get("interruption").expect("some").json()
    }

    #[test]
    fn a_fragment_is_toml_with_one_law_for_each_vm() {
        let all = read(&fragment_of(None, Family::Weibull));
        assert_eq!(all.as_array().map(Vec::len), Some(1));
        assert!(all[0]["weibull"]["scale"].as_str().is_some_and(|s| s.ends_with('h')), "{all}");
        let text = fragment_of(Some(By::Type), Family::Bathtub);
        assert!(text.contains("# odd \"one\" : too few"), "{text}");
        let typed = read(&text);
        assert_eq!(
            (typed[0]["type"].as_str(), &typed[1]),
            (Some("n1-2"), &serde_json::Value::Null)
        );
        let workload = read(&fragment_of(Some(By::Workload), Family::Uniform));
        assert_eq!(workload.as_array().map(Vec::len), Some(1), "the others are comments");
    }

    #[test]
    fn one_group_can_be_wanted_for_all_vms_and_types_that_are_not_offered_are_not() {
        let (by, family, of) = (Some(By::Type), Family::Bathtub, Of::Preempted);
        let one = wanted(WantedFragment { by, group: Some("n1-2"), family, of, types: None });
        let all = read(&one);
        assert_eq!(
            (all.as_array().map(Vec::len), &all[0]["type"]),
            (Some(1), &serde_json::Value::Null)
        );
        for (offered, count) in [("n1-2", 1), ("n1-4", 0)] {
            let types = [offered.to_owned()];
            let text = wanted(WantedFragment { by, group: None, family, of, types: Some(&types) });
            assert_eq!(text.matches("\n[[interruption]]").count(), count, "{text}");
            assert_eq!(text.contains("has no such type"), count == 0, "{text}");
        }
    }

    #[test]
    fn times_are_read_back() {
        for us in [1, 999_999, 35_999_999, 36_000_000, 3_600_000_000, 88_547_123_456] {
            let written = toml_time(Span::from_micros(us));
            let back: Span = written.trim_matches('"').parse().expect("a time");
            assert!(back.as_micros().abs_diff(us) <= 1_801, "{written}");
        }
        let h = |hours: u64| Span::from_secs(hours * 3_600);
        let gompertz = GompertzMakeham { tau1: None, b: h(24), tau2: h(1) };
        let bathtub = Bathtub { a: Ppm::new(413_700), b: h(24), tau1: h(1), tau2: h(2) };
        for (lifetimes, text) in [
            (
                Lifetimes::Bathtub(bathtub),
                "bathtub = { a = 0.4137, b = \"24h\", tau1 = \"1h\", tau2 = \"2h\" }",
            ),
            (
                Lifetimes::GompertzMakeham(gompertz),
                "gompertz-makeham = { b = \"24h\", tau2 = \"1h\" }",
            ),
            (
                Lifetimes::Uniform(Uniform { from: Span::ZERO, to: h(24) }),
                "uniform = { from = \"0s\", to = \"24h\" }",
            ),
            (
                Lifetimes::Empirical(Empirical { recorded: vec![h(1), h(10)] }),
                "recorded = [\"1h\", \"10h\"]",
            ),
        ] {
            assert_eq!(law(&lifetimes), text);
        }
    }

    #[test]
    fn a_fragment_is_added_once() {
        let fragment = fragment_of(None, Family::Exponential);
        for before in
            ["", "name = \"x\"", "name = \"x\"\n[[interruption]]\nmodel = \"poisson\"\n\n"]
        {
            let whole = appended("x.toml", before, &fragment).expect("added");
            assert!(whole.starts_with(before) && whole.ends_with("h\"\n"), "{whole}");
            assert!(!whole.contains("\n\n\n") && read(&whole).as_array().is_some(), "{whole}");
            let again = appended("x.toml", &whole, &fragment).map_err(|e| e.to_string());
            assert!(again.is_err_and(|e| e.contains("have lifetimes already; take")));
        }
        for before in ["name = ", "interruption = [{ model = \"poisson\" }]\n"] {
            assert!(appended("x.toml", before, &fragment).is_err(), "{before}");
        }
    }
}
