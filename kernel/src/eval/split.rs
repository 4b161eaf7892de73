//! A cell taken apart: magic lines, items, statements, bindings, the last expression, and where checks belong.
use super::checks::{Awaits, Checks, Condition, FnValue, included};
use super::depth::{Depth, TooDeep};
pub use super::items::Item;
use super::items::{Space, items_of_a_macro, persistent_item};
pub use super::macros::{Expanded, Macro, made_by};
use super::macros::{Made, known};
use super::moves::{Given, Moves};
use super::scan::{self, Kind, tokens};
use super::source::{CellText, Edit, Tag};
use proc_macro2::Span;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Expr, Pat, Stmt};

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
/// `!x` is Rust when `x` is known as a name.
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
        let end = code[at..].find('\n').map_or(code.len(), |i| at + i + 1);
        let command = looks_like_command(&code[at..end]);
        if (command || looks_like_magic(&code[at..end], known)) && statement_could_begin(&code[from..at]) {
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

fn looks_like_command(line: &str) -> bool {
    line.trim_start().strip_prefix(':').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn looks_like_magic(line: &str, known: &dyn Fn(&str) -> bool) -> bool {
    if let Some(rest) = line.strip_prefix('%') {
        return rest.starts_with(|c: char| c.is_alphabetic()) || rest.trim().is_empty();
    }
    let Some(rest) = line.strip_prefix('!') else { return false };
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    !(name == "matches" || rest.starts_with(['(', '{', '!']) || known(&name))
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

/// A `use` declaration, or one leaf of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Use {
    /// The name it binds; the path itself for a glob or an `as _`.
    pub binds: String,
    /// As it is repeated in later cells, with attributes left out.
    pub text: String,
    /// Where it meets an item of that name, what it imports: a type, a value, or both. Only rustc knows.
    pub space: Space,
}

impl Use {
    /// Whether it takes the place of this item, or the item its.
    pub fn meets(&self, item: &Item) -> bool {
        self.space.meets(item.space) && item.names.contains(&self.binds)
    }
}

/// A variable that the cell declares.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    pub name: String,
    /// The arguments' types as they are written (`_` where none is), when it is bound to a closure written in place.
    pub closure: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default)]
pub struct Parsed {
    pub items: Vec<Item>,
    pub uses: Vec<Use>,
    pub use_ranges: Vec<Range<usize>>,
    pub macros: Vec<Macro>,
    /// Calls of macros that make items.
    pub calls: Vec<Expanded>,
    /// Why it is not compiled at all: where, what to say, and what to write below it.
    pub refusal: Option<(Range<usize>, String, String)>,
    pub inner_attributes: Vec<Range<usize>>,
    pub bindings: Vec<Binding>,
    /// Names that the cell declares before it mentions them otherwise: what they were before does not matter.
    pub rebound: BTreeSet<String>,
    pub trailing: Option<Range<usize>>,
    /// Where each statement begins.
    pub statements: Vec<usize>,
    /// All that the statements do is to name variables: they show, and change nothing.
    pub only_shows: bool,
    pub has_statements: bool,
    /// Interrupt checks in the statements.
    pub edits: Vec<Edit>,
    /// Functions that the statements name without calling them, as in `.map(Tensor::relu)`.
    pub values: Vec<FnValue>,
    /// What the statements decide by.
    pub conditions: Vec<Condition>,
    /// Names that the statements mention.
    pub mentions: BTreeSet<String>,
    /// Names used bare where a value is moved, and never bound in the cell; and whether only as a method's receiver.
    pub moved: BTreeMap<String, bool>,
    /// Where variables are declared without `mut`.
    pub immutable: Vec<usize>,
    /// Where the cell ends early: each `return`.
    pub returns: Vec<Range<usize>>,
    /// Every place where a name stands alone and its value is taken.
    pub taken: Vec<(String, Range<usize>)>,
    /// Closures that take what they mention with them, and what that is.
    pub captures: Vec<(Range<usize>, BTreeSet<String>)>,
    /// Variables of the cell whose last mention hands them to a function.
    pub given: Vec<Given>,
    /// Macros whose calls were expanded.
    pub(super) called: BTreeSet<String>,
    /// How much they made: a macro may call itself without end.
    pub(super) expanded: usize,
    /// For what a macro made: the call, and how many macros deep.
    pub(super) within: Option<(Arc<CellText>, Range<usize>, usize)>,
}

