//! What was run, in this kernel and in earlier ones: a bounded JSON-lines file and the three ways to ask it.
use super::content::{flag, number, text};
use crate::engine::{Failure, sentence};
use crate::trouble;
use jupyter_protocol::messaging::HistoryEntry;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use xlazy_mime::regular;

/// Beyond this many entries, or this many bytes of file, the oldest go.
const KEEP: usize = 10_000;
const FILE_LIMIT: u64 = 8 << 20;

/// Longer outputs are cut: history is for finding inputs again.
const OUTPUT_LIMIT: usize = 4096;

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    session: i64,
    line: i64,
    input: String,
    output: String,
}

/// The history of all sessions, this one's last.
pub struct History {
    entries: Vec<Entry>,
    session: i64,
    /// None when there is no file to write, or it could not be written: history then lasts as long as the kernel.
    path: Option<PathBuf>,
    /// Why it is not kept, for whoever asks first.
    trouble: Option<String>,
}

impl History {
    /// Reads the file and takes the next session number. A file that cannot be used is no reason not to start.
    pub fn open(path: Option<PathBuf>) -> History {
        let mut history = History { entries: Vec::new(), session: 1, path, trouble: None };
        if let Some(path) = history.path.clone()
            && let Err(e) = history.load(&path)
        {
            history.give_up(&path, &e);
        }
        history
    }

    fn give_up(&mut self, path: &Path, e: &io::Error) {
        let folder = path.parent().unwrap_or(path);
        let why = trouble::with_advice(&format!("{}: {e}", path.display()), folder, "XLAZY_HOME");
        super::log(format_args!("history is not kept: {why}"));
        self.trouble = Some(format!("[xlazy: the history lasts only as long as this kernel: {why}]\n"));
        self.path = None;
    }

    /// What the user must know about it, once.
    pub fn trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    fn load(&mut self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let _lock = lock(path)?;
        let bytes = match regular::read(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            other => other?,
        };
        // A line that a crash cut short is skipped.
        let lines = bytes.split(|b| *b == b'\n').filter_map(|l| serde_json::from_slice::<Value>(l).ok());
        let mut last = 0;
        for line in lines {
            let session = line["session"].as_i64().unwrap_or(0);
            last = last.max(session);
            if let (Some(line_number), Some(input)) = (line["line"].as_i64(), line["in"].as_str()) {
                let output = line["out"].as_str().unwrap_or("").to_owned();
                self.entries.push(Entry { session, line: line_number, input: input.to_owned(), output });
            }
        }
        self.session = last + 1;
        if bytes.last().is_some_and(|b| *b != b'\n') {
            // The end of a line that a crash or a full disk cut short; the next must not become part of it.
            private(OpenOptions::new().append(true), path)?.write_all(b"\n")?;
        }
        let surplus = self.entries.len().saturating_sub(KEEP);
        if surplus > 0 || bytes.len() as u64 > FILE_LIMIT {
            self.entries.drain(..surplus);
            self.compact(path)?;
        }
        // The number is taken now, so that two kernels started side by side do not share it.
        append(path, &json!({"session": self.session}))
    }

    fn compact(&mut self, path: &Path) -> io::Result<()> {
        let mut bytes: u64 = self.entries.iter().map(|e| (e.input.len() + e.output.len() + 64) as u64).sum();
        let mut oldest = 0;
        while bytes > FILE_LIMIT / 2 && oldest + 1 < self.entries.len() {
            bytes -= (self.entries[oldest].input.len() + self.entries[oldest].output.len() + 64) as u64;
            oldest += 1;
        }
        self.entries.drain(..oldest);
        let fresh = path.with_extension("new");
        let mut file = io::BufWriter::new(private(OpenOptions::new().create(true).write(true).truncate(true), &fresh)?);
        for entry in &self.entries {
            writeln!(file, "{}", entry.line())?;
        }
        file.into_inner()?.sync_all()?;
        fs::rename(fresh, path)
    }

    pub fn add(&mut self, line: u64, input: &str, output: &str) {
        let mut cut = output.len().min(OUTPUT_LIMIT);
        while !output.is_char_boundary(cut) {
            cut -= 1;
        }
        let entry = Entry {
            session: self.session,
            line: line as i64,
            input: input.to_owned(),
            output: output[..cut].to_owned(),
        };
        if let Some(path) = self.path.clone()
            && let Err(e) = lock(&path).and_then(|_lock| append(&path, &entry.line()))
        {
            self.give_up(&path, &e);
        }
        if self.entries.len() >= 2 * KEEP {
            self.entries.drain(..KEEP);
        }
        self.entries.push(entry);
    }

