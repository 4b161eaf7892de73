//! Keeps from the front end what it cannot show: a flood of text, which goes to a file, and a note says where; and what moves on a line.
use super::Event;
use super::overwriting::Overwriting;
use crate::trouble;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use xlazy_mime::{private, units};

/// How much text of one cell is shown.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Shown at once, after a time of quiet.
    pub burst: usize,
    /// Shown for as long as it takes, bytes per second.
    pub per_second: usize,
    /// Shown in all, since the cell began or cleared its output.
    pub bytes: usize,
    pub lines: usize,
}

impl Limits {
    /// For somebody who watches. Jupyter's server lets 3 MB through in 3 s and then throws everything away, displays
    /// included; so this stays below.
    pub const LIVE: Limits = Limits { burst: 1 << 20, per_second: 512 << 10, bytes: 10 << 20, lines: 200_000 };
    /// For a document that is read later.
    pub const DOCUMENT: Limits = Limits { burst: 10 << 20, per_second: usize::MAX, ..Limits::LIVE };
}

/// The files of one user take no more than this, nor does one of them; the oldest go first.
const FOLDER_LIMIT: u64 = 1 << 30;
/// This much of the disk is left to others.
const KEEP_FREE: u64 = 1 << 30;
const NEARLY_FULL: &str = "the disk is nearly full";
/// How often the free space is looked at, in bytes written.
const LOOK_EVERY: u64 = 16 << 20;
/// The end of what was left out is shown after all, this much of it.
const TAIL: usize = 1 << 10;

/// Stands between one cell's events and the front end that shows them.
pub struct Spill {
    limits: Limits,
    folder: PathBuf,
    /// Where the file goes when the folder takes none; otherwise among the temporary files.
    elsewhere: Option<PathBuf>,
    cell: u64,
    /// What has come in, less what could have been shown meanwhile.
    level: f64,
    looked: Option<Instant>,
    bytes: usize,
    lines: usize,
    /// The shown text ends inside a line.
    open_line: bool,
    left_out: Option<LeftOut>,
    sink: Option<Sink>,
    /// The lines of both streams.
    over: [Overwriting; 2],
}

#[derive(Default)]
struct LeftOut {
    bytes: u64,
    lines: u64,
    tail: String,
}

impl Spill {
    /// `folder` is made when it is needed.
    pub fn new(limits: Limits, folder: &Path, cell: u64) -> Spill {
        Spill {
            limits,
            folder: folder.to_owned(),
            elsewhere: None,
            cell,
            level: 0.0,
            looked: None,
            bytes: 0,
            lines: 0,
            open_line: false,
            left_out: None,
            sink: None,
            over: Default::default(),
        }
    }

    /// Passes an event on; of text, as much as there is room for.
    pub fn pass(&mut self, event: Event, emit: &mut dyn FnMut(Event)) {
        self.pass_at(event, Instant::now(), emit);
    }

    fn pass_at(&mut self, event: Event, now: Instant, emit: &mut dyn FnMut(Event)) {
        match event {
            Event::Stream { stderr, text } => {
                let text = self.over[usize::from(stderr)].take(&text);
                if !text.is_empty() {
                    self.text(stderr, text, now, emit);
                }
            }
            Event::Told(text) => self.text(false, text, now, emit),
            Event::ClearOutput { .. } => {
                (self.bytes, self.lines, self.open_line) = (0, 0, false);
                emit(event);
            }
            other => emit(other),
        }
    }

    /// Says what was left out at the end.
    pub fn end(mut self, emit: &mut dyn FnMut(Event)) {
        for stderr in [false, true] {
            let text = self.over[usize::from(stderr)].end();
            if !text.is_empty() {
                self.text(stderr, text, Instant::now(), emit);
            }
        }
        self.resume(true, emit);
    }

    fn text(&mut self, stderr: bool, text: String, now: Instant, emit: &mut dyn FnMut(Event)) {
        let gone = self.looked.map_or(0.0, |t| now.saturating_duration_since(t).as_secs_f64());
        self.looked = Some(now);
        self.level = (self.level - gone * self.limits.per_second as f64).max(0.0);
        let burst = self.limits.burst as f64;
        if self.left_out.is_some() && self.level <= burst / 2.0 && self.room() > 0 {
            self.resume(false, emit);
        }
        let shown = match &self.left_out {
            Some(_) => 0,
            None => self.fitting(&text),
        };
        // A flood counts while it is left out as well, so that it is not shown in slices; but it is soon forgotten.
        self.level = (self.level + text.len() as f64).min(2.0 * burst);
        if shown == text.len() {
            return self.show(stderr, text, emit);
        }
        if shown > 0 {
            self.show(stderr, text[..shown].to_owned(), emit);
        }
        if self.left_out.is_none() {
            self.begin(emit);
        }
        self.leave_out(&text[shown..]);
    }