/// Why there is nothing to show for a text.
#[derive(Debug)]
pub enum Unparsed {
    /// For rustc to explain.
    Syntax(syn::Error),
    TooDeep(TooDeep),
    /// The machine refuses.
    NoRoom(std::io::Error),
}

impl fmt::Display for Unparsed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Unparsed::Syntax(e) => e.fmt(f),
            Unparsed::TooDeep(e) => write!(f, "{e}: {}", TooDeep::ADVICE),
            Unparsed::NoRoom(e) => e.fmt(f),
        }
    }
}

/// Parses part of a cell, with the macros there are.
pub fn parse(cell: &Arc<CellText>, range: Range<usize>, macros: &[Macro]) -> Result<Parsed, Unparsed> {
    let depth = Depth::of(&cell.text[range.clone()]);
    depth.let_in().map_err(|e| Unparsed::TooDeep(e.further(range.start)))?;
    let parsed = depth.apart(|| taken_apart(cell, range, macros)).map_err(Unparsed::NoRoom)?;
    parsed.map_err(Unparsed::Syntax)
}

fn taken_apart(cell: &Arc<CellText>, range: Range<usize>, macros: &[Macro]) -> syn::Result<Parsed> {
    let text = &cell.text[range.clone()];
    let parser = |input: ParseStream| {
        let attributes = input.call(syn::Attribute::parse_inner)?;
        Ok((attributes, input.call(syn::Block::parse_within)?))
    };
    parser.parse_str(text).map(|(attributes, statements)| {
        let base = range.start;
        let mut out = Parsed { only_shows: true, ..Parsed::default() };
        out.inner_attributes.extend(attributes.iter().map(|a| bytes(a.span(), base)));
        let count = statements.len();
        let mut mentioned = BTreeSet::new();
        for (i, statement) in statements.iter().enumerate() {
            let at = bytes(statement.span(), base);
            out.rebind(statement, &mentioned, &cell.text, base);
            mentioned.append(&mut scan::mentions(&cell.text[at]));
            out.add(cell, base, statement, macros, i + 1 == count);
        }
        out.finish(cell, range);
        out
    })
}

/// The cell with a semicolon at its end, where that is all that is missing: people leave it out behind a last `let`.
pub fn ended(cell: &Arc<CellText>, range: Range<usize>) -> (Arc<CellText>, Range<usize>) {
    if range.end == cell.text.len() && matches!(parse(cell, range.clone(), &[]), Err(Unparsed::Syntax(_))) {
        // on a line of its own, since the cell may end in a comment
        let text = format!("{}\n;", cell.text);
        let (whole, longer) = (range.start..text.len(), Arc::new(CellText::new(cell.cell, text)));
        if parse(&longer, whole.clone(), &[]).is_ok() {
            return (longer, whole);
        }
    }
    (cell.clone(), range)
}

pub(super) fn bytes(span: Span, base: usize) -> Range<usize> {
    let r = span.byte_range();
    r.start + base..r.end + base
}

