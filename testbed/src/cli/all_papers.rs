//! `dormouse reproduce all`: every paper, one after the other, with the time that each took.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use dormouse_report::output::write_in;
use dormouse_reproduce::papers::{
    CLAIMS, ClaimList, MarkdownTable, PaperCost, ReproducedPapers, RunOrigin, named,
};
use dormouse_view::{HtmlPage, PageAnswer, PageBlock, TableColumn, TypedTable};

use super::failure::Failure;
use super::many::Common;
use super::reproduction::changed;
use super::terminal;
use crate::said;

/// Names of the papers, in the order in which they are reproduced.
const PAPERS: [&str; 5] = ["burst-hads", "opie", "acc", "bathtub", "measy"];

#[derive(Debug, Args)]
pub(crate) struct AllPapersArgs {
    /// A folder of records of spot prices, for acc
    #[arg(long, value_name = "DIR")]
    prices: Option<PathBuf>,
    /// The recorded lifetimes of preemptible VMs, for bathtub
    #[arg(long, value_name = "FILE")]
    lifetimes: Option<PathBuf>,
    /// The log of KTH-SP2, for measy
    #[arg(long, value_name = "FILE")]
    kth: Option<PathBuf>,
    /// Run every cell under seeds 1 to N, in place of each paper's own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    /// Do not try what could explain a difference, which takes most of the time of burst-hads and measy
    #[arg(long)]
    no_causes: bool,
    /// Show which claims have a different verdict or figure than in earlier results: a folder of this command, or one with a file
    /// PAPER.json for each paper, such as docs/papers/results
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    compare_with: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// A reproduced paper: its claims and what made them, or the reason why none was judged, and the time and disk that it
/// took.
struct MadePaper {
    name: &'static str,
    result: Result<(ClaimList, RunOrigin), String>,
    took: Duration,
    /// Bytes of the files in the paper's folder.
    disk: u64,
}

impl MadePaper {
    /// What the paper took; `None` if it has no claims.
    fn cost(&self) -> Option<PaperCost> {
        let (claims, origin) = self.result.as_ref().ok()?;
        Some(PaperCost::new(claims, origin, self.disk))
    }

    /// Number of the paper's claims that hold, fail, are open, and are undecidable; `None` if none was judged.
    fn counts(&self) -> Option<[usize; 4]> {
        self.result.as_ref().ok().map(|(claims, _)| claims.counts())
    }
}

impl AllPapersArgs {
    /// Name of each paper, with the option for its data, if it needs data.
    fn papers(&self) -> [(&'static str, Option<(&'static str, &PathBuf)>); 5] {
        PAPERS.map(|paper| {
            let (option, path) = match paper {
                "acc" => ("--data", &self.prices),
                "bathtub" => ("--data", &self.lifetimes),
                "measy" => ("--kth", &self.kth),
                _ => ("", &None),
            };
            (paper, path.as_ref().map(|path| (option, path)))
        })
    }

    /// The words of the command that reproduces one paper.
    fn words(&self, paper: &str, data: Option<(&str, &PathBuf)>, out: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> =
            ["reproduce", paper, "--quiet", "--out"].map(OsString::from).into();
        words.push(out.into());
        words.extend(["--threads".into(), self.common.threads().to_string().into()]);
        if let Some((option, path)) = data {
            words.extend([option.into(), path.into()]);
        }
        if let Some(seeds) = self.seeds {
            words.extend(["--seeds".into(), seeds.to_string().into()]);
        }
        if self.no_causes {
            words.extend(without_causes(paper).iter().map(OsString::from));
        }
        words
    }
}

/// Options by which the command of a paper tries nothing that could explain a difference.
fn without_causes(paper: &str) -> &'static [&'static str] {
    match paper {
        "burst-hads" | "acc" => &["--cause-seeds", "0"],
        "measy" => &["--no-causes"],
        _ => &[],
    }
}

/// Sentences on the parts of a paper that are made under fewer seeds than its other parts.
fn notes_on_seeds(paper: &str, seeds: Option<u64>) -> Result<Vec<String>, Failure> {
    let (paper, _) = named(paper)?;
    let seeds = seeds.unwrap_or(paper.seeds);
    let fewer = paper.parts_under_fewer_seeds(None, seeds).into_iter();
    let note = |(part, most): (&str, u64)| {
        format!(
            "{}/{part}: {most} seeds and not {seeds}, as more take long and show no more",
            paper.name
        )
    };
    Ok(fewer.map(note).collect())
}

