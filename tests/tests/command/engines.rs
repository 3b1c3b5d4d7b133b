//! Sweeps, comparisons and reproductions whose runs are made by an engine: the results are those of a single process.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use dormouse_tests::{UnderWay, dormouse, refused, run_in, tree, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Time limit for a shard to begin, or to make a run.
const SOON: Duration = Duration::from_secs(120);

fn done(folder: &Path, words: &[&str]) -> String {
    let output = run_in(folder, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The content of every file of a results folder, by its path, except for those of the engine's job.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = tree(folder).into_iter().map(|(path, _)| path).filter(|path| path.is_file());
    let named = files.map(|path| (path.strip_prefix(folder).unwrap().to_owned(), path));
    named
        .filter(|(name, _)| !name.starts_with("job"))
        .map(|(name, path)| {
            let content = fs::read(path).unwrap();
            let content = without_origin(&name, content);
            (name, content)
        })
        .collect()
}

/// The content of a result without what depends on the process that made it: for a paper, its host, time and memory.
fn without_origin(name: &Path, content: Vec<u8>) -> Vec<u8> {
    match name.to_str() {
        Some("results.json") => {
            let mut results: serde_json::Value = serde_json::from_slice(&content).unwrap();
            results.as_object_mut().unwrap().remove("origin");
            results.to_string().into_bytes()
        }
        Some("report.html") => {
            let text = String::from_utf8(content).unwrap();
            let is_of_origin = |line: &str| {
                line.contains("Made by dormouse")
                    || line.contains("The last command into this folder took")
            };
            let lines: Vec<_> = text.lines().filter(|line| !is_of_origin(line)).collect();
            lines.join("\n").into_bytes()
        }
        _ => content,
    }
}

fn assert_same(folder: &Path, one: &str, other: &str) {
    let [one, other] = [one, other].map(|name| content(&folder.join(name)));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    assert!(one.len() >= 4, "{:?}", one.keys());
    for (name, content) in &one {
        assert!(other[name] == *content, "{} differs", name.display());
    }
}

#[test]
fn local_shards_leave_the_bytes_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (n, words) in [
        "sweep j60-sc2 --set scheduler.alpha=0.1,0.9 --seeds 3",
        "sweep batch-small --set seed=5,9 --set workload.load=0.5,0.9",
        "compare --schedulers burst-hads,hads --on j60,j60-sc2 --seeds 2",
        "reproduce opie/tables --seeds 2",
    ]
    .into_iter()
    .enumerate()
    {
        let words: Vec<&str> = words.split(' ').collect();
        let [whole, shards] = ["whole", "shards"].map(|name| format!("{name}-{n}"));
        let plain = done(folder, &[&words[..], &["--out", &whole]].concat());
        let local = ["--engine", "local", "--shards", "3", "--out", &shards];
        let said = done(folder, &[&words[..], &local].concat());
        assert_same(folder, &whole, &shards);
        // To who merges, the runs of all shards are there already.
        let said = said.replace(&shards, &whole);
        let said: String =
            said.split_inclusive('\n').filter(|line| !line.contains("resumed: ")).collect();
        assert_eq!(said.trim_end(), plain.trim_end(), "the merge says what one process does");
        // More of the same, from what is there: an engine and one process go on with each other's folders.
        if words.contains(&"--seeds") {
            let mut more = words.clone();
            *more.last_mut().unwrap() = "4";
            done(folder, &[&more[..], &["--out", &whole]].concat());
            done(folder, &[&more[..], &local].concat());
            assert_same(folder, &whole, &shards);
        }
    }
}

/// The number of runs in a folder whose lines are complete.
fn known(folder: &Path) -> usize {
    let parts = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let parts = parts.filter(|path| path.to_string_lossy().contains("samples.part-"));
    parts.map(|path| fs::read_to_string(path).unwrap_or_default().matches('\n').count()).sum()
}

/// The process that makes this shard, started by the process `command`.
fn process_of(command: u32, shard: &str) -> Result<Pid, String> {
    let list = format!("/proc/{command}/task/{command}/children");
    let children = fs::read_to_string(list).map_err(|error| error.to_string())?;
    let is_of_it = |child: &&str| {
        let words = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        words.contains(&format!("--shard\0{shard}\0"))
    };
    let found = children.split_whitespace().find(is_of_it);
    found.map(|child| Pid::from_raw(child.parse().unwrap())).ok_or(children)
}

