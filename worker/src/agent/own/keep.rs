//! Sending the files that a user's own program left to the coordinator.

use std::{collections::BTreeMap, sync::Arc};

use dormouse_proto::v1::{File, StartTask};
use dormouse_tasks::limits::{NOT_KEPT, NOT_KEPT_BYTES};
use dormouse_units::{Bytes, one_line};
use tokio::task::spawn_blocking;

use crate::{
    agent::{
        gate::LaunchPass,
        host::LifeHost,
        report::{attempt_key, explain_error},
        transfer::Open,
    },
    directory::{self, LeftFiles, open_leaving},
    workspace::TaskName,
};

/// Files kept of a program that has ended.
#[derive(Debug, Default)]
pub struct KeptOutputs {
    /// The program's standard output and error, and its output files; the coordinator has their contents.
    pub files: Vec<File>,
    /// Reasons why files weren't kept.
    pub not_kept: Vec<String>,
    /// Bytes in the program's directory at the end.
    pub directory_bytes: u64,
    /// Status of the command that checks the program's answer; `None` if no such command ran to its end.
    pub verify_status: Option<i32>,
}

impl KeptOutputs {
    /// Puts a sentence before the other reasons why files weren't kept; the last reason is dropped if there are too many.
    pub(crate) fn say_first(&mut self, sentence: String) {
        self.not_kept.insert(0, one_line(&sentence, NOT_KEPT_BYTES).into_owned());
        self.not_kept.truncate(NOT_KEPT);
    }

    fn nothing_kept(why: String) -> Self {
        Self { not_kept: vec![why], ..Self::default() }
    }
}

/// Sends the files that a program left to the coordinator, for as long as its VM exists.
pub(crate) async fn keep_outputs(
    host: &LifeHost,
    pass: &LaunchPass,
    name: &TaskName,
    order: &StartTask,
) -> KeptOutputs {
    let Some(own) = order.own.clone() else { return KeptOutputs::default() };
    let (folder, most) = (host.workspace().task_directory(name), own.directory_bytes);
    let read = spawn_blocking({
        let folder = folder.clone();
        move || {
            let held = directory::directory_size(&folder).map_or(0, Bytes::get);
            let is_full = directory::is_full(&folder).unwrap_or(false);
            (LeftFiles::read(&folder, &own.outputs, own.directory_bytes), held, is_full)
        }
    });
    let (leavings, directory_bytes, is_full) = match read.await {
        Ok(read) => read,
        Err(panic) => return KeptOutputs::nothing_kept(explain_error(&panic)),
    };
    let paths: BTreeMap<_, _> =
        leavings.files.iter().map(|it| (*it.digest.as_bytes(), it.path.clone())).collect();
    let open: Open = Arc::new(move |digest| {
        let path = paths.get(digest.as_bytes()).map(String::as_str).unwrap_or_default();
        open_leaving(&folder, path).map_err(|e| explain_error(&e))
    });
    let contents = leavings.files.iter().map(|it| (it.digest, it.bytes)).collect();
    let (task, attempt) = attempt_key(order.task);
    let of = (&*host.run, task.get(), attempt.get());
    let (mut files, mut not_sent) = (Vec::new(), None);
    match host.transfers.put_contents(pass, of, contents, open).await {
        Ok(_) => files.extend(leavings.files.into_iter().map(|it| File {
            path: it.path,
            digest: it.digest.as_bytes().to_vec().into(),
            bytes: it.bytes,
            executable: it.executable,
        })),
        Err(why) => not_sent = Some(why),
    }
    let mut kept =
        KeptOutputs { files, not_kept: leavings.not_kept, directory_bytes, verify_status: None };
    if let Some(why) = not_sent {
        kept.say_first(format!("its files: {why}"));
    }
    if is_full {
        let most = Bytes::new(most);
        kept.say_first(format!("its directory is full: it may hold {most}"));
    }
    kept
}
