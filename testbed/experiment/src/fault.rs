//! Faults of a live run, from `[[fault]]`.

use dormouse_cloud::Types;
use dormouse_documents::{Mistakes, Node, Value, instead, read};
use dormouse_model::{FaultKind, FaultVictims, HostFault};
use dormouse_units::{Bytes, Ppm, Span, Time, TypeName};

use super::Live;
use super::sections::{FaultName, FaultSection};
use super::zones;

/// Greatest number of faults: more can't be told apart in a table and a chart.
const MAX_FAULTS: usize = 10_000;

/// Reads the faults of an experiment, in order of time.
pub(crate) fn faults(
    root: &Node,
    live: &Live,
    types: &Types,
    found: &mut Mistakes,
) -> Vec<HostFault> {
    let Some(Node { value: Value::List(list), place }) = root.get("fault") else {
        return Vec::new();
    };
    if list.len() > MAX_FAULTS {
        let what = format!("{} faults are too many", list.len());
        found.add(place, what, format!("give {MAX_FAULTS} at most"));
    }
    let check = |node: &Node| {
        let section: FaultSection = read(node, found)?;
        resolve_fault(&section, node, (live, types), found)
    };
    let mut faults: Vec<HostFault> = list.iter().filter_map(check).collect();
    faults.sort_by_key(|fault| fault.at);
    faults
}

fn resolve_fault(
    section: &FaultSection,
    node: &Node,
    (live, types): (&Live, &Types),
    found: &mut Mistakes,
) -> Option<HostFault> {
    let before = found.count();
    let kind = resolve_kind(section, node, found);
    let on = resolve_victims(section, node, (live, types), found);
    let lasts = match (section.kind, section.lasts) {
        (FaultName::Kill, None) => Span::ZERO,
        (FaultName::Kill, Some(_)) => {
            let what = "a kill does not last: the worker is away until it is started again";
            found.add(node.place_of("lasts"), what, "leave it out");
            return None;
        }
        (_, Some(lasts)) => lasts,
        (_, None) => {
            found.add(&node.place, "it does not say how long it lasts", "add: lasts = \"2m\"");
            return None;
        }
    };
    let (kind, on, at) = (kind?, on?, Time::ZERO + section.at);
    (found.count() == before).then_some(HostFault { at, lasts, on, kind })
}

/// Resolves the kind of the fault that the section at `node` describes, with the number that some kinds have: a delay,
/// a lost share of the packets, or a rate.
fn resolve_kind(section: &FaultSection, node: &Node, found: &mut Mistakes) -> Option<FaultKind> {
    let FaultSection { kind, by, part, per_second, .. } = *section;
    let wanted = match kind {
        FaultName::Delay | FaultName::SlowCriu => Some(("by", "by = \"50ms\"")),
        FaultName::Loss => Some(("part", "part = 0.05")),
        FaultName::Rate => Some(("per-second", "per-second = \"1 MiB\"")),
        FaultName::Partition | FaultName::Kill | FaultName::Pause | FaultName::DiskFull => None,
    };
    let given =
        [("by", by.is_some()), ("part", part.is_some()), ("per-second", per_second.is_some())];
    for (key, is_given) in given {
        if is_given && wanted.is_none_or(|(wanted, _)| wanted != key) {
            let what = format!("a fault of this kind has no {key}");
            found.add(node.place_of(key), what, "leave it out, or change the kind");
        }
    }
    if let Some((key, example)) = wanted
        && !given.contains(&(key, true))
    {
        found.add(&node.place, format!("it lacks {key}"), format!("add: {example}"));
        return None;
    }
    let real_us = by.unwrap_or_default().as_micros();
    if per_second == Some(Bytes::ZERO) {
        let remedy = "give at least a byte, or kind = \"partition\"";
        found.add(node.place_of("per-second"), "nothing passes at this rate", remedy);
    }
    Some(match kind {
        FaultName::Partition => FaultKind::Partition,
        FaultName::Delay => FaultKind::Delay { real_us },
        FaultName::Loss => FaultKind::Loss { part: part.unwrap_or(Ppm::ZERO) },
        FaultName::Rate => FaultKind::Rate { bytes_per_second: per_second.unwrap_or(Bytes::ZERO) },
        FaultName::Kill => FaultKind::Kill,
        FaultName::Pause => FaultKind::Pause,
        FaultName::DiskFull => FaultKind::DiskFull,
        FaultName::SlowCriu => FaultKind::SlowCriu { real_us },
    })
}