#[test]
fn a_shard_that_is_killed_costs_its_unfinished_runs_only() {
    const SEEDS: usize = 300;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let seeds = SEEDS.to_string();
    let dir = out.display().to_string();
    let words = ["sweep", "j60-sc2", "--seeds", &seeds, "--out", &dir];
    let local = ["--engine", "local", "--shards", "2"];
    let words = [&words[..], &local].concat();
    let first = UnderWay::begin(&out, &words);
    let shard = wait_for("a shard is there", SOON, || process_of(first.id(), "1/2"));
    wait_for("it has made a run", SOON, || {
        let text = fs::read_to_string(out.join("samples.part-1-of-2.1.jsonl")).unwrap_or_default();
        text.contains('\n').then_some(()).ok_or(text)
    });
    kill(shard, Signal::SIGKILL).unwrap();
    let ended = first.ended();
    let error = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{error}");
    assert!(
        error.contains("shard 1/2 ended with signal 9; ") && error.contains("job/1.txt"),
        "{error}"
    );
    let before = known(&out);
    assert!(
        (1 + SEEDS / 2..SEEDS).contains(&before),
        "{before}: the other shard is whole, this one is not"
    );

    done(folder.path(), &words);
    let made = |shard: &str| {
        let text = fs::read_to_string(out.join(format!("job/{shard}.txt"))).unwrap();
        let said = text.lines().rfind(|line| line.contains(" is made: ")).unwrap_or_default();
        let count = said.split("is made: ").nth(1).and_then(|rest| rest.split(' ').next());
        count.unwrap_or_else(|| panic!("{text}")).parse::<usize>().unwrap()
    };
    assert_eq!((made("1"), made("2")), (SEEDS - before, 0));
    done(folder.path(), &["sweep", "j60-sc2", "--seeds", &seeds, "--out", "whole"]);
    assert_same(folder.path(), "whole", "out");
}

/// Shards of two hosts in one shared folder are merged there without any engine, by commands as two people would type
/// them.
#[test]
fn shards_in_one_folder_are_merged_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words = ["sweep", "j60", "--seeds", "5"];
    let shards = ["1/2", "2/2"].map(|shard| {
        let words = [&words[..], &["--shard", shard, "--out", "out"]].concat();
        Command::new(dormouse()).args(words).current_dir(folder).arg("-q").spawn().unwrap()
    });
    for mut shard in shards {
        assert!(shard.wait().unwrap().success());
    }
    assert_eq!(known(&folder.join("out")), 5);
    done(folder, &["merge", "out", "--out", "out"]);
    done(folder, &[&words[..], &["--out", "whole"]].concat());
    assert_same(folder, "whole", "out");
    done(folder, &[&words[..], &["--shard", "1/3", "--out", "half"]].concat());
    let output = run_in(folder, &["merge", "half", "--out", "half"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("3 of 5 runs are missing") && error.contains("again"), "{error}");
}

/// A dry run prints the job for each engine, letter by letter; nothing is run, and no engine is needed.
#[test]
fn a_dry_run_prints_the_job() {
    let folder = tempfile::tempdir().unwrap();
    let at = fs::canonicalize(folder.path()).unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/engines");
    for engine in ["slurm", "hq", "kubernetes", "local"] {
        let words = ["sweep", "j60", "--set", "scheduler.alpha=0.1,0.9", "--seeds", "30"];
        let job = ["--engine", engine, "--shards", "2", "--threads", "4", "--out", "it's alpha"];
        let more = ["--engine-option=--opt", "--dry-run"];
        let output = Command::new(dormouse())
            .args([&words[..], &job, &more].concat())
            .current_dir(&at)
            .env("PATH", "")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout).unwrap();
        let printed = printed.replace(&dormouse().display().to_string(), "/opt/dormouse");
        let printed = printed.replace(&at.display().to_string(), "/home/ada");
        let file = fixtures.join(format!("{engine}.txt"));
        let wanted = fs::read_to_string(&file).unwrap_or_default();
        if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
            fs::write(&file, &printed).unwrap();
        } else {
            assert!(printed == wanted, "{} is not what is printed:\n{printed}", file.display());
        }
        assert!(tree(&at).is_empty());
    }
}

