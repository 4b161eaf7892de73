//! The parts of a cell: Rust, magic lines, and commands.
use crate::eval::text::depth;
use crate::eval::text::scan::{Kind, mentions, tokens};
use std::ops::Range;
use syn::parse::Parser;
use syn::visit::Visit;
use syn::{Expr, Stmt};

/// Part of a cell, in the order they stand.
#[derive(Clone, Debug, PartialEq)]
pub enum Segment {
    Code(Range<usize>),
    Magic {
        line: Range<usize>,
        body: Option<Range<usize>>,
    },
    /// `:dep …` and its siblings, as evcxr has them.
    Command(Range<usize>),
}

/// Finds magic lines: `%name` or `!command` where a statement could begin, `%%name` for the whole cell.
pub fn segments(code: &str, known: &dyn Fn(&str) -> bool) -> Vec<Segment> {
    let indent = code.len() - code.trim_start().len();
    if code[indent..].starts_with("%%") {
        let end = code[indent..].find('\n').map_or(code.len(), |i| indent + i);
        return vec![Segment::Magic { line: indent..end, body: Some((end + 1).min(code.len())..code.len()) }];
    }
    let mut out = Vec::new();
    let mut from = 0;
    let mut at = 0;
    while at < code.len() {
        let mut end = line_end(code, at);
        let above = |name: &str| {
            let parts = out.iter().filter_map(|s| if let Segment::Code(r) = s { Some(r.clone()) } else { None });
            known(name) || parts.chain(std::iter::once(from..at)).any(|r| mentions(&code[r]).contains(name))
        };
        let line = &code[at..end];
        let command = looks_like_command(line) || calls_help(line).is_some() && !above("help");
        if command {
            end = end_of_table(code, at, end);
        }
        let line = &code[at..end];
        if (command || looks_like_magic(line) || looks_like_shell(line, &code[at..], &above))
            && statement_could_begin(&code[from..at])
        {
            if !code[from..at].trim().is_empty() {
                out.push(Segment::Code(from..at));
            }
            let line = at..code[..end].trim_end_matches('\n').len();
            out.push(if command { Segment::Command(line) } else { Segment::Magic { line, body: None } });
            from = end;
        }
        at = end;
    }
    if !code[from..].trim().is_empty() {
        out.push(Segment::Code(from..code.len()));
    }
    out
}

fn line_end(code: &str, at: usize) -> usize {
    code[at..].find('\n').map_or(code.len(), |i| at + i + 1)
}

/// Where a command ends whose first line leaves a brace open: a table may go over several lines.
fn end_of_table(code: &str, at: usize, first: usize) -> usize {
    let open = |end: usize| {
        let signs = tokens(&code[at..end]).into_iter().map(|t| match t.kind {
            Kind::Open(_) => 1,
            Kind::Close(_) => -1,
            _ => 0,
        });
        signs.sum::<i32>() > 0
    };
    let mut end = first;
    while open(end) {
        if end == code.len() {
            return first;
        }
        end = line_end(code, end);
    }
    end
}

/// `:name …`, or `?name`, as IPython asks for help; `?` alone asks for all of it.
fn looks_like_command(line: &str) -> bool {
    let asks = line.trim_start().strip_prefix('?').map(|rest| rest.trim_start_matches('?').trim_start());
    let names = |c: char| c.is_alphabetic() || matches!(c, '_' | '%' | '!');
    asks.is_some_and(|rest| rest.is_empty() || rest.starts_with(names)) || looks_like_evcxrs(line)
}

/// What a line of Python's `help(…)` asks about; `help` alone is `help()`.
fn calls_help(line: &str) -> Option<Range<usize>> {
    let call = line.trim().trim_end_matches(';').trim_end();
    let from = line.find("help")? + "help".len();
    if call == "help" {
        return Some(from..from);
    }
    let inside = call.strip_prefix("help")?.trim_start().strip_prefix('(')?.strip_suffix(')')?;
    let from = from + line[from..].find('(')? + 1;
    Some(from..from + inside.len()).filter(|at| !line[at.clone()].contains(';'))
}

/// Where in a command's line stands what it asks about: `?name`, `help(name)`.
pub fn asked(line: &str) -> Option<Range<usize>> {
    let start = line.len() - line.trim_start().len();
    let marks = line[start..].len() - line[start..].trim_start_matches('?').len();
    match marks {
        0 => calls_help(line),
        _ => Some(start + marks..line.trim_end().trim_end_matches('?').len().max(start + marks)),
    }
}