/// Hosts that the fault aims at.
fn resolve_victims(
    section: &FaultSection,
    node: &Node,
    (live, types): (&Live, &Types),
    found: &mut Mistakes,
) -> Option<FaultVictims> {
    let FaultSection { workers, rack, kind_of_vm, zone, all, .. } = section;
    let named = (!workers.is_empty()).then_some(workers);
    match (named, rack, kind_of_vm, zone, all) {
        (Some(workers), None, None, None, false) => Some(FaultVictims::Workers(workers.clone())),
        (None, Some(rack), None, None, false) => match live.racks.get(rack) {
            Some(workers) => Some(FaultVictims::Workers(workers.clone())),
            None => {
                let known: Vec<&str> = live.racks.keys().map(String::as_str).collect();
                let remedy = match known.is_empty() {
                    true => format!("add [live.racks] with: {rack} = [\"local-0\", \"local-1\"]"),
                    false => instead(rack, &known),
                };
                found.add(node.place_of("rack"), format!("there is no rack '{rack}'"), remedy);
                None
            }
        },
        (None, None, Some(kind), None, false) => {
            let is_there = zones::each(kind, types).iter().any(|kind| types.contains_key(kind));
            if !is_there {
                let known: Vec<&str> = types.keys().map(TypeName::as_str).collect();
                let what = format!("no type is called '{kind}'");
                found.add(node.place_of("type"), what, instead(kind.as_str(), &known));
            }
            Some(FaultVictims::Type(kind.clone()))
        }
        (None, None, None, Some(zone), false) => {
            let known = zones::names(types);
            if !known.contains(&zone.as_str()) {
                let what = format!("no zone is called '{zone}'");
                found.add(node.place_of("zone"), what, instead(zone.as_str(), &known));
            }
            Some(FaultVictims::Zone(zone.clone()))
        }
        (None, None, None, None, true) => Some(FaultVictims::All),
        _ => {
            let what = "it does not say in one way whom it is meant for";
            let remedy = "give one of workers = [\"local-1\"], rack = \"a\", type = \"c3.large\", \
                          zone = \"us-east-1a\" and all = true";
            found.add(&node.place, what, remedy);
            None
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use dormouse_model::{FaultKind, FaultVictims};
    use dormouse_units::{Span, Time};

    use crate::of_text;

    fn with(faults: &str) -> Result<Vec<dormouse_model::HostFault>, String> {
        let text = format!(
            "name = \"e\"\n[cloud]\ncatalogue = \"ec2-2020\"\n[workload]\nkind = \"bag\"\nname = \"j60\"\n\
             deadline = \"45m\"\n[scheduler]\nname = \"burst-hads\"\n[live.racks]\na = [\"w1\", \"w2\"]\n{faults}"
        );
        of_text("e.toml", &text).map(|it| it.faults).map_err(|error| error.to_string())
    }

    #[test]
    fn faults_are_in_order_of_time_whatever_the_file_s() {
        let faults = with(
            "[[fault]]\nat = \"10m\"\nkind = \"kill\"\nrack = \"a\"\n\
             [[fault]]\nat = \"5m\"\nlasts = \"1m\"\nkind = \"delay\"\nby = \"50ms\"\nall = true\n",
        )
        .unwrap();
        assert_eq!(faults[0].kind, FaultKind::Delay { real_us: 50_000 });
        assert_eq!((faults[0].at, faults[0].lasts), (Time::from_secs(300), Span::from_secs(60)));
        let rack = vec!["w1".to_owned(), "w2".to_owned()];
        assert_eq!(faults[1].on, FaultVictims::Workers(rack));
    }

    #[test]
    fn what_a_fault_lacks_or_has_too_much_is_said() {
        for (fault, words) in [
            ("kind = \"delay\"\nlasts = \"1m\"\nall = true", "it lacks by"),
            ("kind = \"kill\"\nlasts = \"1m\"\nall = true", "does not last"),
            ("kind = \"pause\"\nall = true", "how long it lasts"),
            ("kind = \"pause\"\nlasts = \"1m\"", "whom it is meant for"),
            ("kind = \"pause\"\nlasts = \"1m\"\nall = true\nrack = \"a\"", "whom it is meant for"),
            ("kind = \"pause\"\nlasts = \"1m\"\nrack = \"b\"", "no rack 'b'"),
            ("kind = \"pause\"\nlasts = \"1m\"\ntype = \"c9\"", "no type is called 'c9'"),
            ("kind = \"pause\"\nlasts = \"1m\"\nzone = \"x\"", "no zone is called 'x'"),
            ("kind = \"pause\"\nlasts = \"1m\"\nall = true\npart = 0.5", "has no part"),
            ("kind = \"rate\"\nlasts = \"1m\"\nall = true\nper-second = \"0 B\"", "nothing passes"),
        ] {
            let error = with(&format!("[[fault]]\nat = \"1m\"\n{fault}\n")).unwrap_err();
            assert!(error.contains(words), "{fault}: {error}");
        }
    }
}
