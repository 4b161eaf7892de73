//! HTML of displays: text, sentences, tables. Text becomes HTML by [`escape_html`] and nowhere else, and tables escape what
//! they are given, so that a label of user code is never markup.
use std::fmt::Write;

/// Escapes text for HTML content and quoted attributes.
pub fn escape_html(text: &str) -> String {
    html_escape::encode_quoted_attribute(text).into_owned()
}

/// A sentence as HTML, with what stands between backticks set as code.
pub fn prose_html(sentence: &str) -> String {
    let parts: Vec<String> = sentence.split('`').map(escape_html).collect();
    if parts.len().is_multiple_of(2) {
        return escape_html(sentence);
    }
    let set = |(i, part): (usize, &String)| if i % 2 == 1 { format!("<code>{part}</code>") } else { part.clone() };
    parts.iter().enumerate().map(set).collect()
}

/// A table. Styles are inline, because front ends strip style sheets from outputs.
///
/// ```
/// use xlazy_mime::{Cell, Table};
/// let mut table = Table::new("font-family:monospace");
/// table.head(["op", "bytes"]);
/// table.row([Cell::text("a < b").left(), Cell::text("16 B")]);
/// assert!(table.html().contains("<td style=\"text-align:left\">a &lt; b</td><td>16 B</td>"));
/// ```
pub struct Table(String);

impl Table {
    /// `style` is that of the whole table, in CSS.
    pub fn new(style: &str) -> Table {
        Table(format!("<table{}>", attribute(style)))
    }

    /// The row of the columns' names.
    pub fn head<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.0.push_str("<thead>");
        self.row(cells.into_iter().map(|c| c.into().heading()));
        self.0.push_str("</thead>");
    }

    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.0.push_str("<tr>");
        for cell in cells {
            let Cell { html, style, heading } = cell.into();
            let tag = if heading { "th" } else { "td" };
            let _ = write!(self.0, "<{tag}{}>{html}</{tag}>", attribute(&style));
        }
        self.0.push_str("</tr>");
    }

    pub fn html(self) -> String {
        self.0 + "</table>"
    }
}

fn attribute(style: &str) -> String {
    if style.is_empty() { String::new() } else { format!(" style=\"{}\"", escape_html(style)) }
}

/// A cell of a [`Table`].
#[derive(Clone, Debug)]
pub struct Cell {
    html: String,
    style: String,
    heading: bool,
}

impl Cell {
    pub fn text(text: &str) -> Cell {
        Cell::html(escape_html(text))
    }

    /// What is HTML already.
    pub fn html(html: impl Into<String>) -> Cell {
        Cell { html: html.into(), style: String::new(), heading: false }
    }

    /// Names its column or row.
    pub fn heading(self) -> Cell {
        Cell { heading: true, ..self }
    }

    /// More of its style, in CSS.
    pub fn style(mut self, css: &str) -> Cell {
        if !self.style.is_empty() && !css.is_empty() {
            self.style.push(';');
        }
        self.style.push_str(css);
        self
    }

    pub fn left(self) -> Cell {
        self.style("text-align:left")
    }

    pub fn right(self) -> Cell {
        self.style("text-align:right")
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_set_code() {
        assert_eq!(prose_html("`x` <is> `a<b>`"), "<code>x</code> &lt;is&gt; <code>a&lt;b&gt;</code>");
        assert_eq!(prose_html("one ` alone"), "one ` alone");
    }

    #[test]
    fn no_text_is_markup_in_a_table() {
        let bad = "<script>'\"&</script>";
        let mut table = Table::new(bad);
        table.head([bad]);
        table.row([Cell::text(bad).style(bad).right()]);
        let html = table.html();
        let tags: Vec<&str> = html.split('<').skip(1).map(|t| t.split([' ', '>']).next().unwrap()).collect();
        assert_eq!(tags, ["table", "thead", "tr", "th", "/th", "/tr", "/thead", "tr", "td", "/td", "/tr", "/table"]);
        assert!(html.matches('"').count() == 4 && !html.contains('\''), "{html}");
    }
}