impl Parsed {
    pub(super) fn add(&mut self, cell: &Arc<CellText>, base: usize, statement: &Stmt, macros: &[Macro], last: bool) {
        if let Stmt::Macro(call) = statement
            && let Some(item) = items_of_a_macro(cell, base, call)
        {
            self.items.push(item);
            return;
        }
        let call = match statement {
            Stmt::Macro(call) => Some(&call.mac),
            Stmt::Expr(Expr::Macro(call), None) => Some(&call.mac),
            _ => None,
        };
        let before = self.items.len();
        let made = call.and_then(|call| self.expand(cell, base, call, bytes(statement.span(), base), macros));
        if matches!(made, Some(Made::Items)) {
            if let Stmt::Macro(call) = statement {
                for attribute in call.attrs.iter().filter(|a| a.path().is_ident("cfg")) {
                    let text = &cell.text[bytes(attribute.span(), base)];
                    self.items[before..].iter_mut().for_each(|i| i.only_where(text));
                }
            }
            return;
        }
        match statement {
            Stmt::Item(syn::Item::Use(u)) => {
                self.use_ranges.push(bytes(u.span(), base));
                let root = if u.leading_colon.is_some() { "::" } else { "" };
                flatten_use(&u.tree, root, &mut self.uses);
            }
            Stmt::Item(syn::Item::Macro(m)) if m.ident.is_some() => {
                let range = bytes(m.span(), base);
                let name = m.ident.as_ref().map(|i| i.to_string()).unwrap_or_default();
                let text = &cell.text[range.clone()];
                let (text, mentions) = (one_line(text), scan::mentions(text));
                self.macros.push(Macro { name, text, mentions, source: cell.clone(), range });
            }
            Stmt::Item(item) => {
                self.add_macros_of(cell, base, item);
                let known = |name: &str| known(&self.macros, macros, name);
                self.items.extend(persistent_item(cell, base, item, &known));
            }
            other => {
                self.has_statements = true;
                self.statements.push(bytes(other.span(), base).start);
                self.only_shows &= matches!(other, Stmt::Expr(Expr::Path(_), _));
                if let Stmt::Local(local) = other {
                    let mut names = Names::default();
                    names.visit_pat(&local.pat);
                    self.immutable.extend(names.immutable.iter().map(|span| bytes(*span, base).start));
                    let closure = closure_arguments(local, cell, base);
                    let binding = |i: &syn::Ident| Binding { name: i.to_string(), closure: closure.clone() };
                    let bound = bound_names(local);
                    let visible = bound.iter().filter(|i| self.is_written(cell, bytes(i.span(), base).start));
                    for b in visible.map(binding).collect::<Vec<_>>() {
                        self.bindings.retain(|x| x.name != b.name);
                        self.bindings.push(b);
                    }
                }
                let mut checks = Checks::new(base);
                checks.visit_stmt(other);
                self.edits.append(&mut checks.edits);
                self.edits.extend(included(&cell.text, bytes(other.span(), base)));
                self.values.append(&mut checks.values);
                self.conditions.append(&mut checks.conditions);
                Awaits { base, edits: &mut self.edits, returns: &mut self.returns }.visit_stmt(other);
                let Moves { used, bound, .. } = Moves::of(other);
                self.taken.extend(used.iter().map(|u| (u.name.clone(), u.at(base))));
                self.captures.append(&mut checks.captures);
                // A name that the statement binds, too, may be another variable.
                let used = || used.iter().filter(|u| !bound.contains(&u.name));
                let surely = used().filter(|u| u.surely);
                surely.for_each(|u| *self.moved.entry(u.name.clone()).or_insert(true) &= u.receiver);
                self.given.extend(used().filter_map(|u| u.given(bytes(other.span(), base))));
                self.trailing = match other {
                    _ if matches!(made, Some(Made::Statements)) => None,
                    // The end of somebody's `main`.
                    Stmt::Expr(e, None) if last && is_ok_of_nothing(e) => {
                        self.edits.push(Edit::replace(bytes(e.span(), base), "").tagged(Tag::Program));
                        None
                    }
                    Stmt::Expr(e, None) if last && shows_something(e) => Some(bytes(e.span(), base)),
                    Stmt::Macro(m) if last && m.semi_token.is_none() && !prints(&m.mac) => Some(bytes(m.span(), base)),
                    _ => None,
                };
            }
        }
    }