    /// Bytes that may still be shown, whatever the rate.
    fn room(&self) -> usize {
        if self.lines >= self.limits.lines { 0 } else { self.limits.bytes.saturating_sub(self.bytes) }
    }

    /// How much of the text is shown: all of it, or whole lines, or, of one endless line, what there is room for.
    fn fitting(&self, text: &str) -> usize {
        let rate = (self.limits.burst as f64 - self.level).max(0.0) as usize;
        let room = self.room().min(rate);
        let lines = self.limits.lines.saturating_sub(self.lines);
        let by_lines = match text.bytes().enumerate().filter(|(_, b)| *b == b'\n').nth(lines.saturating_sub(1)) {
            Some((at, _)) if lines > 0 => at + 1,
            _ => text.len(),
        };
        if text.len() <= room && by_lines == text.len() {
            return text.len();
        }
        let most = text.floor_char_boundary(room.min(by_lines));
        text[..most].rfind('\n').map_or(most, |at| at + 1)
    }

    fn show(&mut self, stderr: bool, text: String, emit: &mut dyn FnMut(Event)) {
        self.bytes += text.len();
        self.lines += line_count(&text) as usize;
        self.open_line = text.as_bytes().last().map_or(self.open_line, |b| *b != b'\n');
        emit(Event::Stream { stderr, text });
    }

    fn begin(&mut self, emit: &mut dyn FnMut(Event)) {
        self.left_out = Some(LeftOut::default());
        let sink = self.sink.get_or_insert_with(|| Sink::open(&self.folder, self.elsewhere.as_deref(), self.cell));
        let text = match &sink.refused {
            None => format!("[xlazy: too much output to show; it goes on in {}]", sink.path.display()),
            Some(why) => format!("[xlazy: too much output to show, and no file to put it in: {why}]"),
        };
        self.note(&text, emit);
    }

    fn leave_out(&mut self, text: &str) {
        if let Some(sink) = &mut self.sink {
            sink.write(text);
        }
        let Some(out) = &mut self.left_out else { return };
        out.bytes += text.len() as u64;
        out.lines += line_count(text);
        out.tail.push_str(&text[text.ceil_char_boundary(text.len().saturating_sub(TAIL))..]);
        let cut = out.tail.ceil_char_boundary(out.tail.len().saturating_sub(TAIL));
        out.tail.drain(..cut);
    }

    fn resume(&mut self, at_end: bool, emit: &mut dyn FnMut(Event)) {
        let Some(out) = self.left_out.take() else { return };
        let what = format!("{} lines ({})", out.lines, units::bytes(out.bytes));
        let what = match &mut self.sink {
            Some(sink) => {
                sink.flush();
                match &sink.refused {
                    None => format!("[xlazy: {what} left out above, all of it in {}", sink.path.display()),
                    Some(why) if sink.written == 0 => format!("[xlazy: {what} left out above and lost: {why}"),
                    Some(why) => format!(
                        "[xlazy: {what} left out above; {} in {}, the rest lost: {why}",
                        units::bytes(sink.written),
                        sink.path.display()
                    ),
                }
            }
            None => return,
        };
        // Whole lines of the end, where there are any.
        let tail = match out.tail.find('\n') {
            Some(at) if at + 1 < out.tail.len() && out.bytes > TAIL as u64 => &out.tail[at + 1..],
            _ => &out.tail,
        };
        self.note(&format!("{what}; {}]", if at_end { "its end:" } else { "the last of it:" }), emit);
        self.show(false, tail.to_owned(), emit);
    }

    fn note(&mut self, text: &str, emit: &mut dyn FnMut(Event)) {
        let start = if self.open_line { "\n" } else { "" };
        self.open_line = false;
        emit(Event::Stream { stderr: true, text: format!("{start}{text}\n") });
    }
}

fn line_count(text: &str) -> u64 {
    text.bytes().filter(|b| *b == b'\n').count() as u64
}

/// The file of one cell. Once it takes no more, `refused` says why.
struct Sink {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    written: u64,
    look_at: u64,
    refused: Option<String>,
}

