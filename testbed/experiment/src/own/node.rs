//! The command of a node of DAGMan that is run again or has scripts: a shell runs them in DAGMan's order, on the VM of
//! the node and in its directory.

use dormouse_workload::NodeRules;

/// The command of a node by these rules, from the command of one run. The first words of the rules' scripts are
/// programs that the node's directory or the `PATH` has.
///
/// As in DAGMan, the node fails if `PRE` fails, and `POST`, if there is one, decides in the place of the program; after
/// a failure all of it begins again.
pub(super) fn node_command(name: &str, argv: Vec<String>, rules: &NodeRules) -> Vec<String> {
    if rules.is_plain() {
        return argv;
    }
    let shell = NodeScript { name, rules };
    let begin = ["/bin/sh", "-c", &shell.text(), "dagman-node"].map(str::to_owned);
    begin.into_iter().chain(argv).collect()
}

struct NodeScript<'a> {
    name: &'a str,
    rules: &'a NodeRules,
}

impl NodeScript<'_> {
    fn text(&self) -> String {
        let NodeRules { retries, unless_exit, pre, pre_skip, post } = self.rules;
        let mut lines = vec!["retry=0".to_owned(), "while :; do".to_owned()];
        let mut say = |line: String| lines.push(line);
        say("pre=0".to_owned());
        if !pre.is_empty() {
            say(format!("{}; pre=$?", self.words(pre)));
        }
        if let Some(status) = pre_skip {
            say(format!("[ $pre -eq {status} ] && exit 0"));
        }
        say("if [ $pre -ne 0 ]; then code=$pre".to_owned());
        say("else \"$@\"; code=$?".to_owned());
        // DAGMan has the signal that killed a program as a negative status, and a shell as one above 128.
        say("if [ $code -gt 128 ]; then returned=-$((code - 128)); else returned=$code; fi"
            .to_owned());
        if !post.is_empty() {
            say(format!("{}; code=$?", self.words(post)));
        }
        say("fi".to_owned());
        say("[ $code -eq 0 ] && exit 0".to_owned());
        if let Some(status) = unless_exit {
            say(format!("[ $code -eq {status} ] && exit $code"));
        }
        say(format!("[ $retry -ge {retries} ] && exit $code"));
        say("retry=$((retry + 1))".to_owned());
        let name = quote(self.name);
        say(format!(
            "echo {name}\" ended with status $code, and is run again ($retry of {retries})\" >&2"
        ));
        say("done".to_owned());
        lines.join("\n")
    }

    /// Words of a script's command, in which a word that is a macro of DAGMan has its value.
    fn words(&self, words: &[String]) -> String {
        let word = |word: &String| match word.as_str() {
            "$JOB" | "$NODE" => quote(self.name),
            "$RETRY" => "\"$retry\"".to_owned(),
            "$MAX_RETRIES" => self.rules.retries.to_string(),
            "$RETURN" => "\"${returned:-$code}\"".to_owned(),
            "$PRE_SCRIPT_RETURN" => "\"$pre\"".to_owned(),
            _ => quote(word),
        };
        words.iter().map(word).collect::<Vec<_>>().join(" ")
    }
}

/// A word as a shell reads it back.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    /// Exit status of a node whose runs append to `said`, with the lines of `said` and of standard error.
    fn run(program: &str, rules: NodeRules) -> (i32, Vec<String>, String) {
        let folder = tempfile::tempdir().unwrap();
        let argv = ["sh", "-c", program].map(str::to_owned).to_vec();
        let command = node_command("it's", argv, &rules);
        let ended = Command::new(&command[0])
            .args(&command[1..])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = fs::read_to_string(folder.path().join("said")).unwrap_or_default();
        let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
        (ended.status.code().unwrap(), said.lines().map(str::to_owned).collect(), errors)
    }

    fn script(text: &str, more: &[&str]) -> Vec<String> {
        ["sh", "-c", text].iter().chain(more).map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn a_node_without_rules_is_its_command() {
        let argv = vec!["solve".to_owned()];
        assert_eq!(node_command("a", argv.clone(), &NodeRules::default()), argv);
    }

    #[test]
    fn a_node_that_fails_is_run_again() {
        let third = "echo run >>said; [ $(wc -l <said) -ge 3 ] || exit 5";
        let rules =
            |retries, unless_exit| NodeRules { retries, unless_exit, ..NodeRules::default() };
        let (status, said, errors) = run(third, rules(3, None));
        assert_eq!((status, said.len()), (0, 3));
        assert!(errors.contains("it's ended with status 5, and is run again (2 of 3)"), "{errors}");
        assert_eq!(run(third, rules(1, None)).0, 5);
        let (status, said, _) = run(third, rules(3, Some(5)));
        assert_eq!((status, said.len()), (5, 1));
    }

    #[test]
    fn scripts_run_before_and_after_and_post_decides() {
        let pre = script("echo pre \"$0\" >>said", &["$JOB"]);
        let post =
            script("echo post $0 $1 $2 >>said; exit 0", &["$RETURN", "$RETRY", "$MAX_RETRIES"]);
        let rules = NodeRules { pre, post, ..NodeRules::default() };
        let (status, said, _) = run("echo run >>said; exit 7", rules);
        assert_eq!(
            (status, &said[..]),
            (0, &["pre it's", "run", "post 7 0 0"].map(str::to_owned)[..])
        );
        let rules = NodeRules { post: script("exit 3", &[]), ..NodeRules::default() };
        assert_eq!(run("exit 0", rules).0, 3);
        let rules =
            NodeRules { post: script("echo $0 >>said", &["$RETURN"]), ..NodeRules::default() };
        assert_eq!(run("kill -9 $$", rules).1, ["-9"]);
    }

    #[test]
    fn a_node_whose_pre_fails_does_not_run() {
        let post = || script("echo post >>said", &[]);
        let rules = NodeRules { pre: script("exit 4", &[]), post: post(), ..NodeRules::default() };
        let (status, said, _) = run("echo run >>said", rules.clone());
        assert_eq!((status, said.len()), (4, 0));
        let (status, said, _) = run("echo run >>said", NodeRules { pre_skip: Some(4), ..rules });
        assert_eq!((status, said.len()), (0, 0));
    }
}
