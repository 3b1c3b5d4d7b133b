//! Tests of the shapes of a Gantt chart on a page.

use dormouse_units::{Tier, Time};

use super::{BarFill, GanttBar, GanttChart, GanttLane, GanttPlace};

/// Two processors for an hour: job 7 in the foreground, job 8 in the background.
fn chart() -> GanttChart {
    let bar = |label: &str, tier| GanttBar {
        place: GanttPlace { tier, ..GanttPlace::rows(0, 0..2) },
        from: Time::ZERO,
        until: Time::from_secs(3_600),
        fill: BarFill::Work(0),
        label: label.to_owned(),
        title: format!("job {label}"),
    };
    GanttChart {
        window: (Time::ZERO, Time::from_secs(3_600)),
        lanes: vec![GanttLane { rows: 2, has_background: true, ..GanttLane::default() }],
        bars: vec![bar("7", Tier::Foreground), bar("8", Tier::Background)],
        ..GanttChart::default()
    }
}

/// The parts of a page's chart: for a wide screen, a phone's, and a sheet of paper.
fn shapes() -> [String; 3] {
    let page = chart().to_markup().into_string();
    let parts = page.split("<div class=\"on-").skip(1).map(str::to_owned);
    let parts: Vec<_> = parts.collect();
    parts.try_into().unwrap_or_else(|parts| panic!("three shapes: {parts:?}"))
}

#[test]
fn bars_in_the_background_have_labels_too() {
    for (shape, name) in shapes().iter().zip(["wide", "narrow", "sheet"]) {
        assert!(shape.starts_with(name), "{shape}");
        for label in [">7</text>", ">8</text>"] {
            assert!(shape.contains(label), "{label} is not on the {name} chart: {shape}");
        }
    }
}

#[test]
fn a_sheet_of_paper_has_a_chart_of_its_size_without_tooltips() {
    let [wide, _, sheet] = shapes();
    assert!(wide.contains("<title>job 8</title>") && wide.contains("viewBox=\"0 0 1240 "));
    assert!(!sheet.contains("<title>") && sheet.contains("viewBox=\"0 0 760 "), "{sheet}");
    assert!(sheet.contains("</svg>") && sheet.matches("class=\"item bar").count() == 2, "{sheet}");
}