/// Writes an executable script of this name into a folder, as a stand-in for a program.
fn stand_in(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn with_path(folder: &Path, words: &[&str]) -> Output {
    let path = format!("{}/bin:/usr/bin:/bin", folder.display());
    Command::new(dormouse()).args(words).current_dir(folder).env("PATH", path).output().unwrap()
}

/// A stand-in for Slurm's `sbatch`: it records its arguments, and runs the one task, or all of an array, at once.
const SBATCH: &str = r#"#!/bin/sh
echo "$@" >>bin/words
array= output=
while [ "${1#--}" != "$1" ]; do
    case $1 in
        --array=1-*) array=${1#--array=1-} ;;
        --output=*) output=${1#--output=} ;;
        --refuse) echo 'sbatch: error: invalid partition' >&2; exit 1 ;;
    esac
    shift
done
if [ -n "$array" ]; then
    for task in $(seq "$array"); do SLURM_ARRAY_TASK_ID=$task sh "$@" >"$output" 2>&1; done
    echo '41;bench'
else
    sh "$@" >"$output" 2>&1
    echo 42
fi
"#;

#[test]
fn slurm_is_given_an_array_and_a_merge_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("bin")).unwrap();
    stand_in(&folder.join("bin"), "sbatch", SBATCH);
    let words = ["sweep", "j60", "--seeds", "5"];
    let slurm = ["--engine", "slurm", "--shards", "2", "--out", "my out"];
    let submitted = with_path(folder, &[&words[..], &slurm].concat());
    assert!(submitted.status.success(), "{}", String::from_utf8_lossy(&submitted.stderr));
    let said = String::from_utf8(submitted.stdout).unwrap();
    for word in [
        "slurm has 2 shards and their merge: 41, 42",
        "squeue --jobs 41,42",
        "all nodes have to see",
    ] {
        assert!(said.contains(word), "{said}");
    }
    let typed = fs::read_to_string(folder.join("bin/words")).unwrap();
    assert!(
        typed.contains("--array=1-2 ") && typed.contains("--dependency=afterany:41 "),
        "{typed}"
    );
    done(folder, &[&words[..], &["--out", "whole"]].concat());
    assert_same(folder, "whole", "my out");
    let merged = fs::read_to_string(folder.join("my out/job/merge.txt")).unwrap();
    assert!(merged.contains("results in my out"), "{merged}");

    let refusal = ["--engine-option=--refuse", "--json"];
    let output = with_path(folder, &[&words[..], &slurm, &refusal].concat());
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("invalid partition") && error.lines().count() == 1, "{error}");
}

#[test]
fn a_node_without_the_folder_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("here")).unwrap();
    let words =
        ["sweep", "j60", "--seeds", "1", "--engine", "local", "--shards", "1", "--out", "out"];
    done(&folder.join("here"), &words);
    fs::rename(folder.join("here"), folder.join("there")).unwrap();
    let script = folder.join("there/out/job/job.sh");
    let output = Command::new("sh").arg(script).arg("1").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.starts_with("dormouse: ") && error.contains("file system that all nodes share"),
        "{error}"
    );
}

