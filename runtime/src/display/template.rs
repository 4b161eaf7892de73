//! What the runtime's own macros make of their entries, read from the text as rustfmt writes it: names, signatures, fields.

/// What a macro makes of each of its documented entries.
#[derive(Clone)]
pub(super) struct Template {
    pub macro_name: String,
    pub kind: &'static str,
    /// What follows the name: `(&self) -> Tensor`; of a variant, its type.
    pub rest: String,
    /// Of a type, the word for its name and all that is written with it: its fields, its `impl`s.
    pub with: Option<(String, String)>,
}

impl Template {
    /// What is written for the entry at the head of these lines: the body of a type in the entry's own words.
    pub(super) fn written(&self, entry: &[&str]) -> Option<String> {
        let (name, body) = self.with.as_ref()?;
        let mut out = body.clone();
        if let Some(words) = field_words(body) {
            out = repeated(&out, &words, &fields(entry));
        }
        if let Some((called, given)) = closure_words(body).zip(closure_words(&entry.join("\n"))) {
            let (last, ones) = called.split_last().map_or((None, &called[..]), |(l, ones)| (Some(l), ones));
            let many = last.and_then(|l| l.strip_prefix("$(")?.strip_suffix(":ident)")).map(str::to_owned);
            let rest = given.iter().skip(ones.len()).map(|word| vec![word.clone()]).collect::<Vec<_>>();
            out = many.map_or(out.clone(), |word| repeated(&out, &[word], &rest));
        }
        Some(with_words(&out, name, &entry.join("\n")))
    }
}

/// A macro's body with what it repeats for each of these rows, in which it calls them by these words.
fn repeated(body: &str, words: &[String], rows: &[Vec<String>]) -> String {
    let Some(name) = words.first() else { return body.to_owned() };
    let mut out = String::new();
    let mut rest = body;
    while let Some(at) = rest.find("$(") {
        let (before, group) = rest.split_at(at);
        let end = closing(&group[1..]).map(|end| end + 1);
        let inside = end.map(|end| &group[2..end]).filter(|i| put(i, name, "") != *i && !i.contains("$("));
        let (Some(end), Some(inside)) = (end, inside) else {
            out.push_str(&rest[..at + 2]);
            rest = &group[2..];
            continue;
        };
        out.push_str(before);
        let indent = " ".repeat(before.len() - before.trim_end_matches(' ').len());
        let in_a_list = group[end + 1..].starts_with(",*");
        for (i, row) in rows.iter().enumerate() {
            let one = words.iter().zip(row).fold(inside.to_owned(), |text, (word, value)| put(&text, word, value));
            if in_a_list {
                out.push_str(if i == 0 { "" } else { ", " });
                out.push_str(&one);
                continue;
            }
            // What stands on lines of its own stands one level deeper than what it becomes.
            out.push_str(&one.replace("\n    ", "\n"));
            out.push('\n');
            out.push_str(&indent);
        }
        rest = group[end + 1..].trim_start_matches([',', '*']);
    }
    out + rest
}

/// A text with a value in place of a macro's word, `$d` but not the head of `$default`.
fn put(text: &str, word: &str, value: &str) -> String {
    let mut parts = text.split(word);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(if ident(part).is_empty() { value } else { word });
        out.push_str(part);
    }
    out
}

/// A macro's body with the words that an entry begins with in place of those that it calls them by: `$name:ident, $state:ty`.
fn with_words(body: &str, name: &str, entry: &str) -> String {
    let (_, pattern) = body.split_once(&format!("{name}:ident")).unwrap_or_default();
    let called = head(pattern).into_iter().skip(1);
    let called = called.map(|part| part.split_once(':').map_or(String::new(), |(word, _)| word.to_owned()));
    let given = head(entry).into_iter().enumerate().map(|(i, g)| if i == 0 { ident(&g) } else { g });
    let words = std::iter::once(name.to_owned()).chain(called).zip(given);
    let plain = words.filter(|(called, _)| called.strip_prefix('$').is_some_and(|w| ident(w).len() == w.len()));
    plain.fold(body.to_owned(), |body, (called, word)| put(&body, &called, &word))
}