    /// Answers a `history_request`; one that says no way to ask is for the latest entries.
    pub fn ask(&self, content: &Map<String, Value>) -> Result<Vec<HistoryEntry>, Failure> {
        let limit = number(content, "n").map(|n| n.max(0) as usize);
        let mut found: Vec<&Entry> = match text(content, "hist_access_type").as_str() {
            "range" => {
                // 0 is this session, negative numbers count back from it.
                let session = match number(content, "session").unwrap_or(0) {
                    n if n <= 0 => self.session + n,
                    n => n,
                };
                let (start, stop) = (number(content, "start").unwrap_or(0), number(content, "stop"));
                let inside = |e: &&Entry| e.session == session && e.line >= start && stop.is_none_or(|s| e.line < s);
                self.entries.iter().filter(inside).collect()
            }
            "search" => {
                let pattern: Vec<char> = match text(content, "pattern") {
                    p if p.is_empty() => vec!['*'],
                    p => p.chars().collect(),
                };
                let matching = |e: &&Entry| glob(&pattern, &e.input.chars().collect::<Vec<_>>());
                let mut found: Vec<&Entry> = self.entries.iter().filter(matching).collect();
                if flag(content, "unique", false) {
                    // Of equal inputs the latest stays.
                    let mut seen = HashSet::new();
                    found.reverse();
                    found.retain(|e| seen.insert(e.input.as_str()));
                    found.reverse();
                }
                last(found, limit)
            }
            "tail" | "" => last(self.entries.iter().collect(), Some(limit.unwrap_or(10))),
            other => {
                let message = format!("hist_access_type is `range`, `search` or `tail`, not `{other}`");
                return Err(sentence("ValueError", message));
            }
        };
        let output = flag(content, "output", false);
        Ok(found.drain(..).map(|e| e.shown(output)).collect())
    }
}

impl Entry {
    fn line(&self) -> Value {
        json!({"session": self.session, "line": self.line, "in": self.input, "out": self.output})
    }

    fn shown(&self, output: bool) -> HistoryEntry {
        let (session, line) = (self.session.max(0) as usize, self.line.max(0) as usize);
        match output {
            true => HistoryEntry::InputOutput(session, line, (self.input.clone(), self.output.clone())),
            false => HistoryEntry::Input(session, line, self.input.clone()),
        }
    }
}

fn last(mut found: Vec<&Entry>, limit: Option<usize>) -> Vec<&Entry> {
    let surplus = limit.map_or(0, |n| found.len().saturating_sub(n));
    found.drain(..surplus);
    found
}

/// Several kernels share the file; the lock lives beside it because compacting replaces the file itself.
fn lock(path: &Path) -> io::Result<File> {
    let file = private(OpenOptions::new().create(true).append(true), &path.with_extension("lock"))?;
    file.lock()?;
    Ok(file)
}

