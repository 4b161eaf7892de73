//! Macros that mention variables, as one does within a function: a cell that calls one has the variables, and the macro behind them.
use crate::eval::generate::definitions::Definitions;
use crate::eval::parse::expand::Macro;
use crate::eval::parse::parsed::Parsed;
use crate::eval::text::scan::{self, Kind};
use crate::eval::text::source::CellText;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Has the cell mention what the macros mention that it calls, and those be declared in it.
pub(super) fn with_variables(
    parsed: &mut Parsed,
    cell: &Arc<CellText>,
    defs: &Definitions,
    is_variable: &dyn Fn(&str) -> bool,
) {
    let own: BTreeSet<String> = parsed.bindings.iter().map(|b| b.name.clone()).collect();
    let mut called: Vec<&Macro> = Vec::new();
    let mut words = parsed.mentions.clone();
    while let Some(m) = defs.macros.iter().rev().find(|m| words.contains(&m.name)) {
        words.retain(|word| *word != m.name);
        if called.iter().all(|known| known.name != m.name) {
            words.extend(m.mentions.iter().cloned());
            called.push(m);
        }
    }
    for m in called {
        let here = Arc::ptr_eq(&m.source, cell);
        // A variable of the cell's own is declared behind the macro of another one, which does not mean it.
        let earlier = |name: &String| is_variable(name) && !(here && own.contains(name));
        let variables: BTreeSet<String> = free(&m.text).into_iter().filter(earlier).collect();
        if variables.is_empty() || m.text.contains("$crate") {
            continue;
        }
        parsed.rebound.extend(variables.intersection(&own).cloned());
        parsed.mentions.extend(variables);
        if !here {
            // What it calls itself stands before it.
            parsed.later.insert(0, m.text.clone());
        }
    }
}

/// The names that a macro does not declare, and that stand by themselves in it.
fn free(text: &str) -> BTreeSet<String> {
    let tokens = scan::tokens(text);
    let word = |i: usize| tokens.get(i).map_or("", |t| &text[t.range.clone()]);
    let before = |i: usize| i.checked_sub(1).map_or("", word);
    let idents = || (0..tokens.len()).filter(|&i| tokens[i].kind == Kind::Ident);
    let declares = |i: &usize| matches!(before(*i), "let" | "mut" | "for" | "ref" | "fn" | "|") || word(i + 1) == "@";
    let bound: BTreeSet<&str> = idents().filter(declares).map(word).collect();
    let alone = |i: &usize| !matches!(before(*i), "$" | "." | ":") && !matches!(word(i + 1), "!" | ":");
    let names = idents().filter(alone).map(word).filter(|name| !bound.contains(name)).map(str::to_owned);
    let texts = tokens.iter().filter(|t| t.kind == Kind::Literal).map(|t| &text[t.range.clone()]);
    names.chain(texts.flat_map(scan::mentions)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_macro_finds_around_it() {
        for (text, names) in [
            ("macro_rules! n { ($e:expr) => { log.push($e) } }", "log"),
            ("macro_rules! px { () => { println!(\"{x:?} {}\", y) }; }", "x y"),
            ("macro_rules! sum { ($($x:expr),*) => {{ let mut t = 0; $(t += $x;)* t }} }", ""),
            ("macro_rules! f { () => { a.b(c::d(), |z| z + e) } }", "a e"),
        ] {
            let mut found = free(text);
            found.retain(|name| ["log", "x", "y", "a", "b", "z", "t", "e"].contains(&&**name));
            assert_eq!(found.into_iter().collect::<Vec<_>>().join(" "), names, "{text}");
        }
    }
}