    fn rebind(&mut self, statement: &Stmt, mentioned: &BTreeSet<String>, text: &str, base: usize) {
        let Stmt::Local(local) = statement else { return };
        let right_hand_side = local.init.as_ref().map(|i| {
            let end = i.diverge.as_ref().map_or(bytes(i.expr.span(), base).end, |d| bytes(d.1.span(), base).end);
            scan::mentions(&text[bytes(i.expr.span(), base).start..end])
        });
        let right_hand_side = right_hand_side.unwrap_or_default();
        let fresh = |n: &String| !mentioned.contains(n) && !right_hand_side.contains(n);
        self.rebound.extend(bound_names(local).iter().map(syn::Ident::to_string).filter(fresh));
    }

    fn finish(&mut self, cell: &Arc<CellText>, range: Range<usize>) {
        self.edits.sort_by_key(|e| e.range.start);
        let bound: BTreeSet<String> = self.bindings.iter().map(|b| b.name.clone()).collect();
        self.moved.retain(|n, _| !bound.contains(n));
        let later = |g: &Given| scan::mentions(&cell.text[g.statement.end..range.end]).contains(&g.name);
        self.given.retain(|g| bound.contains(&g.name) && !later(g));
        let mut text = String::new();
        let mut from = range.start;
        let mut taken: Vec<_> = self.items.iter().map(|i| i.in_cell().1).collect();
        taken.extend(self.macros_in(cell).map(|m| m.range.clone()));
        taken.extend(self.calls.iter().map(|c| c.call.range.clone()));
        taken.sort_by_key(|r| r.start);
        for r in taken {
            text.push_str(cell.text.get(from..r.start).unwrap_or_default());
            from = r.end;
        }
        text.push_str(&cell.text[from..range.end]);
        self.mentions = scan::mentions(&text);
    }
}

fn prints(mac: &syn::Macro) -> bool {
    let name = mac.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
    matches!(
        name.as_str(),
        "print" | "println" | "eprint" | "eprintln" | "write" | "assert" | "assert_eq" | "assert_ne"
    ) && name != "write"
}

/// `Ok(())`, with or without the types of a `Result`.
fn is_ok_of_nothing(e: &Expr) -> bool {
    let Expr::Call(call) = e else { return false };
    let ok = matches!(&*call.func, Expr::Path(p) if p.path.segments.last().is_some_and(|s| s.ident == "Ok"));
    ok && call.args.len() == 1 && matches!(&call.args[0], Expr::Tuple(t) if t.elems.is_empty())
}

/// Whether a last expression can have a value other than `()`.
fn shows_something(e: &Expr) -> bool {
    match e {
        Expr::ForLoop(_) | Expr::While(_) | Expr::Assign(_) | Expr::Return(_) | Expr::Break(_) | Expr::Let(_) => false,
        Expr::Macro(m) => !prints(&m.mac),
        Expr::If(i) => i.else_branch.is_some(),
        _ => true,
    }
}

fn closure_arguments(local: &syn::Local, cell: &CellText, base: usize) -> Option<Vec<String>> {
    let written = |p: &Pat| match p {
        // With a reference in it: the closure is good for any lifetime, which an inferred type would not say.
        Pat::Type(t) if matches!(&*t.ty, syn::Type::Reference(r) if r.lifetime.is_none()) => {
            cell.text[bytes(t.ty.span(), base)].to_owned()
        }
        _ => "_".to_owned(),
    };
    let mut value = local.init.as_ref().map(|i| &*i.expr);
    // `{ let mut seen = 0; move |x| … }`
    while let Some(Expr::Block(b)) = value {
        value = match b.block.stmts.last() {
            Some(Stmt::Expr(e, None)) => Some(e),
            _ => None,
        };
    }
    match (&local.pat, value) {
        (Pat::Ident(_), Some(Expr::Closure(c))) if c.asyncness.is_none() => {
            Some(c.inputs.iter().map(written).collect())
        }
        _ => None,
    }
}

/// The variables that a `let` binds.
fn bound_names(local: &syn::Local) -> Vec<syn::Ident> {
    let diverges = local.init.as_ref().is_some_and(|i| i.diverge.is_some());
    let pattern = match &local.pat {
        Pat::Type(t) => &*t.pat,
        pattern => pattern,
    };
    match pattern {
        // Not a constant: a pattern that may not fit would need an `else`.
        Pat::Ident(p) if p.subpat.is_none() && !diverges => vec![p.ident.clone()],
        pattern => {
            let mut names = Names::default();
            names.visit_pat(pattern);
            names.names
        }
    }
}

