//! The programs of one run of somebody's, told apart by their kinds, and why there is more than one of a kind.
use super::folder::{Folder, Written};
use super::module::Line;
use super::{Defs, Dump, Language, Ran, between, flatten::Flat, language, read_with, record};
use crate::insight::evidence::Evidence;
use crate::insight::evidence::nearest::nearest;
use crate::insight::record::Record;
use crate::insight::report::{Class, Compilation, Difference, Explanation, Place};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use xlazy_core::run::{Cause, Origin};
use xlazy_core::text::{Held, register_file, sources};
use xlazy_mime::regular;

/// One program that was compiled.
pub(super) struct Program {
    pub told: Compilation,
    /// What the framework calls it.
    pub name: String,
    /// Its file, and which graph in it.
    pub written: String,
    /// The number of its kind.
    pub kind: usize,
    /// The user's call that led to it, where it is told.
    pub call: Option<Place>,
    /// How often it ran, where the dump has runs.
    pub runs: Option<usize>,
}

/// All of a run.
pub(super) struct Run {
    pub programs: Vec<Program>,
    pub kinds: usize,
    /// Texts that break off or are in no language that is known, each with why.
    pub unread: Vec<String>,
    /// Files that are no programs.
    pub others: usize,
}

/// A program as it was read.
struct Read {
    written: Written,
    flat: Flat,
    /// What programs of one kind have in common: the function that was compiled, or the line that syncs.
    site: Place,
    call: Option<Place>,
    runs: usize,
    /// Where values were read since the last barrier.
    reads: Vec<Place>,
}

pub(super) fn run(folder: Folder) -> Run {
    let mut unread = Vec::new();
    let mut all: Vec<Read> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut reads: Vec<Place> = Vec::new();
    for written in folder.programs {
        let own = written.frames.iter().find(|l| !l.is_library());
        let here = own.map(|l| sources().named(&l.file, l.line, l.column));
        let before = match written.cause {
            Cause::Sync => std::mem::take(&mut reads),
            _ => reads.clone(),
        };
        reads.extend(here.filter(|_| written.cause != Cause::Sync));
        if let Some(&first) = written.hash.as_ref().and_then(|hash| known.get(hash)) {
            all[first].runs += 1;
            continue;
        }
        match Read::of(written, before) {
            Ok(read) => {
                known.extend(read.written.hash.iter().map(|hash| (hash.clone(), all.len())));
                all.push(read);
            }
            Err(why) => unread.push(why),
        }
    }
    let defs = Defs::of(all.iter().map(|r| &r.flat));
    let mut records: Vec<Arc<Record>> = Vec::new();
    let (mut programs, mut kinds): (Vec<Program>, usize) = (Vec::new(), 0);
    for (i, read) in all.iter().enumerate() {
        let new = read.record(i, &defs, &mut sources());
        let of_name: Vec<Arc<Record>> =
            records.iter().filter(|r| all[r.number as usize - 1].flat.name == read.flat.name).cloned().collect();
        let old = of_name.iter().find(|r| r.hash == new.hash).cloned().or_else(|| {
            Some(Evidence::least(&new, &nearest(&new, &of_name), &of_name)?.old)
                .and_then(|old| of_name.iter().find(|r| r.number == old.number).cloned())
        });
        let why = old.as_ref().map(|old| {
            let before = old.number as usize - 1;
            between(old.again(), new.again()).unwrap_or_else(|| read.same(&all[before], before))
        });
        let kind = old.as_ref().map_or(kinds, |old| programs[old.number as usize - 1].kind);
        kinds = kinds.max(kind + 1);
        programs.push(Program {
            told: told(&new, why),
            name: read.flat.name.clone(),
            written: read.written.name.clone(),
            kind,
            call: read.call,
            runs: read.written.hash.as_ref().map(|_| read.runs),
        });
        records.push(Arc::new(new));
    }
    Run { programs, kinds, unread, others: folder.others }
}

