//! How deep a text is nested. What takes Rust apart recurses as deep as the text goes, so that is measured first, token by
//! token, and the work is done on a stack that is large enough for all that is let in.
use super::scan::{Kind, Token, tokens};
use std::cell::Cell;
use std::fmt;
use std::ops::{Add, Range};
use std::thread::{Builder, scope};

/// What of it lies around the innermost part, and around the end of the longest chain.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Height {
    /// Delimiters, closures, references, types in types: what a parser recurses for.
    levels: usize,
    /// `+`, `.method()`, `?`, `else if`: what is parsed in a loop, and makes a deep tree all the same.
    links: usize,
}

/// Stack per level and per link, more than any construct takes in a build without optimisation.
const LEVEL: usize = 128 << 10;
const LINK: usize = 16 << 10;
/// The stack for the deepest text that is let in: rustc, with as much, compiles most of what is as deep.
pub const MOST: usize = 256 << 20;
/// Where the machine refuses that much, this does for what people write.
const LITTLE: usize = 16 << 20;
/// What lies below the text's own levels: macros that call macros, and everything around them.
const AROUND: usize = 8 << 20;

thread_local! {
    /// For how much text there is stack here; at first, what every thread has.
    static ROOM: Cell<usize> = const { Cell::new(1 << 20) };
}

impl Height {
    const ONE_LEVEL: Height = Height { levels: 1, links: 0 };
    const ONE_LINK: Height = Height { levels: 0, links: 1 };

    fn stack(self) -> usize {
        self.levels * LEVEL + self.links * LINK
    }

    fn max(self, other: Height) -> Height {
        if other.stack() > self.stack() { other } else { self }
    }
}

impl Add for Height {
    type Output = Height;

    fn add(self, other: Height) -> Height {
        Height { levels: self.levels + other.levels, links: self.links + other.links }
    }
}

/// Text that is nested deeper than anything here takes apart.
#[derive(Clone, Debug, PartialEq)]
pub struct TooDeep {
    height: Height,
    /// Where too much begins.
    pub at: Range<usize>,
}

impl TooDeep {
    /// The same in a text of which this is a part, behind so much.
    pub fn further(self, by: usize) -> TooDeep {
        TooDeep { at: self.at.start + by..self.at.end + by, ..self }
    }

    /// What to do about it, to stand below the place.
    pub const ADVICE: &str = "give a part of it a name: a variable, a function, a type";
}

impl fmt::Display for TooDeep {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Height { levels, links } = self.height;
        match levels * LEVEL > links * LINK {
            true => write!(f, "this is nested {levels} levels deep; {} are the most", MOST / LEVEL),
            false => write!(f, "this is a chain of {links} operators and calls; {} are the most", MOST / LINK),
        }
    }
}

/// How deep a text is nested.
pub struct Depth {
    height: Height,
    /// What begins here is the first that is too deep, or else the deepest.
    at: Range<usize>,
}

impl Depth {
    pub fn of(text: &str) -> Depth {
        Measure::new(text).all()
    }

    pub fn let_in(&self) -> Result<(), TooDeep> {
        match self.height.stack() > MOST {
            true => Err(TooDeep { height: self.height, at: self.at.clone() }),
            false => Ok(()),
        }
    }

    /// How much stack is set apart for it.
    pub fn stack(&self) -> usize {
        self.height.stack()
    }

    /// Deeper than what people write.
    pub fn is_deep(&self) -> bool {
        self.height.stack() > LITTLE / 2
    }

    /// What is deepest in a text that was let in, and too deep for somebody else.
    pub fn deepest(self) -> (String, Range<usize>) {
        let Height { levels, links } = self.height;
        let what = match levels * LEVEL > links * LINK {
            true => format!("it is nested {levels} levels deep"),
            false => format!("it is a chain of {links} operators and calls"),
        };
        (what, self.at)
    }

    /// Takes the text apart, on a stack that is large enough for it and what its macros make; an error is the machine's.
    pub fn apart<T: Send>(&self, work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
        let mut work = Some(work);
        let first = with_room(MOST, &mut work);
        first.or_else(|e| if self.height.stack() <= LITTLE { with_room(LITTLE, &mut work) } else { Err(e) })
    }
}

