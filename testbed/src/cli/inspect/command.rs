//! Inspects a file: from its first bytes to the printed findings.

use std::fs::{self, File};
use std::os::unix::fs::FileTypeExt as _;

use dormouse_experiment::{InputError, chain};
use dormouse_input::Source;

use super::args::InspectArgs;
use super::head::Head;
use super::kind::Kind;
use crate::cli::args::Say;
use crate::cli::failure::Failure;
use crate::cli::next_steps;
use crate::cli::print::show;

/// Prints what kind of file a file is, and what it contains.
pub(crate) fn inspect(args: &InspectArgs) -> Result<(), Failure> {
    if args.file.is_dir() {
        let remedy = "give a file; what came of a run, `dormouse explain` and `dormouse check` say";
        return Err(args.refused("it is a folder", remedy));
    }
    if let Ok(told) = fs::metadata(&args.file)
        && !told.is_file()
    {
        let what = match told.file_type().is_fifo() {
            true => "it is a pipe",
            false => "it is a device or socket",
        };
        return Err(args.refused(what, "save it as a file first, since it is read more than once"));
    }
    let unreadable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::InvalidData => {
            let text = chain(&error);
            let (what, remedy) = text.rsplit_once("; ").unwrap_or((&text, "give another file"));
            args.refused(what, remedy)
        }
        _ => InputError::unreadable(&args.file, &error).into(),
    };
    let file = File::open(&args.file).map_err(unreadable)?;
    let mut source = Source::new(file).map_err(unreadable)?;
    let head = Head::peek(&mut source).map_err(unreadable)?;
    if head.is_empty() {
        return Err(args.refused("it is empty", format!("give a file of {}", Kind::listed())));
    }
    if let Some((what, remedy)) = elsewhere(args, &head) {
        return Err(args.refused(what, remedy));
    }
    let Some(kind) = Kind::detect(&head, &args.chosen()).map_err(unreadable)? else {
        let what = format!("it begins with '{}', which no known kind of file does", head.begins());
        return Err(args.refused(what, format!("give one of these: {}", Kind::listed())));
    };
    let found = kind.inspect(args, &head)?;
    show(args.json, &found, || found.to_string().trim_end().to_owned())?;
    let say = Say { quiet: false, json: args.json };
    next_steps::say(say, || next_steps::after_inspect(found.kind(), &args.file));
    Ok(())
}

/// Kind and use of a file that another option takes as an input; `None` for a file of any other kind.
fn elsewhere(args: &InspectArgs, head: &Head) -> Option<(&'static str, String)> {
    const SECTIONS: [&str; 3] = ["[workload]", "[scheduler]", "[cloud]"];
    if !head.is_json() && head.lines().any(|line| SECTIONS.contains(&line.trim())) {
        let run = format!("run it: dormouse run {}", args.file.display());
        return Some(("it is an experiment, which uses files such as are inspected here", run));
    }
    let use_both = || "run it: dormouse run --job job.json --env env.json".to_owned();
    if head.has_key("tasks") && head.has_key("job_id") {
        return Some(("it is a job.json of the Burst-HADS authors", use_both()));
    }
    let is_env = head.has_key("instances") && head.has_key("global_limits");
    is_env.then(|| ("it is an env.json of the Burst-HADS authors", use_both()))
}
