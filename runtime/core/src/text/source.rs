//! Where something is in source text: a line of the code that runs, or one that a program's text names.
use super::{Place, Point, Somewhere};
use foldhash::{HashMap, HashMapExt};
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A place in source text. There is one of each, so that two are the same place where they are one object.
#[derive(Debug)]
pub struct Source {
    file: &'static str,
    line: u32,
    column: u32,
}

impl Source {
    pub fn file(&self) -> &'static str {
        self.file
    }

    pub fn line(&self) -> u32 {
        self.line
    }

    pub fn column(&self) -> u32 {
        self.column
    }

    /// Where a place of the code that runs is.
    pub fn of(at: Place) -> &'static Source {
        sources().of(at)
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Source) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Source {}

impl Hash for Source {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::from_ref(self).hash(state);
    }
}

impl Somewhere for Source {
    fn file(&self) -> &str {
        self.file
    }
    fn point(&self) -> Point {
        (self.line, self.column)
    }
}

/// All places that were asked for. They stay: as many as there are lines of code and of texts that are read.
pub struct Sources {
    of: HashMap<usize, &'static Source>,
    all: HashMap<(&'static str, u32, u32), &'static Source>,
    last: (usize, Option<&'static Source>),
}

static SOURCES: Mutex<Option<Sources>> = Mutex::new(None);

/// The places, held: for many at once.
pub struct Held(MutexGuard<'static, Option<Sources>>);

pub fn sources() -> Held {
    let mut all = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
    all.get_or_insert_with(|| Sources { of: HashMap::new(), all: HashMap::new(), last: (0, None) });
    Held(all)
}

impl Held {
    pub fn of(&mut self, at: Place) -> &'static Source {
        let all = self.0.as_mut().expect("made when it was locked");
        let key = std::ptr::from_ref(at) as usize;
        if let (last, Some(source)) = all.last
            && last == key
        {
            return source;
        }
        let source = match all.of.get(&key) {
            Some(source) => source,
            None => {
                let source = all.named(at.file(), at.line(), at.column());
                all.of.insert(key, source);
                source
            }
        };
        all.last = (key, Some(source));
        source
    }

    /// A place that a text names.
    pub fn named(&mut self, file: &str, line: u32, column: u32) -> &'static Source {
        self.0.as_mut().expect("made when it was locked").named(file, line, column)
    }
}

impl Sources {
    fn named(&mut self, file: &str, line: u32, column: u32) -> &'static Source {
        if let Some(source) = self.all.get(&(file, line, column)) {
            return source;
        }
        let file: &'static str = String::from(file).leak();
        let source: &'static Source = Box::leak(Box::new(Source { file, line, column }));
        self.all.insert((file, line, column), source);
        source
    }
}
