//! How far a loop has come: a bar below the cell, or a line on a terminal that is written over.
use super::show::To;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use xlazy_mime::{Bundle, escape_html, units};

/// Told as often as people read.
const EVERY: Duration = Duration::from_millis(100);
const COLUMNS: usize = 24;

/// Goes through `items` and shows how far it has come, how many there are a second and how long the rest takes (Python's `tqdm`).
///
/// ```
/// use xlazy::prelude::*;
/// let loss = std::cell::Cell::new(0.0);
/// for step in progress(0..100).note(|| format!("loss {:.3}", loss.get())) {
///     loss.set(1.0 / (step + 1) as f64);
/// }
/// ```
pub fn progress<'a, I: IntoIterator>(items: I) -> Progress<'a, I::IntoIter> {
    let items = items.into_iter();
    let (least, most) = items.size_hint();
    Progress { items, bar: Bar::new(most.filter(|m| *m == least)) }
}

/// What [`progress`] gives: an iterator.
pub struct Progress<'a, I> {
    items: I,
    bar: Bar<'a>,
}

impl<'a, I: Iterator> Progress<'a, I> {
    /// Says something beside the bar, such as the loss by now. `note` is asked when it is shown, some ten times a second, so it may
    /// read a value.
    pub fn note<T: Display>(mut self, mut note: impl FnMut() -> T + 'a) -> Self {
        self.bar.note = Some(Box::new(move || note().to_string()));
        self
    }
}

impl<I: Iterator> Iterator for Progress<'_, I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        let item = self.items.next();
        self.bar.came(item.is_some());
        item
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }
}

/// All that does not depend on the items' type, so that it is compiled once.
struct Bar<'a> {
    id: String,
    total: Option<usize>,
    /// Items given, the last of which may be at work.
    given: usize,
    done: usize,
    start: Instant,
    shown: Option<Instant>,
    ended: bool,
    note: Option<Box<dyn FnMut() -> String + 'a>>,
}

impl Bar<'_> {
    fn new(total: Option<usize>) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let id = format!("xlazy-progress-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        Bar { id, total, given: 0, done: 0, start: Instant::now(), shown: None, ended: false, note: None }
    }

    #[inline(never)]
    fn came(&mut self, more: bool) {
        self.done = self.given;
        self.given += usize::from(more);
        if self.ended {
            return;
        }
        self.ended = !more;
        if self.ended || self.shown.is_none_or(|at| at.elapsed() >= EVERY) {
            self.show();
        }
    }

    fn show(&mut self) {
        let note = self.note.as_mut().map(|note| note()).unwrap_or_default();
        let (text, html) = (self.text(&note), self.html(&note));
        let to = if self.shown.is_none() { To::Place(&self.id) } else { To::Update(&self.id) };
        // Times are others when the cell runs again.
        to.send(Bundle::html(html, text).passing());
        self.shown = Some(Instant::now());
    }

    /// `12/100, 3.4/s, 26 s left, loss 0.5`
    fn told(&self, note: &str) -> String {
        let took = self.start.elapsed();
        let rate = self.done as f64 / took.as_secs_f64().max(1e-9);
        let mut parts = vec![match self.total {
            Some(total) => format!("{}/{total}", self.done),
            None => self.done.to_string(),
        }];
        if self.done > 0 {
            parts.push(if rate >= 1.0 { format!("{rate:.1}/s") } else { format!("{:.1} s each", 1.0 / rate) });
        }
        match self.total.map(|total| total.saturating_sub(self.done)) {
            Some(left) if left > 0 && self.done > 0 && !self.ended => {
                parts.push(format!("{} left", units::time(Duration::from_secs_f64((left as f64 / rate).min(1e9)))));
            }
            _ if self.ended => parts.push(units::time(took)),
            _ => {}
        }
        parts.extend((!note.is_empty()).then(|| note.to_owned()));
        parts.join(", ")
    }

    fn text(&self, note: &str) -> String {
        let told = self.told(note);
        let Some(total) = self.total else { return told };
        let full = (self.done * COLUMNS).checked_div(total).unwrap_or(COLUMNS).min(COLUMNS);
        format!("{}{} {told}", "█".repeat(full), "░".repeat(COLUMNS - full))
    }

    fn html(&self, note: &str) -> String {
        let bar = match self.total {
            Some(total) => format!("<progress value=\"{}\" max=\"{}\"></progress> ", self.done, total.max(1)),
            None => String::new(),
        };
        format!(
            "<div>{bar}<span style=\"font-variant-numeric:tabular-nums\">{}</span></div>",
            escape_html(&self.told(note))
        )
    }
}

impl Drop for Bar<'_> {
    /// A loop that was left tells how far it came.
    fn drop(&mut self) {
        if !self.ended && self.shown.is_some() && !std::thread::panicking() {
            self.ended = true;
            self.show();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_bar_tells() {
        let mut bar = Bar::new(Some(4));
        bar.came(true);
        assert_eq!(bar.text("loss <1>"), format!("{} 0/4, loss <1>", "░".repeat(24)));
        bar.came(true);
        let text = bar.text("");
        assert!(
            text.starts_with("██████░") && text.contains(" 1/4, ") && text.contains("/s, ") && text.ends_with(" left"),
            "{text}"
        );
        assert!(
            bar.html("loss <1>").contains("value=\"1\" max=\"4\"") && bar.html("loss <1>").contains("loss &lt;1&gt;")
        );
        (0..3).for_each(|i| bar.came(i < 2));
        assert!(bar.ended && !bar.told("").contains("left") && bar.told("").starts_with("4/4"), "{}", bar.told(""));
        assert_eq!(progress(vec![1, 2, 3]).map(|x| x * 2).collect::<Vec<_>>(), [2, 4, 6]);
        let mut unknown = Bar::new(None);
        (0..2).for_each(|_| unknown.came(true));
        assert!(unknown.text("").starts_with("1, "), "{}", unknown.text(""));
        assert!(Bar::new(Some(0)).text("").starts_with(&"█".repeat(24)));
    }
}
