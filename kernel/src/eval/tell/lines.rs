//! The runtime's public names as the session tells them, looked up by name.
use std::collections::HashMap;
use std::ops::Range;

/// The runtime's public names, a line each, by name.
pub(super) struct Lines {
    text: String,
    /// Name, kind and full name.
    pub all: Vec<[Range<usize>; 3]>,
    pub by_name: HashMap<String, Vec<usize>>,
}

impl Lines {
    pub fn of(text: String) -> Lines {
        let (mut all, mut by_name, mut start) = (Vec::new(), HashMap::<String, Vec<usize>>::new(), 0);
        for line in text.split('\n') {
            let tab = |from: usize| line[from..].find('\t').map(|at| from + at);
            if let Some((name, kind)) = tab(0).and_then(|name| Some((name, tab(name + 1)?))) {
                by_name.entry(line[..name].to_owned()).or_default().push(all.len());
                all.push([0..name, name + 1..kind, kind + 1..line.len()].map(|r| r.start + start..r.end + start));
            }
            start += line.len() + 1;
        }
        Lines { text, all, by_name }
    }

    pub fn line(&self, i: usize) -> (&str, &str, &str) {
        let [name, kind, full] = self.all[i].clone().map(|range| &self.text[range]);
        (name, kind, full)
    }
}
