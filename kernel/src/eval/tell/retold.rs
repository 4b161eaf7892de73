//! What is told of an error in place of rustc's words, and what is known for that.
use super::asked::Rustc;
use super::change::Change;
use crate::eval::generate::declared::Declared;
use crate::eval::text::source::CellText;
use crate::eval::text::sources::Sources;
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// An error that our own words explain better than rustc's.
#[derive(Clone)]
pub(super) struct Retold {
    pub title: String,
    pub help: Option<String>,
    /// rustc's words at each place stay, and so do its notes.
    pub with_labels: bool,
    pub about: About,
    /// What is to be written, where that is known.
    pub change: Option<Change>,
}

#[derive(Clone, PartialEq)]
pub(super) enum About {
    /// Part of the user's text that says it better than where rustc points.
    Part(Arc<CellText>, Range<usize>),
    /// What rustc points at.
    Words,
    /// A variable that cannot be stored.
    Keeping,
    /// A variable that cannot be fetched.
    Fetching(String),
    /// The end of the cell, which came too soon.
    End,
}

/// What the session knows of names that a cell may mean.
pub struct Known<'a> {
    /// What became of variables and items that no longer exist.
    pub gone: &'a HashMap<String, String>,
    pub declared: &'a Declared,
    pub vars: &'a [&'a str],
    pub is_type: &'a dyn Fn(&str) -> bool,
    pub is_value: &'a dyn Fn(&str) -> bool,
    pub is_imported: &'a dyn Fn(&str) -> bool,
    pub sources: &'a Sources,
    pub rustc: Rustc<'a>,
}

/// rustc's words, and ours below them.
pub(super) fn with_words(error: &Diagnostic, help: String) -> Retold {
    Retold { title: error.message.clone(), help: Some(help), with_labels: true, about: About::Words, change: None }
}