/// Work on a stack of that much.
fn with_room<T: Send>(room: usize, work: &mut Option<impl FnOnce() -> T + Send>) -> std::io::Result<T> {
    scope(|threads| {
        let thread = Builder::new().name("xlazy-parse".into()).stack_size(room + AROUND);
        let thread = thread.spawn_scoped(threads, || {
            ROOM.set(room);
            work.take().map(|work| work())
        })?;
        match thread.join() {
            Ok(done) => Ok(done.expect("work that was not begun")),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// What asks itself whether a text fits, where there is stack for all that people write; for deeper text there is none.
pub fn as_people_write<T: Send>(text: &str, work: impl Fn() -> T + Send + Sync) -> T {
    match Depth::of(text).height.stack() <= LITTLE {
        true => with_room(LITTLE, &mut Some(&work)).unwrap_or_else(|_| work()),
        false => work(),
    }
}

/// Whether there is stack for this text here, too, which was not in the measured text as it is: a macro made it.
pub fn fits(text: &str) -> bool {
    Depth::of(text).height.stack() <= ROOM.get()
}

/// The same for the argument of a macro, of which only the delimiters count.
pub fn fits_as_argument(text: &str) -> bool {
    let mut measure = Measure::new(text);
    measure.group.is_argument = true;
    measure.all().height.stack() <= ROOM.get()
}

/// Words behind which an operand begins rather than ends.
const KEYWORDS: &[&str] = &[
    "as", "async", "become", "break", "const", "dyn", "else", "enum", "extern", "fn", "for", "if", "impl", "in", "let",
    "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "static", "struct", "trait", "type", "union",
    "unsafe", "use", "where", "while", "yield",
];

/// Those that a whole expression may follow, without a delimiter around it.
const RECURSING: &[&str] = &["become", "break", "for", "if", "match", "return", "while", "yield"];

/// Operators of several characters.
const JOINED: &[&str] = &[
    "<<=", ">>=", "...", "..=", "::", "->", "=>", "==", "!=", "<=", ">=", "&&", "||", "+=", "-=", "*=", "/=", "%=",
    "^=", "&=", "|=", "<<", ">>", "..",
];

/// What is inside a pair of delimiters, or the whole text.
#[derive(Default)]
struct Group {
    /// The argument of a macro: tokens, which nothing recurses over but for their delimiters.
    is_argument: bool,
    /// Where what is looked at begins: a statement, an element.
    start: usize,
    /// What it is besides its deepest group, and that.
    own: Height,
    inner: Height,
    /// The highest of those before it.
    highest: Height,
    /// Angles that are open: the commas in them end nothing.
    angles: usize,
    /// The same for the parameters of a closure.
    pipes: bool,
    /// The token before ends an operand: what follows is a binary operator.
    operand: bool,
    before: Before,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Before {
    #[default]
    Other,
    Name,
    /// `name!`, and with `macro_rules!` a name behind it.
    Macro,
    Else,
    Angle,
    Brace,
}

struct Measure<'a> {
    text: &'a str,
    around: Vec<Group>,
    group: Group,
    /// The highest so far, and where it begins.
    found: Height,
    at: usize,
}

impl<'a> Measure<'a> {
    fn new(text: &'a str) -> Measure<'a> {
        let (around, group, found) = Default::default();
        Measure { text, around, group, found, at: 0 }
    }

    fn all(mut self) -> Depth {
        let mut rest = tokens(self.text).into_iter().filter(|t| t.kind != Kind::Comment).peekable();
        while let Some(token) = rest.next() {
            let start = token.range.start;
            match token.kind {
                Kind::Punct(_) if !self.group.is_argument => {
                    let from = &self.text[start..];
                    let alone = rest.peek().is_none_or(|t| t.range.start > start + 1);
                    let joined = JOINED.iter().find(|o| !alone && from.starts_with(**o));
                    let operator = joined.copied().unwrap_or(&self.text[token.range]);
                    while rest.next_if(|t| t.range.start < start + operator.len()).is_some() {}
                    let opens = rest.peek().is_some_and(|t| matches!(t.kind, Kind::Open(_) | Kind::Ident));
                    self.operator(operator, start, opens);
                }
                _ => self.token(&token),
            }
        }
        while !self.around.is_empty() {
            self.close();
        }
        self.end(self.text.len());
        let at = self.text.floor_char_boundary(self.at.min(self.text.len()));
        let at = self.text.len() - self.text[at..].trim_start().len();
        Depth { height: self.found, at: at..at + self.text[at..].chars().next().map_or(0, char::len_utf8) }
    }

    fn token(&mut self, token: &Token) {
        let group = &mut self.group;
        let behind_a_block = std::mem::take(&mut group.before);
        match token.kind {
            Kind::Open(c) => {
                let is_argument = group.is_argument || behind_a_block == Before::Macro;
                // An index or a call.
                if c != '{' && group.operand && !is_argument {
                    group.own = group.own + Height::ONE_LINK;
                }
                let inside = Group { is_argument, start: token.range.end, ..Group::default() };
                self.around.push(std::mem::replace(&mut self.group, inside));
            }
            // One that closes nothing is not Rust; it lies around nothing, either.
            Kind::Close(_) if self.around.is_empty() => {}
            Kind::Close(c) => {
                self.close();
                self.group.operand = true;
                self.group.before = if c == '}' { Before::Brace } else { Before::Other };
            }
            _ if group.is_argument => {}
            Kind::Ident => {
                let word = &self.text[token.range.clone()];
                if behind_a_block == Before::Brace && !matches!(word, "else" | "as" | "in") {
                    self.end(token.range.start);
                }
                let group = &mut self.group;
                let is_keyword = KEYWORDS.contains(&word);
                group.operand = !is_keyword;
                group.before = match word {
                    "else" => Before::Else,
                    _ if behind_a_block == Before::Macro => Before::Macro,
                    _ if is_keyword => Before::Other,
                    _ => Before::Name,
                };
                let is_else_if = word == "if" && behind_a_block == Before::Else;
                match word {
                    "else" | "as" => group.own = group.own + Height::ONE_LINK,
                    _ if RECURSING.contains(&word) && !is_else_if => group.own = group.own + Height::ONE_LEVEL,
                    _ => {}
                }
            }
            Kind::Lifetime => {
                if behind_a_block == Before::Brace {
                    self.end(token.range.start);
                }
                self.group.operand = false;
            }
            Kind::Number | Kind::Literal => group.operand = true,
            Kind::Comment | Kind::Punct(_) => {}
        }
    }

    fn operator(&mut self, operator: &str, at: usize, opens: bool) {
        let before = std::mem::take(&mut self.group.before);
        let group = &mut self.group;
        let is_binary = std::mem::replace(&mut group.operand, false);
        let level = match operator {
            ";" => return self.end(at + 1),
            "," => {
                if group.angles == 0 && !group.pipes {
                    self.end(at + 1);
                }
                return;
            }
            "#" => {
                if before == Before::Brace {
                    self.end(at);
                }
                return;
            }
            "!" if before == Before::Name && opens => {
                group.before = Before::Macro;
                return;
            }
            "?" => {
                group.operand = true;
                group.own = group.own + Height::ONE_LINK;
                return;
            }
            ">" | ">>" | ">=" | ">>=" => {
                group.angles = group.angles.saturating_sub(operator.matches('>').count());
                group.operand = !operator.ends_with('=');
                group.before = Before::Angle;
                operator == ">>="
            }
            "<" | "<<" => {
                group.angles += operator.len();
                group.own = if operator == "<<" { group.own + Height::ONE_LEVEL } else { group.own };
                true
            }
            "|" if group.pipes => {
                group.pipes = false;
                false
            }
            // Behind an angle may stand a closure: `for<'a> |x: &'a u8| …`.
            "|" if !is_binary || before == Before::Angle => {
                group.pipes = true;
                true
            }
            "||" => !is_binary || before == Before::Angle,
            "&" | "&&" | "*" | "-" | "!" => !is_binary,
            "=" | ":" | "@" | "->" | "=>" | ".." | "..=" | "..." => true,
            "==" | "!=" | "<=" => false,
            other => other.len() > 1 && other.ends_with('='),
        };
        let group = &mut self.group;
        group.own = group.own + if level { Height::ONE_LEVEL } else { Height::ONE_LINK };
    }

    /// The statement or element that was looked at ends, and another begins.
    fn end(&mut self, next: usize) {
        let group = &mut self.group;
        let height = group.own + group.inner;
        group.highest = group.highest.max(height);
        // The first that is too deep stays: what it lies in is no less, and says less.
        if height.stack() > self.found.stack() {
            if self.found.stack() <= MOST {
                self.at = group.start;
            }
            self.found = height;
        }
        (group.own, group.inner, group.angles, group.pipes) = Default::default();
        group.start = next;
    }

    fn close(&mut self) {
        self.end(0);
        let Some(outer) = self.around.pop() else { return };
        let inner = std::mem::replace(&mut self.group, outer);
        // Of a macro's argument there is no tree but that of its delimiters.
        let delimiters = if inner.is_argument { Height::ONE_LINK } else { Height::ONE_LEVEL };
        self.group.inner = self.group.inner.max(inner.highest + delimiters);
    }
}
