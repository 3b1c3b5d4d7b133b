//! The groups of commands in `dormouse --help`.

use std::fmt::Write as _;

use clap::Command;
use clap::builder::StyledStr;
use dormouse_view::Terminal;

use super::terminal;

/// Widest line of the list of commands, in columns.
const WIDEST: u16 = 110;

/// Headings with the names of their commands, in the order of the help.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Run",
        &[
            "run",
            "compare",
            "sweep",
            "merge",
            "resume",
            "status",
            "submit",
            "close",
            "interrupt",
            "cancel",
        ],
    ),
    ("Look", &["watch", "explain", "events", "export", "check", "replay", "twin"]),
    ("Papers", &["reproduce"]),
    (
        "Testbed",
        &[
            "doctor",
            "calibrate",
            "measure",
            "coordinator",
            "worker",
            "identity",
            "token",
            "metadata",
            "ec2",
        ],
    ),
    ("Data", &["inspect", "workload", "prices", "fit", "advise"]),
    ("Names and keys", &["list", "show", "reference", "schema", "completions", "man"]),
];

/// The command with a help that lists its subcommands in groups.
pub(super) fn with_groups(command: Command) -> Command {
    let header = clap::builder::styling::Styles::styled().get_header().to_owned();
    let literal = clap::builder::styling::Styles::styled().get_literal().to_owned();
    let width = terminal::stdout().width.map_or(WIDEST, |width| width.min(WIDEST));
    let lines = Terminal { width: Some(width), has_colour: false };
    let mut text = StyledStr::new();
    // Writing into a text can't fail.
    let _ = writeln!(text, "{{about-with-newline}}\n{{usage-heading}} {{usage}}");
    for (heading, names) in GROUPS {
        let _ = writeln!(text, "\n{header}{heading}:{header:#}");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let line = lines.wrapped(&format!("  {name:<12} {about}"), 15);
            let (_, about) = line.split_at(name.len() + 2);
            let _ = writeln!(text, "  {literal}{name}{literal:#}{about}");
        }
    }
    let _ = write!(text, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    command.help_template(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::grammar::grammar;

    #[test]
    fn every_command_is_in_one_group_with_its_sentence() {
        let mut named: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        named.sort_unstable();
        let all = grammar();
        let shown = all.get_subcommands().filter(|command| !command.is_hide_set());
        let mut there: Vec<&str> = shown.map(Command::get_name).collect();
        there.sort_unstable();
        assert_eq!(named, there);
        let help = grammar().render_help().to_string();
        assert!(help.contains("\nLook:\n  watch        Show a run on a page"), "{help}");
        assert!(help.contains("\nOptions:\n  -h, --help"), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= usize::from(WIDEST)), "{help}");
    }
}