impl Read {
    fn of(written: Written, reads: Vec<Place>) -> Result<Read, String> {
        let own: Vec<Line> = written.frames.iter().filter(|l| !l.is_library()).cloned().collect();
        let dump = Dump { name: &written.name, text: &written.text };
        let mut flat = read_with(&dump, &own)?;
        flat.shift(written.before);
        let lines = flat.steps.iter().flat_map(|s| [&s.from.at, &s.from.caller, &s.from.call]).flatten();
        let files: HashSet<&str> = lines.chain(&own).map(|l| &*l.file).collect();
        files.into_iter().for_each(|file| quote_from(file, &written.file));
        let mut sources = sources();
        let mut place = |l: &Line| sources.named(&l.file, l.line, l.column);
        let outermost = || flat.steps.iter().find_map(|s| s.from.call.as_ref());
        let call = own.last().or_else(outermost).cloned();
        let call = call.as_ref().map(&mut place);
        let site = own.first().map(&mut place);
        let site = site.unwrap_or_else(|| sources.named(&flat.name, 1, 1));
        drop(sources);
        Ok(Read { written, flat, site, call, runs: 1, reads })
    }

    fn record(&self, place: usize, defs: &Defs, sources: &mut Held) -> Record {
        let file = self.written.file.to_string_lossy();
        let dump = Dump { name: &file, text: &self.written.text };
        let (cause, lazy) = (self.written.cause, self.written.hash.is_some());
        let ran = Ran { site: self.site, place: place as u64, cause, call: self.call, lazy, reads: &self.reads };
        record(&dump, &self.flat, defs, ran, sources)
    }

    /// There is no difference in the texts.
    fn same(&self, old: &Read, j: usize) -> Explanation {
        let at = self.call.unwrap_or(self.site);
        let (class, difference, fix) = match (&self.written.hash, &old.written.hash) {
            (Some(_), Some(_)) if self.written.cause != old.written.cause => (
                Class::Aliasing,
                Difference {
                    what: "the same graph".into(),
                    was: format!("run by a {}", old.written.cause.name()),
                    now: format!("run by a {}", self.written.cause.name()),
                    was_at: Some(old.call.unwrap_or(old.site)),
                    now_at: Some(at),
                },
                "a barrier lets results take the buffers of what is replaced, and a read does not, so they are two programs: get the \
                 value the same way each time, behind the barrier",
            ),
            (Some(_), Some(_)) if language(&self.written.text) != Some(Language::Lazy) => (
                Class::Aliasing,
                Difference {
                    what: "what a text leaves out".into(),
                    was: "another".into(),
                    now: "part of the key".into(),
                    was_at: None,
                    now_at: Some(at),
                },
                "the programs are equal, and the framework's keys are not: which buffers the results may take is one thing that is in a \
                 key and not in a text, so hold on to the same tensors in every round",
            ),
            (Some(_), Some(_)) => (
                Class::Unclassified,
                Difference {
                    what: "something that this kind of text leaves out".into(),
                    was: "another".into(),
                    now: "part of the key".into(),
                    was_at: None,
                    now_at: Some(at),
                },
                "a number or an attribute that is part of the program, or which inputs are one: written as HLO (XLA_SAVE_TENSORS_FMT=hlo) the \
                 programs say it, and at which line",
            ),
            _ => (
                Class::Eviction,
                Difference::lost("cached program", format!("(#{}, the very same)", j + 1), at),
                "the cache did not have it any more, or not under this key: jit a function once, outside of loops and of the functions that \
                 call it (a lambda that is made anew each time is a new key each time), and keep what is compiled between processes in a \
                 cache on the disk",
            ),
        };
        Explanation::of_texts(class, at, difference, fix.into(), j as u64 + 1)
    }
}

/// Makes a file's lines known where it is as it was when the program was written down.
fn quote_from(source: &str, dump: &Path) {
    let changed = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
    if let (Some(then), Some(now)) = (changed(Path::new(source)), changed(dump))
        && then <= now
        && let Ok(text) = regular::read(source)
    {
        register_file(source, &String::from_utf8_lossy(&text));
    }
}

fn told(new: &Record, why: Option<Explanation>) -> Compilation {
    Compilation {
        number: new.number,
        origin: Origin::Compiled,
        cause: Cause::Sync,
        site: new.site,
        nodes: new.steps.len(),
        parameters: new.leaves.len(),
        outputs: new.roots.len(),
        trace: Duration::ZERO,
        lower: Duration::ZERO,
        compile: Duration::ZERO,
        memory: None,
        flops: None,
        hash: new.hash,
        device: "",
        why,
        refused: false,
        unrolled: None,
        explained_in: Duration::ZERO,
    }
}