/// What a cell of nothing but `name?` asks about, as IPython has it; where it is Rust, `?` hands an error on.
pub fn asked_behind(code: &str) -> Option<&str> {
    let name = code.trim().strip_suffix('?')?.trim_end_matches('?');
    let of_names = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '!');
    (name.starts_with(|c: char| c.is_alphabetic() || c == '_') && name.chars().all(of_names)).then_some(name)
}

fn looks_like_evcxrs(line: &str) -> bool {
    line.trim_start().strip_prefix(':').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn looks_like_magic(line: &str) -> bool {
    let rest = line.strip_prefix('%');
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic()) || rest.trim().is_empty())
}

/// `!x` is the shell's unless `x` is known as a name, no command begins so, or it is Rust all of whose names are known.
fn looks_like_shell(line: &str, and_below: &str, known: &dyn Fn(&str) -> bool) -> bool {
    let Some(rest) = line.strip_prefix('!') else { return false };
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    // Alone, the line may be the beginning of a statement only.
    // `[ -f x ]` is a command, which a space follows.
    let array = rest.strip_prefix('[').is_some_and(|inside| !inside.starts_with(char::is_whitespace));
    let is_rust = |text: &str| as_rust(text, known) == Some(true);
    let parses = || as_rust(line, known).is_some() || as_rust(and_below, known).is_some();
    let arguments = || has_arguments(&rest[name.len()..], known, &parses) && !is_rust(line);
    let variable = || known(&name) && !arguments();
    !(array
        || rest.starts_with(['(', '{', '!', '*', '&', '-', '|'])
        || variable()
        || is_rust(line)
        || is_rust(and_below))
}

/// Whether a command's arguments follow, such as an option, a file or a word, and not Rust: `!df -h` and `!head data.csv` where `df` and
/// `head` are variables, too.
fn has_arguments(behind: &str, known: &dyn Fn(&str) -> bool, parses: &dyn Fn() -> bool) -> bool {
    let word = behind.trim_start();
    let apart = word.len() < behind.len();
    let name = word.trim_start_matches(['-', '/', '.', '~', '$']);
    let signs = word.len() - name.len();
    let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let operand = || known(&name) || name.starts_with(|c: char| c.is_ascii_digit());
    let rust = match signs {
        0 => name == "as",
        1 => operand() && parses(),
        _ => false,
    };
    apart && !name.is_empty() && !rust
}

/// Whether text begins with a Rust statement that no shell would understand, or none of whose names is unknown: a number, `true`, or
/// something with a call, a macro, a path, a block. `!ls -l` could be Rust, too. `None` where it does not parse.
fn as_rust(text: &str, known: &dyn Fn(&str) -> bool) -> Option<bool> {
    struct Signs<'k> {
        known: &'k dyn Fn(&str) -> bool,
        rust: bool,
        unknown: bool,
    }
    impl<'ast> Visit<'ast> for Signs<'_> {
        fn visit_expr(&mut self, e: &'ast Expr) {
            self.rust |= matches!(
                e,
                Expr::Call(_)
                    | Expr::MethodCall(_)
                    | Expr::Block(_)
                    | Expr::Unsafe(_)
                    | Expr::If(_)
                    | Expr::Match(_)
                    | Expr::Loop(_)
            );
            syn::visit::visit_expr(self, e);
        }
        fn visit_macro(&mut self, _: &'ast syn::Macro) {
            self.rust = true;
        }
        fn visit_type(&mut self, _: &'ast syn::Type) {}
        fn visit_qself(&mut self, _: &'ast syn::QSelf) {
            self.rust = true;
        }
        fn visit_path(&mut self, path: &'ast syn::Path) {
            self.rust |= path.segments.len() > 1;
            self.unknown |= path.get_ident().is_some_and(|name| !(self.known)(&name.to_string()));
        }
    }
    let statements = depth::fits(text).then(|| syn::Block::parse_within.parse_str(text).ok())??;
    let Stmt::Expr(e, _) = statements.first()? else { return None };
    let mut signs = Signs { known, rust: false, unknown: false };
    signs.visit_expr(e);
    Some(signs.rust || !signs.unknown)
}

fn statement_could_begin(before: &str) -> bool {
    let tokens = tokens(before);
    if tokens.last().is_some_and(|t| t.open_ended) {
        return false;
    }
    let mut depth = 0;
    for t in &tokens {
        match t.kind {
            Kind::Open(_) => depth += 1,
            Kind::Close(_) => depth -= 1,
            _ => {}
        }
    }
    let last = tokens.iter().rev().find(|t| t.kind != Kind::Comment);
    depth <= 0 && last.is_none_or(|t| matches!(t.kind, Kind::Punct(';') | Kind::Close('}')))
}

