//! Showing what a cell does on a terminal or in a pipe; shared by `xlazy eval` and the REPL.
mod pictures;

use crate::engine::{Event, Failure};
use crate::footer;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use signal_hook::consts::SIGINT;
use std::io::{self, BufRead, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use xlazy_mime::{Bundle, Content, PAGES};

/// Where a cell's events go: results and streams as a terminal user expects them.
pub struct Screen<'a> {
    pub out: &'a mut dyn Write,
    pub err: &'a mut dyn Write,
    /// Whether colours may pass to `out` and `err`.
    pub colours: (bool, bool),
    /// Put before a result's first line (`Out[3]: `).
    pub result_prefix: String,
    /// Whether the cell may read lines from standard input.
    pub stdin: bool,
    /// Makes the folder that pictures are saved to, beside what the terminal can show of them; without it they are only named.
    pub pictures: Option<fn() -> io::Result<PathBuf>>,
    /// Whether what takes long is told on a line that is written over: for a terminal.
    pub live: bool,
    /// Such a line stands there.
    live_shown: bool,
    /// The question that Ctrl-C ended: no answer is no error of the cell, which is being interrupted.
    unanswered: Option<Sender<Result<String, String>>>,
    /// The display that was shown last, of one line, where nothing has been written behind it.
    last: Option<String>,
    /// The last state of displays that were changed after they were shown.
    updates: Vec<(String, Bundle)>,
    /// Whether what came last on `out` ended its line; a result or a display starts on a line of its own.
    at_line_start: bool,
}