/// The variables that a pattern binds.
#[derive(Default)]
pub(super) struct Names {
    pub names: Vec<syn::Ident>,
    /// Those that stand without `mut`, and not by reference.
    immutable: Vec<Span>,
}

impl<'ast> Visit<'ast> for Names {
    fn visit_pat_ident(&mut self, p: &'ast syn::PatIdent) {
        let name = p.ident.to_string();
        // `let None = …` and `let MAX = …` compare with a constant.
        if !name.starts_with(|c: char| c.is_uppercase()) && !name.starts_with("__") {
            self.names.push(p.ident.clone());
            if p.mutability.is_none() && p.by_ref.is_none() {
                self.immutable.push(p.ident.span());
            }
        }
        if let Some((_, inner)) = &p.subpat {
            self.visit_pat(inner);
        }
    }
    fn visit_expr(&mut self, _: &'ast Expr) {}
}

fn flatten_use(tree: &syn::UseTree, prefix: &str, out: &mut Vec<Use>) {
    let mut leaf =
        |binds: String, path: String| out.push(Use { binds, text: format!("use {path};"), space: Space::default() });
    match tree {
        syn::UseTree::Path(p) => {
            let prefix = format!("{prefix}{}::", p.ident);
            flatten_use(&p.tree, &prefix, out)
        }
        syn::UseTree::Name(n) if n.ident == "self" => {
            let path = prefix.trim_end_matches("::");
            let name = path.rsplit("::").next().unwrap_or(path).to_owned();
            leaf(name, format!("{prefix}{{self}}"))
        }
        syn::UseTree::Name(n) => leaf(n.ident.to_string(), format!("{prefix}{}", n.ident)),
        syn::UseTree::Rename(r) => {
            let source = if r.ident == "self" {
                format!("{prefix}{{self as {}}}", r.rename)
            } else {
                format!("{prefix}{} as {}", r.ident, r.rename)
            };
            let binds = if r.rename == "_" { format!("{prefix}{} as _", r.ident) } else { r.rename.to_string() };
            leaf(binds, source)
        }
        syn::UseTree::Glob(_) => leaf(format!("{prefix}*"), format!("{prefix}*")),
        syn::UseTree::Group(g) => g.items.iter().for_each(|t| flatten_use(t, prefix, out)),
    }
}

/// Text on one line: comments go, line breaks become blanks. Literals stay as they are.
pub(super) fn one_line(text: &str) -> String {
    let mut out = String::new();
    for token in tokens(text).iter().filter(|t| t.kind != Kind::Comment) {
        let gap = out.is_empty() || text[..token.range.start].ends_with(|c: char| !c.is_whitespace() && c != '/');
        if !gap {
            out.push(' ');
        }
        out.push_str(&text[token.range.clone()]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::checks::CHECK;
    use super::*;

    fn parts(code: &str) -> Vec<String> {
        let show = |s: Segment| match s {
            Segment::Code(r) => format!("code {}", code[r].trim()),
            Segment::Command(r) => format!("command {}", &code[r]),
            Segment::Magic { line, body } => format!("magic {} / {}", &code[line], body.map_or("", |b| &code[b])),
        };
        segments(code, &|name| name == "flag").into_iter().map(show).collect()
    }

    fn parsed(code: &str) -> Parsed {
        let cell = Arc::new(CellText::new(1, code));
        parse(&cell, 0..code.len(), &[]).expect("Rust")
    }

    #[test]
    fn magics_stand_where_statements_begin() {
        assert_eq!(parts("let a = 1;\n%time a\na"), ["code let a = 1;", "magic %time a / ", "code a"]);
        assert_eq!(parts("%%time 3\na\nb"), ["magic %%time 3 / a\nb"]);
        assert_eq!(parts(":dep a = \"1\"\nuse a::b;"), ["command :dep a = \"1\"", "code use a::b;"]);
        assert_eq!(parts("!ls | wc\n!flag"), ["magic !ls | wc / ", "code !flag"]);
        assert_eq!(parts("let x = a\n% b;"), ["code let x = a\n% b;"]);
        assert_eq!(parts("let s = \"\n%time\n\";"), ["code let s = \"\n%time\n\";"]);
        assert_eq!(parts("f(\n!flag_2,\n)"), ["code f(\n!flag_2,\n)"]);
    }

    #[test]
    fn a_cell_is_taken_apart() {
        let p =
            parsed("use a::{b as c, d::*}; fn f() {} let (x, Some(y)) = z else { return }; let g = |q: i32| q; x + y");
        let binds: Vec<&str> = p.uses.iter().map(|u| u.binds.as_str()).collect();
        assert_eq!(binds, ["c", "a::d::*"]);
        assert_eq!(p.items[0].names, ["f"]);
        let names: Vec<(&str, Option<usize>)> =
            p.bindings.iter().map(|b| (b.name.as_str(), b.closure.as_ref().map(Vec::len))).collect();
        assert_eq!(names, [("x", None), ("y", None), ("g", Some(1))]);
        assert!(p.trailing.is_some() && p.mentions.contains("z") && !p.mentions.contains("f"));
    }

    #[test]
    fn bare_uses_move_unless_the_cell_binds_the_name() {
        let p =
            parsed("f(a, &b); let c = d; for x in e { f(x); } g.into_iter(); let h = 1; f(h); i.join(); j.join(k);");
        assert_eq!(p.moved.keys().collect::<Vec<_>>(), ["a", "d", "e", "g", "i", "k"]);
        assert_eq!(p.moved.values().filter(|receiver| **receiver).count(), 2, "g and i");
        let p = parsed("if a { f(b) } else { g(c) } let Some(d) = f(e) else { h(i) }; j && k(l); for m in n { o(m) }");
        assert_eq!(p.moved.into_keys().collect::<Vec<_>>(), ["e", "n"], "the others need not run");
    }

    #[test]
    fn a_name_that_is_declared_first_needs_no_earlier_value() {
        let p = parsed("let a = 1; f(a); let b = b + 1; g(c); let c = 2; let Some(d) = e else { panic!(\"{d}\") };");
        assert_eq!(p.rebound.into_iter().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn loops_functions_and_closures_are_checked() {
        let count = |code: &str| parsed(code).edits.iter().filter(|e| e.text.contains(CHECK)).count();
        assert_eq!(count("for i in 0..3 { while x { loop {} } }"), 3);
        assert_eq!(count("v.iter().map(|x| x + 1).filter(|x| { true })"), 2);
        assert_eq!(count("const { loop {} }"), 0);
        let guards = |code: &str, by: fn(Condition) -> Range<usize>| -> Vec<String> {
            let found = parsed(code).conditions.into_iter().map(by).filter(|r| !r.is_empty());
            found.map(|r| code[r].to_owned()).collect()
        };
        let decides = |code: &str| guards(code, |c| c.range);
        assert_eq!(decides("if a > b { while c { match d { x if e => {} _ => {} } } }"), ["a > b", "c", "d", "e"]);
        assert_eq!(
            decides("assert!(f(), \"no\"); let g = h(); for i in 0..n { k(i) } for l in m {}"),
            ["f(), \"no\"", "0..n"]
        );
        let decided = |code: &str| guards(code, |c| c.guards);
        assert_eq!(decided("assert!(f()); if a { println!(\"{a}\") } if b { c } else { d }"), ["b { c } else { d }"]);
        let whole = "while a { if b { break; } }";
        assert_eq!(decided(whole), [whole, whole]);
        let items = parsed("const fn f() { loop {} } fn g() { loop {} }").items;
        assert!(!items[0].edits.iter().any(|e| e.text == CHECK));
        assert_eq!(items[1].edits.iter().filter(|e| e.text == CHECK).count(), 2);
    }
}
