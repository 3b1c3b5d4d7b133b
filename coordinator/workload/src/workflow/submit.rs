//! HTCondor's submit files, as far as they say what one process runs and needs.

use std::collections::BTreeMap;

use dormouse_units::Bytes;

use super::{WorkflowCommand, WorkflowTask};

/// Greatest number of macro lookups for one setting, including nested ones; more are probably a
/// cycle or a mistake.
const MOST_MACROS: u32 = 1_000;

/// The settings of a submit file, by lower-case name.
pub(super) type Settings = BTreeMap<String, String>;

/// Parses a submit file: its settings, and the number of processes that its `queue` commands ask
/// for.
pub(super) fn parse_settings(text: &str) -> (Settings, u64) {
    let (mut settings, mut processes) = (Settings::new(), 1);
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    for line in joined.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some((name, value)) = line.split_once('=')
            && !name.trim().contains(char::is_whitespace)
        {
            let name = name.trim().trim_start_matches('+').to_ascii_lowercase();
            settings.insert(name, value.trim().to_owned());
            continue;
        }
        let mut words = line.split_whitespace();
        if words.next().is_some_and(|word| word.eq_ignore_ascii_case("queue"))
            && let Some(number) = words.next()
        {
            // `queue x from file` and the like are of as many processes as that has lines.
            processes = number.parse().unwrap_or(u64::MAX);
        }
    }
    (settings, processes)
}

/// Expands the macros of a setting, first from `macros`, then from the settings. Undefined macros
/// are empty, as in HTCondor. `left` is the number of lookups that remain; beyond it macros are
/// empty, too.
fn expand_macros(text: &str, settings: &Settings, macros: &Settings, left: &mut u32) -> String {
    let (mut done, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("$(") {
        let Some((name, after)) = after.split_once(')') else { break };
        done.push_str(before);
        let (name, other) = name.split_once(':').map_or((name, ""), |(name, other)| (name, other));
        let name = name.trim().to_ascii_lowercase();
        let value = macros.get(&name).or_else(|| settings.get(&name)).map_or(other, String::as_str);
        if let Some(fewer) = left.checked_sub(1) {
            *left = fewer;
            done.push_str(&expand_macros(value, settings, macros, left));
        }
        rest = after;
    }
    done.push_str(rest);
    done
}

/// Fills a task's fields from the settings of a process, with these macros.
pub(super) fn describe_task(task: &mut WorkflowTask, settings: &Settings, macros: &Settings) {
    let get = |name: &str| {
        let mut left = MOST_MACROS;
        let value =
            settings.get(name).map(|value| expand_macros(value, settings, macros, &mut left));
        value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    let list = |name: &str| -> Vec<String> {
        let files = get(name).unwrap_or_default();
        files.split(',').map(|file| file.trim().to_owned()).filter(|f| !f.is_empty()).collect()
    };
    task.memory = get("request_memory").and_then(|text| parse_memory(&text));
    task.cores = get("request_cpus").and_then(|text| text.parse().ok()).filter(|cores| *cores > 0);
    (task.inputs, task.outputs) = (list("transfer_input_files"), list("transfer_output_files"));
    // HTCondor brings back all new files of a process that does not say which.
    task.leaves_all = !settings.contains_key("transfer_output_files");
    if let Some(program) = get("executable") {
        let arguments = get("arguments").map(|text| split_words(&text)).unwrap_or_default();
        let variables = get("environment").map(|text| split_words(&text)).unwrap_or_default();
        let pair = |word: &String| {
            let (name, value) = word.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        let command = task.command.get_or_insert_with(WorkflowCommand::default);
        command.argv = std::iter::once(program).chain(arguments).collect();
        command.env = variables.iter().filter_map(pair).collect();
        command.directory = get("initialdir").or_else(|| command.directory.take());
    }
}

/// Splits arguments or an environment into words. A text in double quotes has HTCondor's new syntax, in which single
/// quotes keep a word together; in other texts, blanks separate words.
fn split_words(text: &str) -> Vec<String> {
    let Some(inside) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        return text.split_whitespace().map(str::to_owned).collect();
    };
    let inside = inside.replace("\"\"", "\"");
    let (mut words, mut word, mut is_quoted) = (Vec::new(), None::<String>, false);
    let mut letters = inside.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' if is_quoted && letters.peek() == Some(&'\'') => {
                letters.next();
                word.get_or_insert_default().push('\'');
            }
            '\'' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            letter if letter.is_whitespace() && !is_quoted => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// Parses a `request_memory`: a number of MiB, or with a unit such as `2G` or `512 MB`. `None`: the value is an
/// expression.
fn parse_memory(text: &str) -> Option<Bytes> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let shift = match unit.trim().to_ascii_uppercase().as_str() {
        "K" | "KB" => 10,
        "" | "M" | "MB" => 20,
        "G" | "GB" => 30,
        "T" | "TB" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift).map(Bytes::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_its_words_and_its_needs() {
        let text = "# a comment\nexecutable = bin/solve\narguments = \"--in '$(name) a.txt' -n $(n:3)\"\n\
                    environment = \"A=1 B='two words'\"\nrequest_memory = 2 GB\nrequest_cpus=4\n\
                    transfer_input_files = $(name).txt, \\\n  common.dat\nqueue\n";
        let (settings, processes) = parse_settings(text);
        let macros = Settings::from([("name".to_owned(), "left".to_owned())]);
        let mut task = WorkflowTask::default();
        describe_task(&mut task, &settings, &macros);
        let command = task.command.expect("it has an executable");
        assert_eq!(command.argv, ["bin/solve", "--in", "left a.txt", "-n", "3"]);
        assert_eq!(command.env["B"], "two words");
        assert_eq!((task.memory, task.cores, processes), (Some(Bytes::new(2 << 30)), Some(4), 1));
        assert_eq!(task.inputs, ["left.txt", "common.dat"]);
    }

    #[test]
    fn old_arguments_and_plain_memory_are_read() {
        let (settings, processes) = parse_settings("executable=a\narguments = x 'y z'\nQueue 5\n");
        let mut task = WorkflowTask::default();
        describe_task(&mut task, &settings, &Settings::new());
        assert_eq!(task.command.map(|c| c.argv.join("|")), Some("a|x|'y|z'".to_owned()));
        assert_eq!(
            (processes, parse_memory("512"), parse_memory("a+1")),
            (5, Some(Bytes::new(512 << 20)), None)
        );
    }

    #[test]
    fn a_macro_of_itself_ends() {
        let (settings, _) = parse_settings(
            "executable = $(executable)$(executable)$(a)$(a)$(a)\na = $(executable)$(a)$(a)\n",
        );
        describe_task(&mut WorkflowTask::default(), &settings, &Settings::new());
    }
}
