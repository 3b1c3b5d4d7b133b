//! The pages of `docs/papers` say what the results that are kept beside them say.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use dormouse_reproduce::papers::{
    ClaimList, ListedClaim, MarkdownTable, PaperClaim, ReproducedPapers, named,
};

/// Papers in the order in which `dormouse reproduce all` makes them.
const PAPERS: [&str; 5] = ["burst-hads", "opie", "acc", "bathtub", "measy"];

/// Papers whose results are kept: all but OPIE's at least, whose latencies are those of one host.
fn kept_papers() -> Vec<&'static str> {
    let is_kept = |paper: &&str| pages().join(format!("results/{paper}.json")).is_file();
    let kept: Vec<_> = PAPERS.into_iter().filter(is_kept).collect();
    assert!(PAPERS.iter().all(|paper| *paper == "opie" || kept.contains(paper)), "{kept:?}");
    kept
}

/// The folder of the pages.
fn pages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/papers")
}

/// The text of a page.
fn page(name: &str) -> String {
    fs::read_to_string(pages().join(format!("{name}.md"))).unwrap()
}

/// The kept claims of this name.
fn kept(name: &str) -> ClaimList {
    ClaimList::read(&pages().join(format!("results/{name}.json"))).unwrap()
}

/// Rows of the table below this line of headings on a page.
fn table_rows<'a>(page: &'a str, head: &str) -> Vec<&'a str> {
    let columns = head.matches(" | ").count() + 1;
    let head = format!("{head}\n|{}\n", "---|".repeat(columns));
    let table = page.split(&head).nth(1).unwrap_or_default();
    table.lines().take_while(|line| line.starts_with('|')).collect()
}

/// Asserts that the page has this table, row by row.
fn assert_has(name: &str, table: &MarkdownTable) {
    let remedy = "scripts/paper-pages writes it";
    assert_eq!(table_rows(&page(name), table.head), table.rows, "docs/papers/{name}.md: {remedy}");
}

/// The claims, causes and counts on a paper's page are those of the results stored beside it, and these results are
/// about the claims in the paper's data file.
#[test]
fn a_pages_claims_are_those_that_the_command_left() {
    let index = page("index");
    for paper in kept_papers() {
        let list = kept(paper);
        assert_eq!(list.what, paper);
        assert_has(paper, &list.claim_table());
        assert_has(paper, &list.cause_table());
        let counts = list.counts_in_words();
        let row = index.lines().find(|line| line.contains(&format!("]({paper}.md)"))).unwrap();
        for (name, text) in [("index", row), (paper, &*page(paper))] {
            assert!(text.contains(&counts), "docs/papers/{name}.md: {paper}: {counts}");
        }
        let (data, _) = named(paper).unwrap();
        for claim in list.claims.iter().filter(|of| !of.verdict.is_empty()) {
            let is_same = |of: &PaperClaim| of.place == claim.place && of.quote == claim.quote;
            assert!(data.claims.iter().any(is_same), "{paper}: {}", claim.says);
        }
    }
}

/// The counts by the rule of before and by today's, and each claim whose verdict the rule alone changes, with the
/// reason: on the index page as in the stored results.
#[test]
fn the_index_says_what_the_rule_for_verdicts_changed() {
    let lists: Vec<ClaimList> = kept_papers().into_iter().map(kept).collect();
    // Results of a command that did not yet judge by both rules: the page says of whom.
    let older = lists.iter().any(|list| list.readings.is_empty());
    assert_eq!(page("index").contains("are older than this second judging"), older);
    for table in [ClaimList::reading_table, ClaimList::former_table] {
        let all = lists.iter().map(table).reduce(|mut all, other| {
            all.extend(other);
            all
        });
        assert_has("index", &all.unwrap());
    }
    for list in &lists {
        // A verdict differs for one of the reasons that a rule can have.
        let former = list.claims.iter().filter_map(|claim| Some((claim, claim.former.as_ref()?)));
        for (claim, former) in former {
            assert!(claim.verdict != former.verdict && !former.because.is_empty(), "{claim:?}");
        }
    }
}

/// If what each paper takes was kept, it is on its own page and on the index page, as it was measured.
#[test]
fn pages_say_what_a_reproduction_takes() {
    let file = pages().join("results/all.json");
    if !file.is_file() {
        let head = "| paper | samples | time |";
        return assert!(!page("index").contains(head), "a table of what nobody measured");
    }
    let whole = ReproducedPapers::read(&file).unwrap();
    let table = whole.cost_table();
    assert_has("index", &table);
    assert_eq!(whole.papers.len(), PAPERS.len());
    for (cost, paper) in whole.papers.iter().zip(PAPERS) {
        assert_eq!(cost.paper, paper);
        assert_has(paper, &MarkdownTable { head: table.head, rows: vec![cost.to_row()] });
        assert_eq!((cost.runs_reused, &cost.command), (0, &kept(paper).command), "{paper}");
    }
}