/// The commands of the containers in the Kubernetes manifest are run here, with `dormouse` on PATH and a folder for
/// the volume.
#[test]
fn kubernetes_is_given_shards_by_index_and_a_merge() {
    // A name in which a shell and Kubernetes would expand variables.
    const OUT: &str = "o $(HOME) $HOME";
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let bin = folder.join("bin");
    fs::create_dir(&bin).unwrap();
    stand_in(
        &bin,
        "kubectl",
        "#!/bin/sh\necho \"$@\" >>bin/words\ncat >bin/manifest\necho job.batch/a\necho job.batch/b\n",
    );
    std::os::unix::fs::symlink(dormouse(), bin.join("dormouse")).unwrap();
    let words = ["sweep", "j60", "--seeds", "3"];
    let kubernetes = ["--engine", "kubernetes", "--shards", "2", "--out", OUT];
    let more = ["--engine-option=--namespace=x", "--image", "registry/d:1", "--claim", "mine"];
    let submitted = with_path(folder, &[&words[..], &kubernetes, &more].concat());
    assert!(submitted.status.success(), "{}", String::from_utf8_lossy(&submitted.stderr));
    let said = String::from_utf8(submitted.stdout).unwrap();
    assert!(
        said.contains("kubectl get job.batch/a job.batch/b") && said.contains("claim mine"),
        "{said}"
    );
    let typed = fs::read_to_string(bin.join("words")).unwrap();
    let [delete, create] = ["delete --ignore-not-found", "create --output=name"]
        .map(|words| format!("--namespace=x {words} --filename=-\n"));
    assert_eq!(typed, format!("{delete}{create}"));
    assert!(!folder.join(OUT).exists(), "containers have a folder of their own");

    let manifest = fs::read_to_string(bin.join("manifest")).unwrap();
    let lines: Vec<Vec<String>> = manifest
        .lines()
        .filter_map(|line| line.trim().strip_prefix("command: "))
        .map(|list| serde_json::from_str(list).unwrap())
        .collect();
    let run = |words: &[String], index: &str| {
        // As Kubernetes expands it where no variable is named.
        let words: Vec<String> = words.iter().map(|word| word.replace("$$", "$")).collect();
        let path = format!("{}:/usr/bin:/bin", bin.display());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(folder).env("PATH", path);
        command.env("JOB_COMPLETION_INDEX", index).output().unwrap()
    };
    let [shard, merge] = &lines[..] else { panic!("{manifest}") };
    let early = run(merge, "");
    assert_eq!(early.status.code(), Some(2), "the merge is tried again until all runs are there");
    for index in ["0", "1"] {
        let output = run(shard, index);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(run(merge, "").status.success());
    done(folder, &[&words[..], &["--out", "whole"]].concat());
    assert_same(folder, "whole", OUT);
}

#[test]
fn nonsense_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let sweep = ["sweep", "j60", "--seeds", "2"];
    for (words, said) in [
        (&["--engine", "pbs"][..], "[possible values: slurm, hq, kubernetes, local]"),
        (&["--engine", "local", "--shards", "0"], "--shards"),
        (&["--engine", "local", "--shards", "2000"], "--shards"),
        (&["--engine", "local", "--shard", "1/2"], "--shard"),
        (&["--dry-run"], "--engine"),
        (&["--shards", "3"], "--engine"),
        (&["--engine", "kubernetes", "--dry-run", "--out", "/x"], "in the folder of the claim"),
        (
            &["--engine", "kubernetes", "--dry-run", "--out", "a/../../x"],
            "in the folder of the claim",
        ),
        (&["--engine", "local", "--set", "scheduler.alpha=2"], "alpha"),
    ] {
        refused(folder, &[&sweep[..], words].concat(), 2, &[said]);
    }
    refused(
        folder,
        &["reproduce", "burst-hads/readings", "--engine", "local", "--cause-seeds", "2"],
        2,
        &["a search can't be split", "--engine"],
    );
    let live = ["reproduce", "burst-hads", "--engine", "local", "--live-runs", "x"];
    refused(folder, &live, 2, &["--live-runs"]);
    for (engine, remedy) in
        [("slurm", "slurm-client"), ("hq", "hyperqueue"), ("kubernetes", "kubernetes-client")]
    {
        let words = [&sweep[..], &["--engine", engine]].concat();
        let output =
            Command::new(dormouse()).args(&words).current_dir(folder).env("PATH", "").output();
        let output = output.unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("in $PATH") && error.contains(remedy), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(tree(folder).is_empty(), "something was left behind");
    }
    // Results of another command are not written over by jobs that end much later.
    done(folder, &["sweep", "j80", "--seeds", "1", "--out", "out"]);
    let other = [&sweep[..], &["--engine", "local", "--out", "out"]].concat();
    refused(folder, &other, 2, &["--force"]);
    done(folder, &[&other[..], &["--force"]].concat());
}