impl Sink {
    /// A file in the first folder, or, where there can be none, in the second.
    fn open(folder: &Path, elsewhere: Option<&Path>, cell: u64) -> Sink {
        let sink = Sink::open_in(folder, cell);
        let Some(why) = &sink.refused else { return sink };
        let elsewhere = elsewhere.map_or_else(crate::folder::to_stay, |e| Ok(e.to_owned()));
        let mut other = elsewhere.map_or_else(|e| Sink::refused(e.to_string()), |e| Sink::open_in(&e, cell));
        if other.refused.is_some() {
            let advice = trouble::advice(why, folder, "XLAZY_HOME").map(|a| format!("; {a}")).unwrap_or_default();
            other.refused = Some(format!("{why}{advice}"));
        }
        other
    }

    fn refused(why: String) -> Sink {
        Sink { path: PathBuf::new(), file: None, written: 0, look_at: LOOK_EVERY, refused: Some(why) }
    }

    fn open_in(folder: &Path, cell: u64) -> Sink {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let second = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("cell-{cell}-{second}-{}-{number}.txt", std::process::id()));
        let mut sink = Sink { path, file: None, written: 0, look_at: LOOK_EVERY, refused: None };
        // What is pruned, and whom a file is given to, is nobody else's to say.
        let opened = private::folder(folder).and_then(|()| {
            prune(folder);
            // What a cell prints can hold secrets.
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&sink.path)
        });
        match opened {
            Ok(_) if free(&sink.path).is_some_and(|n| n < KEEP_FREE) => {
                let _ = fs::remove_file(&sink.path);
                sink.refused = Some(format!("{}: {NEARLY_FULL}", folder.display()));
            }
            Ok(file) => sink.file = Some(BufWriter::with_capacity(64 << 10, file)),
            Err(e) => sink.refused = Some(format!("{}: {e}", sink.path.display())),
        }
        sink
    }

    fn write(&mut self, text: &str) {
        if self.written >= self.look_at && self.file.is_some() {
            self.look_at = self.written + LOOK_EVERY;
            if free(&self.path).is_some_and(|n| n < KEEP_FREE) {
                self.stop(NEARLY_FULL.into());
            }
        }
        if self.written + text.len() as u64 > FOLDER_LIMIT {
            self.stop(format!("a file of output holds at most {}", units::bytes(FOLDER_LIMIT)));
        }
        let Some(file) = &mut self.file else { return };
        match file.write_all(text.as_bytes()) {
            Ok(()) => self.written += text.len() as u64,
            Err(e) => self.stop(e.to_string()),
        }
    }

    fn flush(&mut self) {
        if let Some(Err(e)) = self.file.as_mut().map(BufWriter::flush) {
            self.stop(e.to_string());
        }
    }

    fn stop(&mut self, why: String) {
        if let Some(file) = self.file.take() {
            // What could not be written before cannot be written now.
            drop(file.into_parts());
            self.refused = Some(why);
        }
    }
}

/// Bytes of the disk that this user may still fill.
fn free(path: &Path) -> Option<u64> {
    let stat = nix::sys::statvfs::statvfs(path).ok()?;
    Some(stat.blocks_available() * stat.fragment_size())
}