impl<'a> Screen<'a> {
    pub fn new(out: &'a mut dyn Write, err: &'a mut dyn Write) -> Screen<'a> {
        Screen {
            out,
            err,
            colours: (false, false),
            result_prefix: String::new(),
            stdin: false,
            pictures: None,
            live: false,
            live_shown: false,
            unanswered: None,
            last: None,
            updates: Vec::new(),
            at_line_start: true,
        }
    }

    /// Shows one event. A closed pipe (`xlazy eval … | head`) is not an error of the cell.
    pub fn show(&mut self, event: Event) {
        if let Event::Insight { kind, json } = &event {
            if kind == "live" && self.live && self.at_line_start && !footer::is_quiet() {
                // Shorter than a terminal is wide: what wraps cannot be written over.
                let line: String = footer::live_line(json).unwrap_or_default().chars().take(78).collect();
                let _ = write!(self.out, "\r\x1b[K\x1b[2m{line}\x1b[0m");
                let _ = self.out.flush();
                self.live_shown = true;
            }
            return;
        }
        self.end_live();
        match event {
            Event::Stream { stderr: false, text } => self.write_out(&text),
            Event::Stream { stderr: true, text } | Event::Told(text) => {
                self.last = None;
                let _ = self.err.write_all(plain_unless(self.colours.1, &text).as_bytes());
                let _ = self.err.flush();
            }
            Event::Display { bundle, update: false, .. } if self.stdin && bundle.get(PAGES).is_some() => {
                self.turn_pages(&bundle)
            }
            Event::Display { bundle, update: false, id } => {
                self.write_block("", &bundle);
                self.last = id.filter(|_| self.live && is_one_line(&bundle));
            }
            Event::Display { bundle, id: Some(id), update: true }
                if self.last.as_ref() == Some(&id) && is_one_line(&bundle) =>
            {
                let line = plain_unless(self.colours.0, bundle.plain().trim_end());
                let _ = writeln!(self.out, "\x1b[1A\r\x1b[K{line}");
                let _ = self.out.flush();
                self.updates.retain(|(known, _)| *known != id);
            }
            // What stands further up is not changed; the last state is shown when the cell has ended.
            Event::Display { bundle, id: Some(id), update: true } => {
                self.updates.retain(|(known, _)| *known != id);
                self.updates.push((id, bundle));
            }
            Event::Display { .. } | Event::ClearOutput { .. } | Event::Comm(_) | Event::Insight { .. } => {}
            Event::Result(bundle) => {
                let prefix = self.result_prefix.clone();
                self.write_block(&prefix, &bundle);
            }
            Event::Page(bundle) => self.write_block("", &bundle),
            Event::NextInput(text) => self.write_block("", &Bundle::text(text)),
            Event::Input { prompt, password, answer } => {
                self.write_out(&prompt);
                match if self.stdin { read_answer(password) } else { Some(Err(NOBODY.to_owned())) } {
                    Some(text) => drop(answer.send(text)),
                    None => self.unanswered = Some(answer),
                }
                self.at_line_start = true;
            }
        }
    }

    /// Shows a display in parts, one after the other, when Enter is pressed.
    fn turn_pages(&mut self, bundle: &Bundle) {
        let pages: Vec<String> = bundle.get(PAGES).and_then(|p| serde_json::from_str(p).ok()).unwrap_or_default();
        for (i, page) in pages.iter().enumerate() {
            self.finish_line();
            self.write_out(page);
            self.finish_line();
            if i + 1 == pages.len() {
                return;
            }
            self.write_out("Enter goes on, q ends: ");
            self.at_line_start = true;
            match read_answer(false) {
                Some(Ok(line)) if !line.trim().eq_ignore_ascii_case("q") => {}
                _ => return,
            }
        }
    }

    /// Takes away what was told while it lasted.
    fn end_live(&mut self) {
        if std::mem::take(&mut self.live_shown) {
            let _ = write!(self.out, "\r\x1b[K");
            let _ = self.out.flush();
        }
    }

    /// Shows what is still to be shown when a cell has ended.
    pub fn finish(&mut self) {
        self.end_live();
        for (_, bundle) in std::mem::take(&mut self.updates) {
            self.write_block("", &bundle);
        }
    }

    /// Shows why a cell failed.
    pub fn failure(&mut self, failure: &Failure) {
        self.finish_line();
        let _ = self.out.flush();
        for line in failure_lines(failure) {
            let _ = writeln!(self.err, "{}", plain_unless(self.colours.1, &line));
        }
        let _ = self.err.flush();
    }

    /// Ends the line that the last output left open, and says whether there was one.
    pub fn finish_line(&mut self) -> bool {
        let open = !self.at_line_start;
        if open {
            self.write_out("\n");
        }
        open
    }

    fn write_out(&mut self, text: &str) {
        self.last = None;
        if let Some(last) = text.chars().next_back() {
            self.at_line_start = last == '\n';
            let _ = self.out.write_all(plain_unless(self.colours.0, text).as_bytes());
            let _ = self.out.flush();
        }
    }

    fn write_block(&mut self, prefix: &str, bundle: &Bundle) {
        let text = self.as_text(bundle);
        if text.is_empty() {
            return;
        }
        self.finish_line();
        // A block of several lines stays aligned when it starts below its prefix.
        let gap = if prefix.is_empty() || !text.contains('\n') { "" } else { "\n" };
        self.write_out(&format!("{prefix}{gap}{text}"));
        self.finish_line();
    }

    fn as_text(&self, bundle: &Bundle) -> String {
        let mut text = bundle.plain().to_owned();
        for (mime, content) in &bundle.entries {
            let Some(kind) = mime.strip_prefix("image/") else { continue };
            let bytes = match content {
                Content::Bytes(bytes) => bytes.as_slice(),
                Content::Text(text) => text.as_bytes(),
            };
            if mime == "image/png" && self.pictures.is_some() && self.colours.0 {
                let drawn = pictures::protocol().and_then(|protocol| pictures::drawn(bytes, protocol));
                text.extend(
                    drawn.map(|drawn| format!("{}{}", if text.is_empty() { "" } else { "\n" }, drawn.trim_end())),
                );
            }
            let extension = kind.split('+').next().unwrap_or(kind);
            let note = match self.pictures.and_then(|folder| save(&folder().ok()?, extension, bytes).ok()) {
                Some(path) => format!("[{mime}: {}]", path.display()),
                None if text.is_empty() => format!("[{mime}, {} bytes]", bytes.len()),
                None => continue,
            };
            text.push_str(if text.is_empty() { "" } else { "\n" });
            text.push_str(&note);
        }
        if text.is_empty() && !bundle.entries.is_empty() {
            let mimes: Vec<&str> = bundle.entries.iter().map(|(m, _)| m.as_str()).collect();
            text = format!("[{}]", mimes.join(", "));
        }
        text
    }
}