/// The page of Burst-HADS has the scores of all combinations from which its default was chosen, and the claims whose
/// verdict the default changes, as the stored results have them.
#[test]
fn the_default_of_burst_hads_is_the_best_of_sixteen() {
    let page = page("burst-hads");
    let tried = fs::read_to_string(pages().join("results/burst-hads-defaults.json")).unwrap();
    let tried: Vec<BTreeMap<String, String>> = serde_json::from_str(&tried).unwrap();
    let row = |of: &BTreeMap<String, String>| {
        let cells = ["reading", "claims_hold", "within", "explained", "score"].map(|key| &*of[key]);
        format!("| {} |", cells.join(" | "))
    };
    let rows: Vec<String> = tried.iter().map(row).collect();
    let head = "| reading | claims that hold | costs and makespans not beyond | not contradicted | score |";
    assert_eq!(table_rows(&page, head), rows);
    let score = |of: &BTreeMap<String, String>| of["score"].parse::<i64>().unwrap();
    let best = tried.iter().map(score).max().unwrap();
    // Of the best ones the one with the fewest changes.
    let chosen = tried.iter().filter(|of| score(of) == best).min_by_key(|of| of["reading"].len());
    let (paper, _) = named("burst-hads").unwrap();
    assert_eq!((rows.len(), &chosen.unwrap()["reading"]), (16, &paper.default.join(" + ")));

    let [before, now] = ["burst-hads-by-type", "burst-hads"].map(kept);
    let changed = now.claims.iter().filter_map(|claim| {
        let was = before.claims.iter().find(|was| was.says == claim.says)?;
        let cells = |row: String| -> Vec<String> { row.split(" | ").map(str::to_owned).collect() };
        let (was, is) = (cells(was.to_row()), cells(claim.to_row()));
        let line =
            format!("{} | {} | {}: {} | {}: {} |", is[0], is[2], was[1], was[4], is[1], is[4]);
        (was[1] != is[1]).then_some(line)
    });
    let changed: Vec<String> = changed.collect();
    assert!(!changed.is_empty());
    assert_eq!(table_rows(&page, "| no. | the claim | by the letter | as emulated |"), changed);
    let [hold, fail, open, _] = before.counts();
    let counts = format!("{hold} hold, {fail} fail and {open} are open");
    assert!(page.contains(&counts), "docs/papers/burst-hads.md: {counts}");
}

/// A file with the numbers in the prose of pages that are not in the results stored beside the page, since another
/// command or factor, named there, gives them. The file has a line for each page.
const BY_OTHER_COMMANDS: &str = "tests/library/by_other_commands.txt";

/// Numbers with a decimal point in the prose of a page, outside of tables, fenced blocks and code font.
fn decimals(page: &str) -> Vec<String> {
    let unfenced: String = page.split("\n```").step_by(2).map(|text| format!("\n{text}")).collect();
    let prose: Vec<&str> = unfenced.lines().filter(|line| !line.starts_with('|')).collect();
    let mut found = Vec::new();
    for text in prose.join("\n").split('`').step_by(2) {
        let is_part = |c: char| c.is_ascii_digit() || c == '.';
        let mut before = ' ';
        let mut rest = text;
        while let Some(at) = rest.find(is_part) {
            before = rest[..at].chars().next_back().unwrap_or(before);
            let end = rest[at..].find(|c| !is_part(c)).map_or(rest.len(), |length| at + length);
            let number = rest[at..end].trim_end_matches('.');
            let has_fraction = number.split_once('.').is_some_and(|(_, digits)| !digits.is_empty());
            if has_fraction && !before.is_alphanumeric() {
                found.push(number.to_owned());
            }
            before = rest[..end].chars().next_back().unwrap_or(' ');
            rest = &rest[end..];
        }
    }
    found
}

/// The ways to write a number in prose: with up to three decimals, and with or without the 0 before the point.
fn spellings(number: f64) -> Vec<String> {
    let fixed = (1..=3).map(|digits| format!("{:.digits$}", number.abs()));
    fixed.flat_map(|text| [text.trim_start_matches('0').to_owned(), text]).collect()
}

/// Our figures of cells in a table stored beside the results of a paper, with the columns case, metric and mean; empty
/// if there is none.
fn stored_figures(path: &Path) -> Vec<f64> {
    let table = fs::read_to_string(path).unwrap_or_default();
    let figures = table.lines().skip(1).filter_map(|row| row.rsplit(',').next()?.parse().ok());
    figures.collect()
}

/// Every number in prose is one of the results, or is known to come from elsewhere: otherwise it would go out of date
/// when a result changes.
#[test]
fn numbers_in_prose_are_results() {
    let known = Path::new(env!("CARGO_MANIFEST_DIR")).join(BY_OTHER_COMMANDS);
    let known = fs::read_to_string(known).unwrap();
    let lines: Vec<&str> = known.lines().collect();
    assert_eq!(lines.len(), 4, "a line for each page with results");
    for (paper, known) in lines.into_iter().filter_map(|line| line.split_once(": ")) {
        let list = kept(paper);
        let (data, _) = named(paper).unwrap();
        let printed = data.printed.iter().flat_map(|of| of.rows.values().flatten().copied());
        let ours = list.claims.iter().flat_map(ListedClaim::numbers);
        let cells = stored_figures(&pages().join(format!("results/{paper}-figures.csv")));
        let all: BTreeSet<String> = ours.chain(printed).chain(cells).flat_map(spellings).collect();
        let strange: BTreeSet<String> =
            decimals(&page(paper)).into_iter().filter(|number| !all.contains(number)).collect();
        let known: BTreeSet<String> = known.split(' ').map(str::to_owned).collect();
        assert_eq!(strange, known, "docs/papers/{paper}.md: numbers that are no results");
    }
    assert!(stored_figures(&pages().join("results/burst-hads-figures.csv")).len() > 300);
    assert_eq!(
        decimals("By 1.50, [0.2, −.3] `4.5` x1.5 2. 7 %\n| 8.8 |\n```text\n6.6\n```\n$.104."),
        ["1.50", "0.2", ".3", ".104"]
    );
}