/// Removes the oldest files until the folder has room for another.
fn prune(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .flatten()
        .filter_map(|e| e.metadata().ok().filter(fs::Metadata::is_file).map(|m| (e, m)))
        .map(|(e, m)| (m.modified().unwrap_or(UNIX_EPOCH), m.len(), e.path()))
        .collect();
    files.sort();
    let mut total: u64 = files.iter().map(|f| f.1).sum();
    for (_, len, path) in files {
        if total <= FOLDER_LIMIT {
            return;
        }
        let removed: io::Result<()> = fs::remove_file(path);
        total -= if removed.is_ok() { len } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const LIMITS: Limits = Limits { burst: 1000, per_second: 100, bytes: 5000, lines: 100 };

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Folder {
            Folder(std::env::temp_dir().join(format!("xs-{}", uuid::Uuid::new_v4().simple())))
        }

        fn text(&self) -> String {
            let files = fs::read_dir(&self.0).map(|d| d.flatten().map(|e| e.path()).collect::<Vec<_>>());
            files.unwrap_or_default().iter().map(|f| fs::read_to_string(f).unwrap()).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn text(event: Event) -> String {
        match event {
            Event::Stream { stderr: false, text } => text,
            Event::Stream { stderr: true, text } => format!("<{text}>"),
            other => format!("{other:?}"),
        }
    }

    /// What is shown of texts that come at these seconds.
    fn shown(limits: Limits, folder: &Path, texts: &[(u64, String)]) -> String {
        shown_in(limits, folder, folder, texts)
    }

    fn shown_in(limits: Limits, folder: &Path, elsewhere: &Path, texts: &[(u64, String)]) -> String {
        let (mut spill, start, mut out) = (Spill::new(limits, folder, 7), Instant::now(), String::new());
        spill.elsewhere = Some(elsewhere.to_owned());
        for (second, t) in texts {
            let event = Event::Stream { stderr: false, text: t.clone() };
            spill.pass_at(event, start + Duration::from_secs(*second), &mut |e| out += &text(e));
        }
        spill.end(&mut |e| out += &text(e));
        out
    }

    fn lines(range: std::ops::Range<usize>) -> String {
        range.map(|n| format!("line {n}\n")).collect()
    }

    #[test]
    fn a_modest_cell_is_left_alone() {
        let folder = Folder::new();
        assert_eq!(shown(LIMITS, &folder.0, &[(0, lines(0..50)), (9, lines(50..99))]), lines(0..99));
        assert!(!folder.0.exists());
    }

    #[test]
    fn a_flood_goes_to_a_private_file_and_its_end_is_shown() {
        let folder = Folder::new();
        let out = shown(Limits { lines: 100_000, ..LIMITS }, &folder.0, &[(0, lines(0..50)), (0, lines(50..9000))]);
        let (before, rest) = out.split_once("<[xlazy: too much output").unwrap();
        let count = before.lines().count();
        assert_eq!(before, lines(0..count));
        assert_eq!(folder.text(), lines(count..9000), "what is shown and what is in the file are the whole");
        assert!(rest.contains(&format!("{} lines", 9000 - count)), "{rest}");
        assert!(rest.ends_with(&lines(8990..9000)) && rest.len() < 2 * TAIL, "{rest}");
        use std::os::unix::fs::PermissionsExt;
        let file = fs::read_dir(&folder.0).unwrap().next().unwrap().unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&folder.0).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn after_the_flood_text_is_shown_again() {
        let folder = Folder::new();
        let limits = Limits { lines: 1000, ..LIMITS };
        let out = shown(limits, &folder.0, &[(0, "é".repeat(3000)), (1, "still\n".into()), (60, "calm\n".into())]);
        assert!(out.starts_with(&"é".repeat(500)) && !out.starts_with(&"é".repeat(501)), "{out}");
        assert!(out.ends_with("still\ncalm\n") && out.matches("[xlazy").count() == 2, "{out}");
        assert_eq!(folder.text(), format!("{}still\n", "é".repeat(2500)));
    }

    #[test]
    fn in_all_there_is_a_limit_too_until_the_output_is_cleared() {
        let folder = Folder::new();
        let slow: Vec<(u64, String)> = (0..300).map(|n| (n * 9, lines(n as usize..n as usize + 1))).collect();
        let out = shown(LIMITS, &folder.0, &slow);
        assert!(out.starts_with(&lines(0..100)) && !out.contains("line 100\n"), "{out}");
        assert_eq!(folder.text(), lines(100..300));
        let mut spill = Spill::new(LIMITS, &folder.0, 1);
        let mut out = String::new();
        for n in 0..1000 {
            spill.pass(Event::ClearOutput { wait: true }, &mut |_| {});
            spill.pass(Event::Stream { stderr: false, text: format!("\r{n}") }, &mut |e| out += &text(e));
        }
        assert!(out.starts_with("\r0\r1\r2"));
    }

    #[test]
    fn a_folder_that_takes_no_file_is_replaced() {
        let folder = Folder::new();
        let out = shown_in(LIMITS, Path::new("/dev/null/output"), &folder.0, &[(0, lines(0..5000))]);
        assert!(out.contains(&format!("it goes on in {}/cell-7-", folder.0.display())), "{out}");
        assert!(folder.text().ends_with("line 4999\n"));
    }

    #[test]
    fn without_a_file_the_rest_is_lost_and_the_note_says_so() {
        let out = shown(LIMITS, Path::new("/dev/null/output"), &[(0, lines(0..5000))]);
        assert!(out.contains("no file to put it in: /dev/null/output/cell-7-"), "{out}");
        assert!(out.contains("left out above and lost:") && out.ends_with("line 4999\n"), "{out}");
    }
}