/// The earlier claims of each paper that a folder has: `PAPER.json`, or `PAPER/claims.json`.
///
/// # Errors
///
/// The folder has claims of no paper, or a file of it can't be read.
fn earlier_claims(folder: &Path) -> Result<BTreeMap<String, ClaimList>, Failure> {
    let mut earlier = BTreeMap::new();
    for paper in PAPERS {
        let files = [folder.join(format!("{paper}.json")), folder.join(paper).join(CLAIMS)];
        if let Some(file) = files.iter().find(|file| file.is_file()) {
            earlier.insert(paper.to_owned(), ClaimList::read(file)?);
        }
    }
    if earlier.is_empty() {
        let remedy = "give a folder of dormouse reproduce all, or one with PAPER.json";
        return Err(Failure::BadInput(format!(
            "{}: no paper's claims; {remedy}",
            folder.display()
        )));
    }
    Ok(earlier)
}

/// Reproduces every paper with its own command, and prints how many claims of each hold and how long it took.
pub(super) fn reproduce_all(
    args: &AllPapersArgs,
    reproduce: impl Fn(Vec<OsString>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let earlier = args.compare_with.as_deref().map(earlier_claims).transpose()?;
    let out = args.common.folder("reproduce-all", None);
    let begin = Instant::now();
    let mut made = Vec::new();
    for (name, data) in args.papers() {
        let (begin, folder) = (Instant::now(), out.join(name));
        if !args.common.say.quiet {
            said::note(&format!("{name}: paper {} of {}", made.len() + 1, PAPERS.len()));
        }
        let result = match reproduce(args.words(name, data, &folder)) {
            Ok(()) => Ok((ClaimList::read(&folder)?, RunOrigin::read(&folder)?)),
            Err(Failure::BadInput(why)) => Err(why),
            Err(other) => return Err(other),
        };
        made.push(MadePaper { name, result, took: begin.elapsed(), disk: bytes_in(&folder) });
    }
    let first = made.iter().find_map(|paper| paper.result.as_ref().ok());
    let costs = made.iter().filter_map(MadePaper::cost).collect();
    let whole = first.map(|(_, origin)| {
        (ReproducedPapers::new(costs, origin, begin.elapsed().as_secs_f64()), origin.made_by())
    });
    let table = table(&made);
    write_in(&out, "report.html", index_page(&made, &table, whole.as_ref()).to_html())?;
    if let Some((whole, _)) = &whole {
        write_in(&out, "results.json", format!("{:#}\n", serde_json::json!(whole)))?;
        write_in(&out, "claims.md", tables_in_markdown(&made, whole))?;
    }
    let mut text = table.to_text(terminal::stdout());
    for paper in &made {
        for note in notes(paper, args.seeds)? {
            text += &format!("\n  {note}");
        }
    }
    if let Some((whole, made_by)) = &whole {
        text += &format!("\n  made by {made_by}\n  all: {}", whole.in_words());
    }
    for (paper, before) in earlier.iter().flatten() {
        let now =
            made.iter().find(|made| made.name == paper).and_then(|it| it.result.as_ref().ok());
        text += &match now {
            Some((now, _)) => format!("\n\n  {paper}:{}", changed(now, before)),
            None => format!("\n\n  {paper}: not compared, as none of its claims was judged here"),
        };
    }
    args.common.report(&out, (text, table.to_json()))
}

/// Sentences on a paper: parts with fewer seeds, samples that were there already, or why it has no claims.
fn notes(paper: &MadePaper, seeds: Option<u64>) -> Result<Vec<String>, Failure> {
    match &paper.result {
        Ok((_, origin)) => {
            let resumed = origin.resumed().map(|resumed| format!("{}: {resumed}", paper.name));
            Ok(notes_on_seeds(paper.name, seeds)?.into_iter().chain(resumed).collect())
        }
        Err(why) => Ok(vec![format!("{}: {why}", paper.name)]),
    }
}

/// Tables of all papers in Markdown: what each took, its counts of verdicts by the former and the present rule, and each
/// claim whose verdict the rule changes.
fn tables_in_markdown(made: &[MadePaper], whole: &ReproducedPapers) -> String {
    let lists = || made.iter().filter_map(|paper| paper.result.as_ref().ok().map(|(list, _)| list));
    let joined = |table: fn(&ClaimList) -> MarkdownTable| {
        let tables = lists().map(table).reduce(|mut all, other| {
            all.extend(other);
            all
        });
        tables.map(|table| table.to_text()).unwrap_or_default()
    };
    let (readings, former) = (joined(ClaimList::reading_table), joined(ClaimList::former_table));
    let tables = [whole.cost_table().to_text(), readings, former];
    tables.iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join("\n")
}

/// The page of all papers: how many of their claims hold, a link to the page of each, and what each took. `whole` is what
/// all took, with the program and the host in a sentence.
fn index_page(
    made: &[MadePaper],
    table: &TypedTable,
    whole: Option<&(ReproducedPapers, String)>,
) -> HtmlPage {
    let mut page =
        HtmlPage::new("The papers, reproduced", "Each with its own page in its own folder.");
    let judged = || made.iter().filter_map(MadePaper::counts);
    let sum = |n: usize| judged().map(|counts| counts[n]).sum::<usize>();
    let count = |n: usize| u64::try_from(sum(n)).unwrap_or(u64::MAX);
    let answer = PageAnswer::new("What holds?", "Of the claims of all papers that were run:")
        .count(count(0), ["holds", "hold"])
        .count(count(1), ["fails", "fail"])
        .count(count(2), ["is open", "are open"])
        .count(count(3), ["is undecidable with this data", "are undecidable with this data"]);
    page.answers.push(if judged().next().is_some() { answer.verdict(sum(1) == 0) } else { answer });
    let missing = made.iter().filter_map(|paper| Some((paper, paper.result.as_ref().err()?)));
    let missing: Vec<_> = missing.collect();
    let said = if missing.is_empty() { "Every paper was run." } else { "" };
    let left_out =
        missing.iter().fold(PageAnswer::new("What is not here?", said), |answer, (paper, why)| {
            answer.item(paper.name, why.as_str())
        });
    page.answers.push(left_out);
    let links = made.iter().filter(|paper| paper.result.is_ok());
    let links = links.map(|paper| (paper.name.to_owned(), format!("{}/report.html", paper.name)));
    page.section("Pages", [PageBlock::Links(links.collect())]);
    page.section("Claims, time and memory of each", [PageBlock::Table(table.clone())]);
    let made_by = whole.iter().flat_map(|(whole, made_by)| {
        [format!("Made by {made_by}."), format!("All papers took {}.", whole.in_words())]
    });
    page.section("Reproduce", made_by.map(PageBlock::text));
    page
}

/// Bytes of all files below a folder; files that can't be read count as zero.
fn bytes_in(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let of_entry = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(of) if of.is_dir() => bytes_in(&entry.path()),
        Ok(of) => of.len(),
        Err(_) => 0,
    };
    entries.flatten().map(of_entry).sum()
}