/// What an entry or its pattern lists before anything else, by its commas.
fn head(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0i32);
    for c in text.chars() {
        depth += i32::from("([".contains(c)) - i32::from(")]".contains(c));
        match c {
            ';' | '{' | '=' if depth == 0 => break,
            ',' if depth == 0 => parts.push(String::new()),
            _ if depth < 0 => break,
            _ => parts.last_mut().into_iter().for_each(|part| part.push(c)),
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

/// The parameters of the closure that an entry, or its pattern, leads to: `=> |m, x| …`.
fn closure_words(text: &str) -> Option<Vec<String>> {
    let (_, rest) = text.split_once("=> |")?;
    Some(rest.split_once('|')?.0.split(", ").map(|word| word.trim_end_matches(",*").to_owned()).collect())
}

/// How a macro calls the fields that it is given with their types, `$($field:ident: $t:ty`, and with what is taken for them, where
/// that follows: `$t:ty as $arg:ty`.
fn field_words(body: &str) -> Option<Vec<String>> {
    let (before, after) = body.split_once(":ident: $")?;
    let name = before.rsplit('$').next()?;
    let ty = ident(after);
    let rest = after[ty.len()..].strip_prefix(":ty")?;
    let taken = rest.strip_prefix(" as $").map(ident);
    Some([name.to_owned(), ty].into_iter().chain(taken).map(|word| format!("${word}")).collect())
}

/// Where the bracket that a text begins with is closed.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0i32;
    text.char_indices().find_map(|(at, c)| {
        depth += i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
        (depth == 0).then_some(at)
    })
}

/// The fields that an entry lists in braces, with their types and with what is taken for them.
fn fields(entry: &[&str]) -> Vec<Vec<String>> {
    let text = entry.join("\n");
    let head = text.split("=>").next().unwrap_or_default();
    let Some(open) = head.find('{').filter(|at| !head[..*at].contains(';')) else { return vec![] };
    let list = closing(&text[open..]).map_or("", |end| &text[open + 1..open + end]);
    let (mut parts, mut depth) = (vec![String::new()], 0i32);
    for c in list.chars() {
        depth += i32::from("([{<".contains(c)) - i32::from(")]}>".contains(c));
        match parts.last_mut() {
            Some(part) if c != ',' || depth > 0 => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    let field = |part: String| {
        let (name, rest) = part.split_once(": ")?;
        let ty = rest.split(" = ").next().unwrap_or(rest).trim();
        let (ty, taken) = ty.split_once(" as ").unwrap_or((ty, ty));
        Some([name.trim(), ty, taken].map(str::to_owned).to_vec())
    };
    parts.into_iter().filter_map(field).collect()
}

/// A signature that may go over several lines, on one.
pub(super) fn signature(first: &str, following: &[&str]) -> String {
    let mut out = String::new();
    for line in std::iter::once(&first).chain(following) {
        let line = line.trim();
        if !out.is_empty() && !out.ends_with('(') {
            out.push(' ');
        }
        let done = line.ends_with('{') || line.ends_with(';') || line.ends_with('}');
        out.push_str(line.split('{').next().unwrap_or(line).trim_end_matches(';').trim_end());
        if done {
            break;
        }
    }
    out.replace(", )", ")")
}

/// A method's signature in a macro's words, with the lifetime and the arguments that an entry says.
pub(super) fn with_arguments(name: &str, rest: &str, entry: &str) -> String {
    let (head, said) = entry.split_once('(').unwrap_or_default();
    let said = said.rsplit_once(") =>").filter(|s| !s.0.is_empty()).map_or(String::new(), |s| format!(", {}", s.0));
    let life = head.find('<').map_or("", |at| &head[at..]);
    let rest = rest.replace(", $($arg: $ty),*", &said).replace("$(<$life>)?", life);
    if rest.is_empty() { rest } else { format!("{name}{rest}") }
}

/// What the macros of a file write for each entry: they are called in other files, too.
pub(super) fn templates(text: &str) -> Vec<Template> {
    let lines: Vec<&str> = text.lines().collect();
    let macros = lines.iter().enumerate().filter_map(|(at, l)| Some((at + 1, l.strip_prefix("macro_rules! ")?)));
    let body = |at: usize| &lines[at..at + lines[at..].iter().position(|l| *l == "}").unwrap_or(0)];
    macros.filter_map(|(at, name)| template(&ident(name), body(at))).collect()
}

/// What a macro writes for each entry: the first public function or type in it whose name is the entry's, or an enum's variant.
pub(super) fn template(macro_name: &str, body: &[&str]) -> Option<Template> {
    for (i, line) in body.iter().enumerate() {
        let line = line.trim_start().trim_start_matches("$(");
        if let Some(rest) = line.strip_prefix("pub enum ").filter(|r| r.starts_with(char::is_uppercase)) {
            return Some(Template {
                macro_name: macro_name.to_owned(),
                kind: "variant",
                rest: ident(rest),
                with: None,
            });
        }
        for kind in ["fn", "struct"] {
            let Some((before, rest)) = line.split_once(&format!("{kind} $")) else { continue };
            if !matches!(before.trim(), "pub" | "$vis") {
                continue;
            }
            let name = ident(rest);
            return Some(match kind {
                "fn" => {
                    let rest = signature(rest, &body[i + 1..])[name.len()..].to_owned();
                    Template { macro_name: macro_name.to_owned(), kind: "method", rest, with: None }
                }
                _ => {
                    let indent = body[i].len() - body[i].trim_start().len();
                    let lines: Vec<&str> = body.iter().map(|l| l.get(indent..).unwrap_or(l.trim_start())).collect();
                    let with = Some((format!("${name}"), lines.join("\n")));
                    Template { macro_name: macro_name.to_owned(), kind: "struct", rest: String::new(), with }
                }
            });
        }
    }
    None
}

pub(super) fn ident(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}
