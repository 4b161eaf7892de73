//! MIME bundles: one value in the several forms a front end may choose from.

use crate::gather::found;
use std::path::Path;
use std::{fmt, io};

/// A display in parts, a JSON list of texts, for who shows one after the other: beside the forms that show all of them.
pub const PAGES: &str = "application/vnd.xlazy.pages+json";

/// What names of files end in, by what is in them.
const ENDINGS: [(&str, &str); 6] = [
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("html", "text/html"),
    ("md", "text/markdown"),
    ("json", "application/json"),
    ("txt", "text/plain"),
];

/// The content of one MIME type.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Text(String),
    /// Binary content (images); sent as base64 where the protocol is text.
    Bytes(Vec<u8>),
}

/// A value in one or more MIME types, in the order they were added. `text/plain` is the twin every display carries.
#[derive(Clone, Default, PartialEq)]
pub struct Bundle {
    pub entries: Vec<(String, Content)>,
    /// What of it is the same whenever the same value is shown, where that is not its plain text: how long a compile took,
    /// and from where the program came, are not. Front ends don't see it.
    pub lasting: Option<String>,
}

impl Bundle {
    /// A bundle of plain text alone.
    pub fn text(plain: impl Into<String>) -> Bundle {
        Bundle::default().with("text/plain", plain)
    }

    /// HTML with its plain-text twin.
    pub fn html(html: impl Into<String>, plain: impl Into<String>) -> Bundle {
        Bundle::text(plain).with("text/html", html)
    }

    /// Adds textual content of one MIME type, replacing what was there of that type.
    pub fn with(self, mime: &str, text: impl Into<String>) -> Bundle {
        self.with_content(mime, Content::Text(text.into()))
    }

    /// Adds binary content of one MIME type, replacing what was there of that type.
    pub fn with_bytes(self, mime: &str, bytes: Vec<u8>) -> Bundle {
        self.with_content(mime, Content::Bytes(bytes))
    }

    fn with_content(mut self, mime: &str, content: Content) -> Bundle {
        self.entries.retain(|(m, _)| m != mime);
        self.entries.push((mime.to_owned(), content));
        self
    }

    /// The text of a MIME type, if the bundle has it as text.
    pub fn get(&self, mime: &str) -> Option<&str> {
        self.entries.iter().find_map(|(m, c)| match c {
            Content::Text(t) if m == mime => Some(t.as_str()),
            _ => None,
        })
    }

    /// Says what of it is the same whenever the same value is shown.
    pub fn lasting(self, text: impl Into<String>) -> Bundle {
        Bundle { lasting: Some(text.into()), ..self }
    }

    /// Says that it tells of a moment - times, programs, memory - and nothing of it is the same when the cell is run again.
    pub fn passing(self) -> Bundle {
        self.lasting("")
    }

    /// What is compared, where two runs of a cell are.
    pub fn what_lasts(&self) -> &str {
        self.lasting.as_deref().unwrap_or_else(|| self.plain())
    }

    /// Writes the form of a display that the ending of a file's name asks for: `.png`, `.svg`, `.html`, `.md`, `.json`, `.txt`
    /// (`matplotlib.pyplot.savefig`).
    ///
    /// Errors: the display has no such form; what the system says of the file.
    ///
    /// ```
    /// let file = std::env::temp_dir().join(format!("{}.html", std::process::id()));
    /// xlazy_mime::Bundle::html("<b>bold</b>", "bold").save(&file).unwrap();
    /// assert_eq!(std::fs::read_to_string(&file).unwrap(), "<b>bold</b>");
    /// # std::fs::remove_file(file).unwrap();
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        let mime = ENDINGS.iter().find(|(e, _)| *e == ending).map(|(_, mime)| *mime);
        match self.entries.iter().find(|(m, _)| Some(&**m) == mime) {
            Some((_, Content::Text(text))) => std::fs::write(path, text),
            Some((_, Content::Bytes(bytes))) => std::fs::write(path, bytes),
            None => {
                let there = ENDINGS.iter().filter(|(_, mime)| self.entries.iter().any(|(m, _)| m == mime));
                let there: Vec<String> = there.map(|(e, _)| format!("`.{e}`")).collect();
                let said = format!("{} cannot be written: this display has {}", path.display(), there.join(", "));
                Err(io::Error::new(io::ErrorKind::InvalidInput, said))
            }
        }
    }

    /// The plain-text twin, empty where there is none.
    pub fn plain(&self) -> &str {
        self.get("text/plain").unwrap_or("")
    }
}

/// A value that shows itself as a MIME bundle: implement it for your own types to display them in a notebook.
pub trait Rich {
    fn rich(&self) -> Bundle;
}

/// Inside of another value that is shown it is what it shows.
impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        found(f, || Box::new(self.clone())).unwrap_or_else(|| {
            f.debug_struct("Bundle").field("entries", &self.entries).field("lasting", &self.lasting).finish()
        })
    }
}

/// Its text.
impl fmt::Display for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.plain())
    }
}

impl Rich for Bundle {
    fn rich(&self) -> Bundle {
        self.clone()
    }
}

macro_rules! rich_through_pointers {
    ($($pointer:ty)*) => {$(
        impl<T: Rich + ?Sized> Rich for $pointer {
            fn rich(&self) -> Bundle {
                (**self).rich()
            }
        }
    )*};
}
rich_through_pointers!(&T &mut T Box<T> std::rc::Rc<T> std::sync::Arc<T>);
