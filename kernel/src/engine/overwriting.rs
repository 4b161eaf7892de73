//! Lines that are written over, for front ends that know a carriage return and nothing else of what moves on a line.

/// What stands on the line at hand of one stream, and the start of an escape sequence whose rest has not come.
#[derive(Debug, Default)]
pub struct Overwriting {
    column: usize,
    width: usize,
    held: String,
}

/// A sequence that is longer than this is none.
const LONGEST: usize = 32;

impl Overwriting {
    /// The text as a front end takes it: to go to the first column is a carriage return, to erase the line is to write spaces over
    /// it. Everything else passes.
    pub fn take(&mut self, text: &str) -> String {
        if self.held.is_empty() && !text.contains('\x1b') {
            self.follow(text);
            return text.to_owned();
        }
        let all = std::mem::take(&mut self.held) + text;
        let (mut out, mut rest) = (String::new(), &*all);
        while let Some(at) = rest.find('\x1b') {
            self.pass(&rest[..at], &mut out);
            rest = &rest[at..];
            let ends = |(i, c): &(usize, char)| *i > 1 && c.is_ascii() && ('@'..='~').contains(c);
            match rest.strip_prefix("\x1b[").and_then(|_| rest.char_indices().find(ends)) {
                Some((end, kind)) => {
                    self.control(&rest[2..end], kind, &rest[..=end], &mut out);
                    rest = &rest[end + 1..];
                }
                None if "\x1b[".starts_with(rest) || rest.starts_with("\x1b[") && rest.len() < LONGEST => {
                    self.held = rest.to_owned();
                    return out;
                }
                None => {
                    out.push('\x1b');
                    rest = &rest[1..];
                }
            }
        }
        self.pass(rest, &mut out);
        out
    }

    /// What never became a sequence.
    pub fn end(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    fn pass(&mut self, text: &str, out: &mut String) {
        self.follow(text);
        out.push_str(text);
    }

    fn follow(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\n' => (self.column, self.width) = (0, 0),
                '\r' => self.column = 0,
                _ => self.column += 1,
            }
            self.width = self.width.max(self.column);
        }
    }

    fn control(&mut self, numbers: &str, kind: char, whole: &str, out: &mut String) {
        let back = numbers.parse().unwrap_or(1).max(1);
        match (kind, numbers) {
            ('G', "" | "0" | "1") => self.pass("\r", out),
            ('D', _) if back >= self.column => self.pass("\r", out),
            // From here to the end of the line, or all of it; who erases writes it anew.
            ('K', "" | "0") if self.column > 0 => {
                let spaces = " ".repeat(self.width - self.column);
                self.pass(&spaces, out);
            }
            ('K', "" | "0" | "2") => {
                if self.width > 0 {
                    out.push_str(&format!("\r{}\r", " ".repeat(self.width)));
                }
                (self.column, self.width) = (0, 0);
            }
            _ => out.push_str(whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a front end shows of a line in the end.
    fn shown(text: &str) -> String {
        let mut line: Vec<char> = Vec::new();
        let mut at = 0;
        for c in text.chars() {
            match c {
                '\r' => at = 0,
                c => {
                    line.truncate(line.len().max(at));
                    if at < line.len() {
                        line[at] = c
                    } else {
                        line.push(c)
                    }
                    at += 1;
                }
            }
        }
        line.into_iter().collect::<String>().trim_end().to_owned()
    }

    #[test]
    fn a_line_is_written_over_however_that_is_said() {
        for (text, in_the_end) in [
            ("10%\x1b[1G100%", "100%"),
            ("loading\x1b[2K\x1b[1Gdone", "done"),
            ("loading\r\x1b[2Kdone", "done"),
            ("loading\r\x1b[Kdone", "done"),
            ("loading\x1b[7Ddone\x1b[K", "done"),
            ("loading\rdone", "doneing"),
            ("a\x1b[31mb\x1b[0mc", "a\x1b[31mb\x1b[0mc"),
        ] {
            // Whatever pieces it comes in.
            for cut in (0..=text.len()).filter(|i| text.is_char_boundary(*i)) {
                let mut line = Overwriting::default();
                let out = line.take(&text[..cut]) + &line.take(&text[cut..]) + &line.end();
                assert_eq!(shown(&out), in_the_end, "{text:?} {cut}: {out:?}");
            }
        }
    }

    #[test]
    fn what_is_no_sequence_is_not_kept() {
        let mut line = Overwriting::default();
        assert_eq!(line.take("\x1b") + &line.take("c") + &line.take("\x1b]0;title"), "\x1bc\x1b]0;title");
        assert_eq!(line.take("\x1b[12"), "");
        assert_eq!(line.end(), "\x1b[12");
        let long = format!("\x1b[{}", "1;".repeat(40));
        assert_eq!(line.take(&long), long);
    }
}
