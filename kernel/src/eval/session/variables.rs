//! Which variables stay: those whose types later cells can write down, and which have not changed meanwhile.
use super::core::Session;
use crate::engine::Event;
use crate::eval::build::paths::Found;
use crate::eval::generate::declared::Declaration;
use crate::eval::tell::unmade::unmade;
use crate::eval::text::scan;
use crate::eval::text::types;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use xlazy_mime::{Question, Var};

impl Session {
    /// The variables by their names, each with the cell that declared it, and those that wait for the cell that says their type.
    pub fn listed(&self) -> Vec<Var> {
        let pending = self.declared.iter().filter_map(|(name, d)| {
            let open = d.open.as_ref().filter(|o| o.pending)?;
            let summary = match d.is_unset() {
                true => "no value yet".to_owned(),
                false => format!("made by the cell that says its type: {}", open.text),
            };
            let (name, type_name, cell) = (name.clone(), "_".to_owned(), d.cell);
            Some(Var { name, type_name, summary, cell, handle: false, lent: false, away: false })
        });
        // Whoever used it last has stored it.
        let maker = |v: &Var| self.declared.get(&v.name).map_or(v.cell, |d| d.cell);
        let mut all: Vec<Var> = self.vars.iter().map(|v| Var { cell: maker(v), ..v.clone() }).chain(pending).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// What wait for the cell that says their type, with their `let`s.
    pub fn open_lets(&self) -> Vec<(String, String)> {
        let open = |(name, d): (&String, &Declaration)| {
            let open = d.open.as_ref().filter(|o| o.pending)?;
            Some((name.clone(), open.alone(name)))
        };
        self.declared.iter().filter_map(open).collect()
    }

    /// Drops variables of types that were redefined, and says so.
    pub fn drop_outdated(&mut self, events: &mut dyn FnMut(Event)) {
        let outdated = |v: &Var| {
            let mut out = None;
            types::nameable(&v.type_name, &mut |crate_name, path| {
                let current = self.compiler.defs.current_path(crate_name, path).map(|(written, _)| written);
                if current.is_none() {
                    out = Some(path.to_owned());
                }
                Some(current.unwrap_or_default())
            });
            out.map(|path| (v.name.clone(), path))
        };
        let outdated: Vec<(String, String)> = self.vars.iter().filter_map(outdated).collect();
        for (name, path) in &outdated {
            let what = format!("was dropped because its type `{path}` was defined anew");
            events(Event::Stream { stderr: true, text: format!("note: the variable `{name}` {what}\n") });
            self.gone.insert(name.clone(), what);
        }
        self.forget(outdated.into_iter().map(|(name, _)| name).collect());
    }

    /// What a cell that did not compile would have made, where nothing has its name, is asked for by the next ones.
    pub(super) fn unmade(&mut self, cell: &str) {
        for name in std::mem::take(&mut self.compiler.declares) {
            let there = self.vars.iter().any(|v| v.name == name) || self.declared.contains_key(&name);
            if !there && !self.compiler.defs.has(&name) {
                self.gone.insert(name, unmade(cell));
            }
        }
    }

    /// Drops variables in the place of which the cell defines a function or a constant, and says so.
    pub fn give_way(&mut self, defined: &BTreeSet<String>, cell: &str, events: &mut dyn FnMut(Event)) {
        let names: Vec<String> = self.vars.iter().map(|v| v.name.clone()).filter(|n| defined.contains(n)).collect();
        for name in &names {
            let text = format!("note: the variable `{name}` is gone: {cell} defines an item of that name\n");
            events(Event::Stream { stderr: true, text });
        }
        self.forget(names);
    }

    /// Drops variables whose types no later cell could write down, and says what to do instead. Those that had the same type before
    /// have been looked at then.
    pub fn refuse_nameless(
        &mut self,
        closures: &BTreeMap<String, Vec<String>>,
        before: &HashMap<String, String>,
        events: &mut dyn FnMut(Event),
    ) {
        let new = |v: &&Var| before.get(&v.name) != Some(&v.type_name) || closures.contains_key(&v.name);
        let refused = |v: &Var| {
            let named = types::nameable(&v.type_name, &mut |c, p| {
                self.compiler.defs.current_path(c, p).map(|(written, _)| written).or(Some(String::new()))
            });
            let why = match named {
                types::Named::Refused(why) => why,
                types::Named::Type(_)
                    if closures.get(&v.name).is_some_and(|said| is_for_one_lifetime(&v.type_name, said)) =>
                {
                    "it takes a reference, and does not say so: write the type of its argument, as in `|x: &i32|`"
                        .into()
                }
                types::Named::Type(written) => {
                    let several =
                        self.compiler.defs.deps.as_ref()?.several.iter().find(|c| mentions_crate(&written, c))?;
                    format!(
                        "its type {} is from one of several versions of `{several}`, which it does not tell apart: \
                         `:dep {several} = \"…\"` names one of them, or store what it holds",
                        types::short(&v.type_name)
                    )
                }
            };
            Some((v.name.clone(), why))
        };
        let refused = self.vars.iter().filter(new).filter_map(refused).collect();
        self.refuse(refused, events);
    }

    /// The same for types that their crate keeps to itself. Only rustc knows; it was asked when they were stored, and the
    /// answer is waited for when a cell may need it.
    pub fn refuse_private(&mut self, code: &str, events: &mut dyn FnMut(Event)) {
        let mentions = scan::mentions(code);
        let mut refused = Vec::new();
        for v in self.vars.iter().filter(|v| mentions.contains(&v.name)) {
            refused.extend(self.compiler.unwritable(v).map(|(path, found)| {
                let why = match found {
                    Found::Function => types::function(path.rsplit("::").next().unwrap_or(&path)),
                    _ => format!("its type `{path}` is not public by that name: store what it holds"),
                };
                (v.name.clone(), why)
            }));
        }
        self.refuse(refused, events);
    }

    /// Drops variables of types from crates that were compiled anew.
    pub fn drop_values_of(&mut self, crates: &[String], events: &mut dyn FnMut(Event)) {
        let refused = |v: &Var| {
            let from = crates.iter().find(|c| mentions_crate(&v.type_name, c))?;
            Some((v.name.clone(), format!("`{from}` was compiled anew, and its types with it")))
        };
        let refused = self.vars.iter().filter_map(refused).collect();
        self.refuse(refused, events);
    }

    /// Drops variables, each with the reason.
    fn refuse(&mut self, refused: Vec<(String, String)>, events: &mut dyn FnMut(Event)) {
        for (name, why) in &refused {
            let text = format!("note: `{name}` is not kept for later cells: {why}\n");
            events(Event::Stream { stderr: true, text });
            self.gone.insert(name.clone(), format!("was not kept: {why}"));
        }
        self.forget(refused.into_iter().map(|(name, _)| name).collect());
    }

    fn forget(&mut self, names: Vec<String>) {
        if !names.is_empty() {
            let _ = self.call(Question::Forget, &names.join(" "));
            self.vars.retain(|v| !names.contains(&v.name));
        }
    }
}

/// Whether a closure that is kept takes a reference without saying so, which is of one lifetime then.
fn is_for_one_lifetime(type_name: &str, said: &[String]) -> bool {
    let Ok(closure) = syn::parse_str::<syn::Type>(type_name) else { return false };
    struct Arguments(Vec<String>);
    impl<'ast> syn::visit::Visit<'ast> for Arguments {
        fn visit_parenthesized_generic_arguments(&mut self, of: &'ast syn::ParenthesizedGenericArguments) {
            if self.0.is_empty() {
                self.0 = of.inputs.iter().map(|t| quote::quote!(#t).to_string()).collect();
            }
        }
    }
    let mut arguments = Arguments(Vec::new());
    syn::visit::Visit::visit_type(&mut arguments, &closure);
    arguments.0.iter().zip(said).any(|(is, said)| said == "_" && is.contains('&'))
}

/// Whether a type has something of this crate in it.
fn mentions_crate(type_name: &str, name: &str) -> bool {
    let paths = type_name.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    paths.map(|p| p.trim_start_matches(':')).any(|p| p.strip_prefix(name).is_some_and(|rest| rest.starts_with("::")))
}