fn append(path: &Path, line: &Value) -> io::Result<()> {
    let mut file = private(OpenOptions::new().create(true).append(true), path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// Opens a file that only its owner may read: code can hold secrets.
fn private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    regular::open_with(options, path)
}

/// Shell-like patterns as IPython's history knows them: `*`, `?`, `[a-z]`, `[^a]`.
fn glob(pattern: &[char], text: &[char]) -> bool {
    // Iterative with one point to go back to, so that `*a*a*a*` costs no exponential time.
    let (mut p, mut t, mut back) = (0, 0, None);
    while t < text.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                back = Some((p, t));
                p += 1;
                continue;
            }
            Some('?') => Some(1),
            Some('[') => class(&pattern[p..], text[t]),
            Some(c) => (*c == text[t]).then_some(1),
            None => None,
        };
        match (step, back) {
            (Some(width), _) => (p, t) = (p + width, t + 1),
            (None, Some((star, from))) => {
                (p, t) = (star + 1, from + 1);
                back = Some((star, from + 1));
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// The width of the class at the start of `pattern` if it matches; one without an end is a plain `[`.
fn class(pattern: &[char], c: char) -> Option<usize> {
    let negated = matches!(pattern.get(1), Some('^' | '!'));
    let first = 1 + usize::from(negated);
    let Some(end) = pattern.iter().skip(first + 1).position(|c| *c == ']').map(|n| n + first + 1) else {
        return (c == '[').then_some(1);
    };
    let (mut at, mut hit) = (first, false);
    while at < end {
        if at + 2 < end && pattern[at + 1] == '-' {
            hit |= (pattern[at]..=pattern[at + 2]).contains(&c);
            at += 3;
        } else {
            hit |= pattern[at] == c;
            at += 1;
        }
    }
    (hit != negated).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(history: &History, request: Value) -> String {
        let found = history.ask(request.as_object().unwrap()).unwrap();
        serde_json::to_string(&found).unwrap()
    }

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("xlazy-history-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn three_ways_to_ask() {
        let mut history = History::open(None);
        for (line, input) in ["let a = 1;", "a + 1", "let b = 2;", "a + 1"].iter().enumerate() {
            history.add(line as u64 + 1, input, if input.contains('+') { "2" } else { "" });
        }
        assert_eq!(asked(&history, json!({"hist_access_type": "tail", "n": 1})), r#"[[1,4,"a + 1"]]"#);
        let range = json!({"hist_access_type": "range", "session": 0, "start": 2, "stop": 3, "output": true});
        assert_eq!(asked(&history, range), r#"[[1,2,["a + 1","2"]]]"#);
        let search = json!({"hist_access_type": "search", "pattern": "a*", "unique": true, "n": 5, "raw": true});
        assert_eq!(asked(&history, search), r#"[[1,4,"a + 1"]]"#);
        let both = json!({"hist_access_type": "search", "pattern": "*=*", "n": null});
        assert_eq!(asked(&history, both), r#"[[1,1,"let a = 1;"],[1,3,"let b = 2;"]]"#);
        assert_eq!(asked(&history, json!({"hist_access_type": "tail", "n": -4})), "[]");
        let unknown = json!({"hist_access_type": "tial"});
        assert_eq!(history.ask(unknown.as_object().unwrap()).unwrap_err().name, "ValueError");
        assert_eq!(asked(&history, json!({"n": 1})), r#"[[1,4,"a + 1"]]"#);
        assert_eq!(asked(&history, json!({"hist_access_type": "range", "session": 99, "start": 0})), "[]");
    }

    #[test]
    fn history_outlives_the_kernel() {
        let folder = folder("outlives");
        let path = folder.join("deep").join("history.jsonl");
        History::open(Some(path.clone())).add(1, "first", "");
        fs::write(&path, fs::read_to_string(&path).unwrap() + "{\"session\": 1, \"li").unwrap();
        let mut second = History::open(Some(path.clone()));
        second.add(1, "second", "");
        let third = History::open(Some(path));
        let all = json!({"hist_access_type": "tail", "n": 9});
        // The cut line swallows the session mark that was appended to it, and nothing else.
        assert_eq!(asked(&third, all), r#"[[1,1,"first"],[2,1,"second"]]"#);
        assert_eq!(asked(&third, json!({"hist_access_type": "range", "session": -1})), r#"[[2,1,"second"]]"#);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_file_is_bounded() {
        let folder = folder("bounded");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("history.jsonl");
        let line = |n: usize| format!("{}\n", json!({"session": 1, "line": n, "in": "x".repeat(2000), "out": ""}));
        fs::write(&path, (0..5000).map(line).collect::<String>()).unwrap();
        let history = History::open(Some(path.clone()));
        assert!(fs::metadata(&path).unwrap().len() < FILE_LIMIT);
        assert_eq!(history.entries.last().unwrap().line, 4999);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn patterns() {
        let matches = |p: &str, t: &str| glob(&p.chars().collect::<Vec<_>>(), &t.chars().collect::<Vec<_>>());
        for (pattern, text) in
            [("*", ""), ("a?c", "abc"), ("*1*", "let a = 1;"), ("[a-c]x", "bx"), ("[^a]x", "bx"), ("[", "[")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("?", ""), ("[a-c]x", "dx"), ("*b", "bc"), ("[^b]x", "bx")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
        assert!(!matches(&"*a".repeat(50), &"a".repeat(49)), "must also end soon");
    }
}