/// Whether it takes one line of a terminal, which can be written over: what wraps cannot be.
fn is_one_line(bundle: &Bundle) -> bool {
    let text = plain_unless(false, bundle.plain().trim_end());
    let only_text = bundle.entries.iter().all(|(mime, _)| mime == "text/plain");
    let picture = bundle.entries.iter().any(|(mime, _)| mime.starts_with("image/"));
    let fits = text.chars().count() <= 78 && !text.contains(char::is_control);
    fits && !picture && (only_text || !text.is_empty())
}

const NOBODY: &str = "there is nobody to ask: standard input is not a terminal";

/// Whether colours should go to a stream: it is a terminal and nobody asked for none (<https://no-color.org>).
pub fn colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// The lines that tell about a failure: its traceback, or name and message where there is none.
pub fn failure_lines(failure: &Failure) -> Vec<String> {
    match failure.traceback.as_slice() {
        [] => vec![format!("\x1b[1;31m{}\x1b[0m: {}", failure.name, failure.message)],
        lines => lines.to_vec(),
    }
}

/// The text as it is where colours are wanted, and without its escape sequences where they are not.
pub fn plain_unless(colours: bool, text: &str) -> String {
    if colours || !text.contains('\x1b') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\x1b' && chars.peek() == Some(&'[') {
            chars.next();
            chars.by_ref().find(|c| ('@'..='~').contains(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// What was typed; `None` when Ctrl-C came first.
fn read_answer(password: bool) -> Option<Result<String, String>> {
    // Standard tools hide what is typed; without a terminal there is nothing to hide.
    let hidden = password && io::stdin().is_terminal() && stty("-echo");
    let mut line = String::new();
    let read = readable(&io::stdin()).then(|| io::stdin().lock().read_line(&mut line));
    if hidden {
        stty("echo");
        println!();
    }
    Some(match read? {
        Ok(0) => Err("standard input has ended".to_owned()),
        Ok(_) => Ok(line.trim_end_matches(['\n', '\r']).to_owned()),
        Err(e) => Err(format!("standard input could not be read: {e}")),
    })
}

/// Waits until there is something to read; false when Ctrl-C comes first, which ends the question with its cell.
fn readable(input: &io::Stdin) -> bool {
    let interrupted = Arc::new(AtomicBool::new(false));
    let Ok(listening) = signal_hook::flag::register(SIGINT, interrupted.clone()) else { return true };
    let mut stdin = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    let came = loop {
        match poll(&mut stdin, PollTimeout::from(50u16)) {
            _ if interrupted.load(Ordering::SeqCst) => break false,
            Ok(0) | Err(Errno::EINTR) => {}
            _ => break true,
        }
    };
    signal_hook::low_level::unregister(listening);
    came
}

fn stty(mode: &str) -> bool {
    std::process::Command::new("stty").arg(mode).status().is_ok_and(|s| s.success())
}

fn save(folder: &std::path::Path, extension: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    for n in 1.. {
        let path = folder.join(format!("{n}.{extension}"));
        match std::fs::File::create_new(&path) {
            Ok(mut file) => return file.write_all(bytes).map(|()| path),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(e),
        }
    }
    unreachable!("numbers do not run out")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(events: Vec<Event>) -> String {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut screen = Screen::new(&mut out, &mut err);
        screen.result_prefix = "Out[1]: ".into();
        events.into_iter().for_each(|e| screen.show(e));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn results_start_on_a_line_of_their_own() {
        let stream = |text: &str| Event::Stream { stderr: false, text: text.into() };
        let text = shown(vec![stream("working"), Event::Result(Bundle::text("[[1, 2],\n [3, 4]]"))]);
        assert_eq!(text, "working\nOut[1]: \n[[1, 2],\n [3, 4]]\n");
        assert_eq!(shown(vec![stream("a\n"), Event::Result(Bundle::text("7"))]), "a\nOut[1]: 7\n");
    }

    #[test]
    fn what_takes_long_is_told_on_a_line_that_is_written_over() {
        let long = || Event::Insight {
            kind: "live".into(),
            json: r#"{"what":"run","nodes":7,"name":null,"cause":"sync","at":"cell 1, line 2","ms":1500}"#.into(),
        };
        let told = "waiting for the device: 7 ops are running (sync at cell 1, line 2): 1.5 s…";
        assert_eq!(shown(vec![long(), Event::Result(Bundle::text("7"))]), "Out[1]: 7\n", "a pipe shows nothing of it");
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut screen = Screen::new(&mut out, &mut err);
        screen.live = true;
        screen.show(long());
        screen.show(Event::Stream { stderr: false, text: "step".into() });
        screen.show(long());
        screen.finish();
        assert_eq!(String::from_utf8(out).unwrap(), format!("\r\x1b[K\x1b[2m{told}\x1b[0m\r\x1b[Kstep"));
    }

    #[test]
    fn what_was_shown_last_is_written_over() {
        let at = |text: &str, update| Event::Display { bundle: Bundle::text(text), id: Some("bar".into()), update };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut screen = Screen::new(&mut out, &mut err);
        screen.live = true;
        screen.show(at("1/3", false));
        screen.show(at("2/3", true));
        screen.show(Event::Stream { stderr: false, text: "between\n".into() });
        screen.show(at("3/3", true));
        screen.finish();
        assert_eq!(String::from_utf8(out).unwrap(), "1/3\n\x1b[1A\r\x1b[K2/3\nbetween\n3/3\n");
        let plain = shown(vec![at("1/3", false), at("2/3", true)]);
        assert_eq!(plain, "1/3\n", "a pipe is not written over");
    }

    #[test]
    fn what_takes_more_than_a_line_is_not_written_over() {
        let written = |texts: &[&str]| {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut screen = Screen::new(&mut out, &mut err);
            screen.live = true;
            for (i, text) in texts.iter().enumerate() {
                screen.show(Event::Display { bundle: Bundle::text(*text), id: Some("bar".into()), update: i > 0 });
            }
            screen.finish();
            String::from_utf8(out).unwrap()
        };
        let long = "=".repeat(79);
        let long = long.as_str();
        assert_eq!(written(&["1/3", "a\nb"]), "1/3\na\nb\n");
        assert_eq!(written(&["1/3", long]), format!("1/3\n{long}\n"));
        assert_eq!(written(&[long, "2/3"]), format!("{long}\n2/3\n"), "it may have wrapped");
        assert_eq!(
            written(&["1/3", "a\nb", "3/3"]),
            "1/3\n\x1b[1A\r\x1b[K3/3\n",
            "the last state is all that is shown"
        );
        assert!(!is_one_line(&Bundle::text("a").with_bytes("image/png", vec![1])));
    }

    #[test]
    fn what_a_terminal_cannot_show_is_named() {
        let picture = Bundle::default().with_bytes("image/png", vec![1, 2, 3]);
        assert_eq!(shown(vec![Event::Result(picture)]), "Out[1]: [image/png, 3 bytes]\n");
        assert_eq!(shown(vec![Event::Result(Bundle::default().with("text/html", "<b>"))]), "Out[1]: [text/html]\n");
        assert_eq!(shown(vec![Event::Result(Bundle::default())]), "");
    }

    #[test]
    fn colours_are_taken_out_whole() {
        assert_eq!(plain_unless(false, "\x1b[1;31mError\x1b[0m: x\x1b[K"), "Error: x");
        assert_eq!(plain_unless(true, "\x1b[1mx"), "\x1b[1mx");
    }
}
