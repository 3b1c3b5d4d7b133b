//! Reasons for failed checkpoints, in words that are the same for the same cause.

/// The reason without what differs between failures: the task, its process and the path of its log.
pub(super) fn reason(why: &str) -> String {
    let first = why.lines().next().unwrap_or_default();
    let said = first.split_once("; its log ").map_or(first, |(said, _)| said);
    // "the checkpoint of run/7 failed in criu: …"
    let said =
        match said.strip_prefix("the checkpoint of ").and_then(|of| of.split_once(" failed in ")) {
            Some((_, rest)) => rest.split_once(": ").map_or(rest, |(_, rest)| rest),
            None => said,
        };
    let words: Vec<_> = said.split(' ').map(without_number).collect();
    words.join(" ").trim().to_owned()
}

/// The word itself, or "…" for a number (of a process, or a duration).
fn without_number(word: &str) -> &str {
    let bare = word.trim_end_matches([',', ':', ';', '.']);
    let is_number = !bare.is_empty() && bare.chars().all(|c| c.is_ascii_digit());
    if is_number { "…" } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_task_to_task_is_left_out() {
        let dump = |task: u32, pid: u32| {
            format!(
                "the checkpoint of j60-18eb/{task} failed in criu: criu dump failed: Error \
                 (compel/src/infect.c:417): Unable to detach from {pid}: No such process; its log \
                 /run/dormouse/{task}/dump.log ends\n  (00.1{task}) Error (criu/x.c:1): no"
            )
        };
        assert_eq!(reason(&dump(7, 60)), reason(&dump(41, 1234)));
        let expected = "criu dump failed: Error (compel/src/infect.c:417): Unable to detach from … No \
                        such process";
        assert_eq!(reason(&dump(7, 60)), expected);
        let late = "criu dump did not finish within 30000 ms and was killed";
        assert_eq!(reason(late), "criu dump did not finish within … ms and was killed");
        assert_eq!(reason("this worker has no working CRIU"), "this worker has no working CRIU");
        assert_eq!(reason(""), "");
    }
}