/// Whole MiB, rounded up.
const fn mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

fn table(made: &[MadePaper]) -> TypedTable {
    let origin = |paper: &MadePaper| paper.result.as_ref().ok().map(|(_, origin)| origin.clone());
    let count = |paper: &MadePaper, n: usize| paper.counts().map(|all| all[n] as u64);
    TypedTable::with_rows(made)
        .column(TableColumn::text("paper"), |paper| paper.name)
        .column(TableColumn::count("claims that hold").named("hold"), move |paper| count(paper, 0))
        .column(TableColumn::count("fail"), move |paper| count(paper, 1))
        .column(TableColumn::count("open"), move |paper| count(paper, 2))
        .column(TableColumn::count("undecidable"), move |paper| count(paper, 3))
        .column(TableColumn::seconds("took").named("took_s"), |paper| paper.took.as_secs_f64())
        .column(TableColumn::seconds("processor time").named("processor_s"), move |paper| {
            origin(paper)?.processor_s
        })
        .column(TableColumn::count("memory, MiB").named("peak_memory_mib"), move |paper| {
            origin(paper)?.peak_memory_bytes.map(mebibytes)
        })
        .column(TableColumn::count("disk, MiB").named("disk_mib"), |paper| mebibytes(paper.disk))
        .column(TableColumn::count("runs reused").named("runs_reused"), move |paper| {
            Some(origin(paper)?.runs_reused as u64)
        })
        .into()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A list of one claim of a paper, as text.
    fn claims(paper: &str, verdict: &str) -> String {
        serde_json::json!({
            "what": paper, "command": "", "version": "", "seeds": [1, 2],
            "readings": [{ "name": "default", "counts": [1, 0, 0, 0], "former": [0, 1, 0, 0] }],
            "claims": [{
                "number": 1, "verdict": verdict, "says": "it is more", "quote": "more", "place": "section 1",
                "paper": 5.0, "bounds": [null, null], "ours": 4.0, "ci95": null, "n": 2,
            }],
        })
        .to_string()
    }

    #[test]
    fn earlier_claims_are_found_in_either_kind_of_folder() {
        let dir = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: String| {
            let file = dir.path().join(name);
            fs::create_dir_all(file.parent().expect("it has one")).expect("it is made");
            fs::write(file, text).expect("it is written");
        };
        let error = earlier_claims(dir.path()).expect_err("nothing is there");
        assert!(matches!(error, Failure::BadInput(why) if why.contains("PAPER.json")));
        write("acc.json", claims("acc", "holds"));
        write("measy/claims.json", claims("measy", "fails"));
        write("notes/claims.json", "no paper".to_owned());
        let earlier = earlier_claims(dir.path()).expect("they are there");
        let found: Vec<_> = earlier.iter().map(|(name, list)| (&**name, list.counts())).collect();
        assert_eq!(found, [("acc", [1, 0, 0, 0]), ("measy", [0, 1, 0, 0])]);
        write("opie.json", "{}".to_owned());
        assert!(
            matches!(earlier_claims(dir.path()), Err(Failure::BadInput(why)) if why.contains("opie.json"))
        );
    }
}
