//! Lines of DAGMan that say when a node succeeds: RETRY, SCRIPT and PRE_SKIP.

use super::NodeRules;

/// Keywords of the lines of a DAGMan file that say when a node succeeds.
pub(super) const RULES: [&str; 3] = ["RETRY", "SCRIPT", "PRE_SKIP"];

/// Rule by which a node of a DAGMan workflow succeeds: its retries, a script before or after it, or an exit status with
/// which it is skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NodeRule {
    Retry { retries: u32, unless_exit: Option<i32> },
    Pre(Vec<String>),
    Post(Vec<String>),
    PreSkip(i32),
}

/// What is wrong with a line of a DAGMan file, and the remedy.
type RuleFlaw = (&'static str, &'static str);

impl NodeRule {
    /// Parses the words behind a keyword of [`RULES`]: the name of the node, and what the line says of it. `None`: a
    /// script for nodes on hold, which there are none of here.
    pub(super) fn parse<'a>(
        keyword: &str,
        words: &[&'a str],
    ) -> Result<Option<(&'a str, Self)>, RuleFlaw> {
        match keyword {
            "RETRY" => Self::parse_retry(words).map(Some),
            "SCRIPT" => Self::parse_script(words),
            _ => match words {
                [name, status] if status.parse::<i32>().is_ok() => {
                    Ok(Some((name, Self::PreSkip(status.parse().unwrap_or_default()))))
                }
                _ => Err((
                    "PRE_SKIP takes a node and an exit status",
                    "write it like PRE_SKIP nodeA 1",
                )),
            },
        }
    }

    fn parse_retry<'a>(words: &[&'a str]) -> Result<(&'a str, Self), RuleFlaw> {
        let flaw =
            ("RETRY takes a node and a number", "write RETRY a 3, or RETRY a 3 UNLESS-EXIT 2");
        let (name, retries, unless) = match words {
            [name, retries] => (name, retries, None),
            [name, retries, word, status] if word.eq_ignore_ascii_case("UNLESS-EXIT") => {
                (name, retries, Some(status.parse().map_err(|_| flaw)?))
            }
            _ => return Err(flaw),
        };
        let retries = retries.parse().map_err(|_| flaw)?;
        Ok((name, Self::Retry { retries, unless_exit: unless }))
    }

    fn parse_script<'a>(words: &[&'a str]) -> Result<Option<(&'a str, Self)>, RuleFlaw> {
        let flaw =
            ("SCRIPT is to be PRE or POST, a node and a program", "write SCRIPT POST a check.sh");
        let is = |word: Option<&&str>, known: &str| {
            word.is_some_and(|it| it.eq_ignore_ascii_case(known))
        };
        let mut rest = words;
        // DEFER has a status and a time after which the script is tried again, DEBUG a file and what goes into it.
        while is(rest.first(), "DEFER") || is(rest.first(), "DEBUG") {
            rest = rest.get(3..).ok_or(flaw)?;
        }
        let [when, name, program @ ..] = rest else { return Err(flaw) };
        let program: Vec<String> = program.iter().map(|&word| word.to_owned()).collect();
        if program.is_empty() {
            return Err(flaw);
        }
        match when.to_ascii_uppercase().as_str() {
            "PRE" => Ok(Some((name, Self::Pre(program)))),
            "POST" => Ok(Some((name, Self::Post(program)))),
            "HOLD" => Ok(None),
            _ => Err(flaw),
        }
    }

    /// Writes this rule into the rules of its node.
    pub(super) fn apply(&self, rules: &mut NodeRules) {
        match self {
            Self::Retry { retries, unless_exit } => {
                (rules.retries, rules.unless_exit) = (*retries, *unless_exit);
            }
            Self::Pre(program) => rules.pre.clone_from(program),
            Self::Post(program) => rules.post.clone_from(program),
            Self::PreSkip(status) => rules.pre_skip = Some(*status),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(lines: &[&str]) -> Result<NodeRules, RuleFlaw> {
        let mut rules = NodeRules::default();
        for line in lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let Some((name, rule)) = NodeRule::parse(words[0], &words[1..])? {
                assert_eq!(name, "a");
                rule.apply(&mut rules);
            }
        }
        Ok(rules)
    }

    #[test]
    fn lines_on_success_are_read() {
        let found = rules(&[
            "RETRY a 3 UNLESS-EXIT 2",
            "SCRIPT PRE a fetch.sh in.txt",
            "SCRIPT DEFER 4 60 DEBUG log ALL post a check.sh $RETURN",
            "SCRIPT HOLD a tell.sh",
            "PRE_SKIP a 7",
        ]);
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let wanted = NodeRules {
            retries: 3,
            unless_exit: Some(2),
            pre: words(&["fetch.sh", "in.txt"]),
            pre_skip: Some(7),
            post: words(&["check.sh", "$RETURN"]),
        };
        assert_eq!(found, Ok(wanted));
        assert!(rules(&["RETRY a 0"]).is_ok_and(|rules| rules.is_plain()));
    }

    #[test]
    fn lines_that_are_wrong_are_said() {
        for line in [
            "RETRY a",
            "RETRY a soon",
            "RETRY a 3 UNLESS 2",
            "RETRY a 3 UNLESS-EXIT x",
            "SCRIPT POST a",
            "SCRIPT AFTER a x",
            "SCRIPT DEFER 4",
            "PRE_SKIP a",
            "PRE_SKIP a x",
        ] {
            assert!(rules(&[line]).is_err(), "{line}");
        }
    }
}
