//! A cell taken apart: items, statements, bindings, the last expression, and where checks belong.
use super::checks::{Awaits, Checks, included};
use super::code_facts;
use super::elsewhere::{Assumed, seen};
use super::expand::{EXPORTED, Macro, known};
use super::extents;
use super::finder::places;
use super::items::{Call, Item, items_of_a_macro, persistent_item};
use super::macros;
use super::moves::Moves;
use super::parsed::{Binding, Expanded, Parsed, flatten_use};
use super::statements::marks;
use super::syntax::{arguments, bound_names, bytes, closure_arguments, one_line};
use crate::eval::text::depth::{Depth, TooDeep};
use crate::eval::text::patterns::{end_of_pattern, names};
use crate::eval::text::scan::{self, Kind};
use crate::eval::text::source::{CellText, Splice, Tag};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Expr, Stmt};

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
    parse_assuming(cell, range, macros, &Arc::default())
}

/// The same with what is assumed of macros of other crates.
pub fn parse_assuming(
    cell: &Arc<CellText>,
    range: Range<usize>,
    macros: &[Macro],
    assumed: &Arc<Assumed>,
) -> Result<Parsed, Unparsed> {
    let depth = Depth::of(&cell.text[range.clone()]);
    depth.let_in().map_err(|e| Unparsed::TooDeep(e.further(range.start)))?;
    let parsed = depth.apart(|| taken_apart(cell, range, macros, assumed)).map_err(Unparsed::NoRoom)?;
    parsed.map_err(Unparsed::Syntax)
}