/// The code with all blank but these places, each byte where it was.
pub fn blank_between(code: &str, kept: impl Iterator<Item = Range<usize>>) -> String {
    let mut out = String::new();
    let blank = |out: &mut String, to: usize| {
        let blanks = code[out.len()..to].bytes().map(|b| if b == b'\n' { '\n' } else { ' ' });
        out.extend(blanks.collect::<Vec<_>>());
    };
    for range in kept {
        blank(&mut out, range.start);
        out.push_str(&code[range]);
    }
    blank(&mut out, code.len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(code: &str) -> Vec<String> {
        let show = |s: Segment| match s {
            Segment::Code(r) => format!("code {}", code[r].trim()),
            Segment::Command(r) => format!("command {}", &code[r]),
            Segment::Magic { line, body } => format!("magic {} / {}", &code[line], body.map_or("", |b| &code[b])),
        };
        segments(code, &|name| name == "flag").into_iter().map(show).collect()
    }

    #[test]
    fn magics_stand_where_statements_begin() {
        assert_eq!(parts("let a = 1;\n%time a\na"), ["code let a = 1;", "magic %time a / ", "code a"]);
        assert_eq!(parts("%%time 3\na\nb"), ["magic %%time 3 / a\nb"]);
        assert_eq!(parts(":dep a = \"1\"\nuse a::b;"), ["command :dep a = \"1\"", "code use a::b;"]);
        let table = ":dep a = {\n  version = \"1\",\n}";
        assert_eq!(parts(&format!("{table}\na::b()")), [format!("command {table}"), "code a::b()".into()]);
        assert_eq!(parts(":dep a = {\nf()"), ["command :dep a = {", "code f()"]);
        assert_eq!(parts("!ls | wc\n!flag"), ["magic !ls | wc / ", "code !flag"]);
        for rust in [
            "let file = 1;\n!file",
            "!v.is_empty()",
            "!v\n.iter()\n.any(|x| x)",
            "!0u8",
            "!a::B & c",
            "!matches!(a, 1)",
            "![true][0]",
            "!*flags",
            "!true",
            "!false || !true",
            "!true == flag",
            "!flag && data",
            "!flag as u8",
            "!true as u8",
            "!flag .not()",
            "!flag -1",
            "!flag - 1",
            "!(flag && data)",
            "!if flag { true } else { false }",
            "!match flag { x => x }",
            "!unsafe{ flag }",
            "!<u8>::MAX",
            "!-1",
            "!\"a\".is_empty()",
        ] {
            assert_eq!(parts(rust), [format!("code {rust}")]);
        }
        for shell in [
            "!ls",
            "!ls -l",
            "!a.out",
            "!cargo --version",
            "!make -j$(nproc)",
            "!echo 'f(x)'",
            "!git add -A && f",
            "!ls\n!ls -l",
            "!true | cat",
            "!true && ls",
            "!false; echo $?",
            "!true || echo no",
            "!flag -h",
            "!flag --all",
            "!flag data.csv",
            "!flag /tmp/data",
            "!flag status",
            "!flag flag",
            "!flag -flag text",
            "!flag 5",
            "!flag $HOME",
            "![ -f x ] && echo y",
        ] {
            assert!(parts(shell).iter().all(|p| p.starts_with("magic ")), "{shell}");
        }
        assert_eq!(parts("?x.len"), ["command ?x.len"]);
        assert_eq!(parts("help(x.len)\nx"), ["command help(x.len)", "code x"]);
        assert_eq!(parts("let x = 1;\nhelp\n?"), ["code let x = 1;", "command help", "command ?"]);
        assert_eq!(parts("let help = 1;\nhelp"), ["code let help = 1;\nhelp"]);
        assert_eq!(parts("read()\n?"), ["code read()\n?"]);
        assert_eq!(parts("fn help(n: i32) {}\nhelp(3)"), ["code fn help(n: i32) {}\nhelp(3)"]);
        assert_eq!(parts("f(\nhelp(3)\n)"), ["code f(\nhelp(3)\n)"]);
        let text = |line: &str| asked(line).map(|at| line[at].to_owned());
        assert_eq!(text(" ??x.len ?").as_deref(), Some("x.len "));
        assert_eq!(text("help ( x.len );").as_deref(), Some(" x.len "));
        assert_eq!(text("?"), Some(String::new()));
        assert_eq!(text(":dep a"), None);
        assert_eq!(asked_behind(" t.relu?? "), Some("t.relu"));
        assert_eq!(asked_behind("f(x)?"), None);
        assert_eq!(parts("let x = a\n% b;"), ["code let x = a\n% b;"]);
        assert_eq!(parts("let s = \"\n%time\n\";"), ["code let s = \"\n%time\n\";"]);
        assert_eq!(parts("f(\n!flag_2,\n)"), ["code f(\n!flag_2,\n)"]);
    }
}
