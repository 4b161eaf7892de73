//! Where in the user's texts rustc points.
use crate::eval::text::source::{CellText, Source};
use crate::eval::text::sources::Sources;
use crate::eval::toolchain::diagnostic::{Diagnostic, Span};
use crate::eval::toolchain::rustc::FILE_PREFIX;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// What is told, and a place with what is to be written there.
pub(super) type Told = (String, Option<(Range<usize>, String)>);

/// The texts that rustc's places are in: the source at hand, and those of what earlier cells defined.
pub struct Texts<'a> {
    pub source: &'a Source,
    others: HashMap<String, Arc<Source>>,
}

impl<'a> Texts<'a> {
    pub fn new(source: &'a Source) -> Texts<'a> {
        Texts { source, others: HashMap::new() }
    }

    /// With those that the errors name.
    pub fn with_others(source: &'a Source, errors: &[Diagnostic], sources: &Sources) -> Texts<'a> {
        Texts { source, others: Texts::others(errors, sources) }
    }

    fn others(errors: &[Diagnostic], sources: &Sources) -> HashMap<String, Arc<Source>> {
        let mut out = HashMap::new();
        for e in errors {
            let files = e.spans.iter().map(|s| &s.file).filter(|f| f.starts_with(FILE_PREFIX));
            out.extend(files.filter_map(|f| Some((f.clone(), sources.get(f)?))));
            out.extend(Texts::others(&e.children, sources));
        }
        out
    }

    /// The user's text that a span means: itself, or the macro call it comes from.
    pub fn map(&self, span: &Span) -> Option<(&Arc<CellText>, Range<usize>)> {
        let source = if span.ours { Some(self.source) } else { self.others.get(&span.file).map(|s| &**s) };
        let own = source.and_then(|s| s.user_part(span.start..span.end));
        own.or_else(|| span.call.as_deref().and_then(|c| self.map(c)))
    }
}