fn taken_apart(
    cell: &Arc<CellText>,
    range: Range<usize>,
    macros: &[Macro],
    assumed: &Arc<Assumed>,
) -> syn::Result<Parsed> {
    let text = &cell.text[range.clone()];
    let parser = |input: ParseStream| {
        let attributes = input.call(syn::Attribute::parse_inner)?;
        Ok((attributes, input.call(syn::Block::parse_within)?))
    };
    parser.parse_str(text).map(|(attributes, statements)| {
        let base = range.start;
        let mut out = Parsed { only_shows: true, assumed: assumed.clone(), ..Parsed::default() };
        out.inner_attributes.extend(attributes.iter().map(|a| bytes(a.span(), base)));
        let count = statements.len();
        let mut mentioned = BTreeSet::new();
        let mut by_macros = Vec::new();
        for (i, statement) in statements.iter().enumerate() {
            let at = bytes(statement.span(), base);
            out.rebind(statement, &mentioned, &cell.text, base);
            mentioned.append(&mut scan::mentions(&cell.text[at.clone()]));
            out.add(cell, base, statement, macros, i + 1 == count);
            by_macros.push(std::mem::take(&mut out.bound_by_macro));
        }
        let takes_names = |name: &str| macros::takes_names(name, &|name| known(&out.macros, macros, name));
        out.places = places(&statements, text, base, &by_macros, &takes_names);
        out.syntax.extend(extents::of_statements(&statements, &cell.text, base));
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

/// What a call makes with these macros; `None` where that is not items alone.
pub fn made_by(call: &Call, macros: &[Macro], assumed: &Arc<Assumed>) -> Option<Parsed> {
    let made = parse_assuming(&call.cell, call.range.clone(), macros, assumed).ok()?;
    (!made.has_statements && !made.items.is_empty()).then_some(made)
}

/// What the call of a notebook's macro makes.
enum CallMakes {
    Items,
    Statements,
    /// Statements, the last of which is an expression.
    Value,
}

impl Parsed {
    fn add(&mut self, cell: &Arc<CellText>, base: usize, statement: &Stmt, macros: &[Macro], last: bool) {
        if let Stmt::Macro(call) = statement
            && let at = self.within.as_ref().map_or_else(|| bytes(call.span(), base), |(_, at, _)| at.clone())
            && let Some(seen) = seen(&cell.text, base, call, at, &|name| known(&self.macros, macros, name))
        {
            let makes = self.assumed.get(&seen.name).copied().unwrap_or_else(|| seen.by_its_words());
            let item = items_of_a_macro(cell, base, call, &seen, makes);
            self.elsewhere.push(seen);
            if let Some(item) = item {
                self.items.push(item);
                return;
            }
        }
        let call = match statement {
            Stmt::Macro(call) => Some(&call.mac),
            Stmt::Expr(Expr::Macro(call), None) => Some(&call.mac),
            _ => None,
        };
        let before = self.items.len();
        let made = call.and_then(|call| self.expand(cell, base, call, bytes(statement.span(), base), macros));
        if matches!(made, Some(CallMakes::Items)) {
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
                self.add_macros_of(cell, base, item, true);
                for macros in macros_of_a_crate(item) {
                    let known = self.uses.len();
                    flatten_use(&macros.tree, "::", &mut self.uses);
                    // The statements stand in another crate than the item does.
                    self.later.extend(self.uses[known..].iter().map(|u| u.text.clone()));
                }
                let known = |name: &str| known(&self.macros, macros, name);
                self.items.extend(persistent_item(cell, base, item, &known));
            }
            other => {
                self.has_statements = true;
                self.statements.push(bytes(other.span(), base).start);
                self.only_shows &= matches!(other, Stmt::Expr(Expr::Path(_), _));
                if let Stmt::Local(local) = other {
                    let closure = closure_arguments(local, &cell.text, base);
                    let binding = |i: &syn::Ident| Binding { name: i.to_string(), closure: closure.clone() };
                    let bound = bound_names(local);
                    let visible = bound.iter().filter(|i| self.is_written(cell, bytes(i.span(), base).start));
                    for b in visible.map(binding).collect::<Vec<_>>() {
                        self.bindings.retain(|x| x.name != b.name);
                        self.bindings.push(b);
                    }
                }
                self.marks.extend(marks(other, base));
                let mut checks = Checks::new(base);
                checks.visit_stmt(other);
                self.edits.append(&mut checks.edits());
                self.edits.extend(included(&cell.text, bytes(other.span(), base)));
                self.values.append(&mut checks.values);
                self.syntax.extend(code_facts::of_statement(other, &cell.text, base));
                self.syntax.extend(code_facts::of_conditions(&checks.conditions, &cell.text));
                Awaits { base, edits: &mut self.edits, returns: &mut self.returns }.visit_stmt(other);
                let Moves { used, bound, .. } = Moves::of(other);
                self.taken.extend(used.iter().map(|u| (u.name.clone(), u.at(base))));
                self.captures.append(&mut checks.captures);
                // A name that the statement binds, too, may be another variable.
                let used = || used.iter().filter(|u| !bound.contains(&u.name));
                let surely = used().filter(|u| u.surely);
                surely.for_each(|u| *self.moved.entry(u.name.clone()).or_insert(true) &= u.receiver);
                self.trailing = match other {
                    _ if matches!(made, Some(CallMakes::Statements)) => None,
                    // The end of somebody's `main`.
                    Stmt::Expr(e, None) if last && is_ok_of_nothing(e) => {
                        self.edits.push(Splice::replace(bytes(e.span(), base), "").tagged(Tag::Program));
                        None
                    }
                    // Only a statement may have an attribute.
                    Stmt::Expr(e, None) if last && shows_something(e) => {
                        Some(bytes(e.span(), base)).filter(|at| !cell.text[at.start..].starts_with('#'))
                    }
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

impl Parsed {
    /// Puts what the call of a notebook's macro makes in its place, where that is items. Of statements, it takes down which
    /// variables they declare. `None` for any other macro.
    fn expand(
        &mut self,
        cell: &Arc<CellText>,
        base: usize,
        call: &syn::Macro,
        whole: Range<usize>,
        macros: &[Macro],
    ) -> Option<CallMakes> {
        /// As deep as rustc goes.
        const DEEPEST: usize = 128;
        const MOST: usize = 1 << 21;
        const LONGEST: usize = 1 << 16;
        let name = call.path.segments.last()?.ident.to_string();
        let rules = known(&self.macros, macros, &name)?;
        let made = macros::made_by_rules(rules, cell, arguments(call, base))?;
        self.expanded += made.len() + 100;
        if made.len() > LONGEST || !made.fits() {
            return None;
        }
        let text = made.told_apart(&name, &|name| known(&self.macros, macros, name), cell.cell);
        let (of, at, deep) = self.within.clone().unwrap_or_else(|| (cell.clone(), whole, 0));
        let statements =
            syn::Block::parse_within.parse_str(&text.text).ok().filter(|_| deep < DEEPEST && self.expanded < MOST)?;
        let known: Vec<Macro> = macros.iter().chain(&self.macros).cloned().collect();
        let (within, expanded) = (Some((of.clone(), at.clone(), deep + 1)), self.expanded);
        let assumed = self.assumed.clone();
        let mut inside = Parsed { only_shows: true, assumed, within, expanded, ..Parsed::default() };
        statements.iter().for_each(|s| inside.add(&text, 0, s, &known, false));
        self.elsewhere.append(&mut inside.elsewhere);
        self.expanded = inside.expanded;
        self.called.append(&mut inside.called);
        self.called.insert(name.clone());
        self.refusal = self.refusal.take().or(inside.refusal);
        if inside.has_statements {
            for b in inside.bindings {
                self.bound_by_macro.push(b.name.clone());
                self.bindings.retain(|x| x.name != b.name);
                self.bindings.push(b);
            }
            let handed = |i: &&Item| i.names.iter().any(|n| scan::mentions(&of.text[at.clone()]).contains(n));
            if let Some(item) = inside.items.iter().find(handed) {
                let what = format!(
                    "`{name}!` makes {} beside statements, and it would be gone after this cell",
                    item.in_words()
                );
                let advice = "make it two macros: one for the items, one for the statements";
                self.refusal.get_or_insert((at, what, advice.to_owned()));
            }
            if deep == 0 {
                self.called.clear();
            }
            let value = matches!(statements.last(), Some(Stmt::Expr(_, None)));
            return Some(if value { CallMakes::Value } else { CallMakes::Statements });
        }
        if deep == 0 {
            let macros = std::mem::take(&mut self.called);
            let call = Arc::new(Call { macros, cell: of, range: at });
            inside.items.iter_mut().for_each(|i| i.call = Some(call.clone()));
            let uses = inside.uses.iter().map(|u| &u.text);
            let text = uses.chain(inside.macros.iter().map(|m| &m.text)).map(|t| format!("{t} ")).collect();
            self.calls.push(Expanded { call, text });
        }
        // Their places are in what the macro made.
        inside.items.iter_mut().for_each(|i| i.syntax.clear());
        self.items.append(&mut inside.items);
        self.uses.append(&mut inside.uses);
        self.macros.append(&mut inside.macros);
        Some(CallMakes::Items)
    }

    /// Macros that a module gives away: all of one with `#[macro_use]`, and those with `#[macro_export]`.
    fn add_macros_of(&mut self, cell: &Arc<CellText>, base: usize, item: &syn::Item, around: bool) {
        let syn::Item::Mod(module) = item else { return };
        let says = |attributes: &[syn::Attribute], what: &str| attributes.iter().any(|a| a.path().is_ident(what));
        let used = around && says(&module.attrs, "macro_use");
        for inner in module.content.iter().flat_map(|(_, items)| items) {
            match inner {
                syn::Item::Macro(m) if used || says(&m.attrs, "macro_export") => {
                    let Some(name) = m.ident.as_ref().map(syn::Ident::to_string) else { continue };
                    let at = bytes(m.mac.path.span(), base).start..bytes(m.span(), base).end;
                    let text = &cell.text[at.clone()];
                    let exported = if says(&m.attrs, "macro_export") { EXPORTED } else { "" };
                    let (line, mentions) = (format!("{exported}{}", one_line(text)), scan::mentions(text));
                    let parts = [(0..text.len(), cell, at.start)].into_iter();
                    let source = Arc::new(CellText::copied(cell.cell, text.to_owned(), parts));
                    let range = 0..text.len();
                    self.macros.retain(|m| m.name != name);
                    self.macros.push(Macro { name, text: line, mentions, source, range });
                }
                syn::Item::Mod(_) => self.add_macros_of(cell, base, inner, used),
                _ => {}
            }
        }
    }
}

/// What `#[macro_use] extern crate maplit;` brings into scope, by name or with all there is.
fn macros_of_a_crate(item: &syn::Item) -> Vec<syn::ItemUse> {
    let syn::Item::ExternCrate(of) = item else { return Vec::new() };
    let Some(attribute) = of.attrs.iter().find(|a| a.path().is_ident("macro_use")) else { return Vec::new() };
    let names = match &attribute.meta {
        syn::Meta::List(list) => list.tokens.to_string(),
        _ => "*".to_owned(),
    };
    let import = |name: &str| syn::parse_str(&format!("use ::{}::{};", of.ident, name.trim())).ok();
    names.split(',').filter_map(import).collect()
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

/// What text that does not parse would declare, by the words in front of names: outside of brackets, or where a line begins, since a
/// bracket may be what is missing.
pub fn declared(text: &str) -> BTreeSet<String> {
    const ITEMS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];
    let tokens = scan::tokens(text);
    let word = |i: usize| tokens.get(i).map_or("", |t| &text[t.range.clone()]);
    let (mut out, mut depth) = (BTreeSet::new(), 0);
    for (i, token) in tokens.iter().enumerate() {
        let at = token.range.start;
        if (word(i) == "let" || ITEMS.contains(&word(i))) && (at == 0 || text[..at].ends_with('\n')) {
            depth = 0;
        }
        match token.kind {
            Kind::Open(_) => depth += 1,
            Kind::Close(_) => depth -= 1,
            Kind::Ident if depth == 0 && word(i) == "let" => {
                out.extend(names(&tokens, text, i + 1, end_of_pattern(&tokens, text, i + 1)));
            }
            Kind::Ident if depth == 0 && ITEMS.contains(&word(i)) => {
                out.extend(tokens.get(i + 1).filter(|t| t.kind == Kind::Ident).map(|_| word(i + 1).to_owned()));
            }
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::checks::CHECK;
    use super::*;

    fn parsed(code: &str) -> Parsed {
        let cell = Arc::new(CellText::new(1, code));
        parse(&cell, 0..code.len(), &[]).expect("Rust")
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
        let guards = |code: &str, which: usize| -> Vec<String> {
            let conditions = parsed(code).syntax.into_iter().filter(|f| f.kind == 'D');
            let found = conditions.map(|f| f.ranges[which].clone()).filter(|r| !r.is_empty());
            found.map(|r| code[r].to_owned()).collect()
        };
        let decides = |code: &str| guards(code, 0);
        assert_eq!(decides("if a > b { while c { match d { x if e => {} _ => {} } } }"), ["a > b", "c", "d", "e"]);
        assert_eq!(
            decides("assert!(f(), \"no\"); let g = h(); for i in 0..n { k(i) } for l in m {}"),
            ["f(), \"no\"", "0..n"]
        );
        let decided = |code: &str| guards(code, 1);
        assert_eq!(decided("assert!(f()); if a { println!(\"{a}\") } if b { c } else { d }"), ["b { c } else { d }"]);
        let whole = "while a { if b { break; } }";
        assert_eq!(decided(whole), [whole, whole]);
        let items = parsed("const fn f() { loop {} } fn g() { loop {} }").items;
        assert!(!items[0].edits.iter().any(|e| e.text == CHECK));
        assert_eq!(items[1].edits.iter().filter(|e| e.text == CHECK).count(), 2);
    }
}
