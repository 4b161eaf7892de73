//! What a notebook depends on: as it is written (`:dep`), as it was built, and as the disk keeps that.
use crate::engine::{Failure, sentence};
use crate::eval::text::untrusted;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Dependencies that are built and in force.
#[derive(Debug, PartialEq)]
pub struct Deps {
    /// At least one. What a later `:dep` brings is linked to what is there, whose statics therefore stay.
    pub stages: Vec<Stage>,
    /// Extra arguments for every rustc.
    pub options: Vec<String>,
    /// Crates of which there are several versions, none of which a cell can name.
    pub several: Vec<String>,
    /// The crate in which tokio's runtime is, when there is one: it is entered before a cell runs.
    pub tokio: Option<String>,
}

/// Dependencies that were linked together, as one dylib: their statics exist once, in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Named by a hash of what is in it.
    pub crate_name: String,
    pub library: PathBuf,
    pub wanted: Wanted,
}

/// What the user wrote: name and right-hand side, in TOML.
pub type Wanted = BTreeMap<String, String>;

impl Deps {
    /// The crate that leads to all of them.
    pub fn crate_name(&self) -> &str {
        self.stages.last().map_or("", |s| &s.crate_name)
    }

    /// Each crate with the file that it is in.
    pub fn crates(&self) -> impl Iterator<Item = (&str, &str)> {
        self.options.iter().filter_map(|o| o.strip_prefix("--extern=")?.split_once('='))
    }

    pub fn wanted(&self) -> Wanted {
        self.stages.iter().flat_map(|s| s.wanted.clone()).collect()
    }

    /// Whether all that was there is still there, as it was.
    pub fn extends(&self, earlier: &Deps) -> bool {
        self.stages.starts_with(&earlier.stages)
    }

    /// Crates that are other ones in `later`, because of other features or another text: their types are others too.
    pub fn compiled_anew(&self, later: &Deps) -> Vec<String> {
        let now: BTreeMap<&str, &str> = later.crates().collect();
        let other = |(name, file): (&str, &str)| now.get(name).is_some_and(|f| *f != file).then(|| name.to_owned());
        self.crates().filter_map(other).collect()
    }
}

/// One `:dep` line: `name`, `name = "1"` or `name = { … }`; several are separated by line breaks.
pub fn parse(line: &str) -> Result<(String, String), Failure> {
    let bad = |what: &str| {
        sentence(
            "DependencyError",
            format!("{what}: write `:dep name = \"1.2\"` or `:dep name = {{ version = \"1.2\", features = [\"…\"] }}`"),
        )
    };
    let name = line.split('=').next().unwrap_or_default().trim().trim_matches('"');
    if !is_crates_name(name) {
        return Err(bad(&format!("`{name}` is no crate's name")));
    }
    let Some((_, written)) = line.split_once('=') else { return Ok((name.to_owned(), "\"*\"".to_owned())) };
    let written = written.trim();
    match value(written) {
        Some(toml::Value::Table(mut table)) => match table.get_mut("path") {
            // Paths are meant from the notebook's folder; the cargo project lies elsewhere.
            Some(toml::Value::String(path)) => {
                *path = std::path::absolute(&*path).unwrap_or_else(|_| PathBuf::from(&*path)).display().to_string();
                Ok((name.to_owned(), toml::Value::Table(table).to_string()))
            }
            _ => Ok((name.to_owned(), written.to_owned())),
        },
        Some(toml::Value::String(_)) => Ok((name.to_owned(), written.to_owned())),
        _ => Err(bad(&format!("`{written}` is no version and no table"))),
    }
}

fn is_crates_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

/// The right-hand side of a line of TOML.
fn value(written: &str) -> Option<toml::Value> {
    format!("wanted = {written}").parse::<toml::Table>().ok()?.remove("wanted").filter(|_| !written.contains('\n'))
}

/// Whether a dependency lies in a folder, where it may change.
pub fn is_in_a_folder(wanted: &str) -> bool {
    value(wanted).is_some_and(|v| v.get("path").is_some())
}

pub(super) fn to_json(deps: &Deps) -> Value {
    let stage = |s: &Stage| serde_json::json!({"crate": s.crate_name, "library": s.library, "wanted": s.wanted});
    let stages: Vec<Value> = deps.stages.iter().map(stage).collect();
    serde_json::json!({ "stages": stages, "options": deps.options, "several": deps.several, "tokio": deps.tokio })
}

/// Crates are named in code, and options are rustc's: nothing else may come in with them.
pub(super) fn of_json(json: &Value) -> Option<Deps> {
    let text = |v: &Value| v.as_str().map(str::to_owned);
    let krate = |v: &Value| text(v).filter(|name| untrusted::identifier(name).is_some());
    // A crate of a dependency may be called as Rust calls something else.
    let plain = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let option = |v: &Value| {
        text(v).filter(|o| match o.strip_prefix("--extern=").map(|e| e.split_once('=')) {
            Some(e) => e.is_some_and(|(name, _)| plain(name)),
            None => o.starts_with("-Ldependency="),
        })
    };
    let stage = |s: &Value| {
        let wish = |n: &String, w: &Value| text(w).filter(|w| is_crates_name(n) && value(w).is_some());
        let wanted = s["wanted"].as_object()?.iter().map(|(n, w)| Some((n.clone(), wish(n, w)?)));
        let library = PathBuf::from(text(&s["library"])?);
        Some(Stage { crate_name: krate(&s["crate"])?, library, wanted: wanted.collect::<Option<_>>()? })
    };
    let stages: Vec<Stage> = json["stages"].as_array()?.iter().map(stage).collect::<Option<_>>()?;
    let options: Vec<String> = json["options"].as_array()?.iter().map(option).collect::<Option<_>>()?;
    let several: Vec<String> = json["several"].as_array()?.iter().map(text).collect::<Option<_>>()?;
    let tokio = match &json["tokio"] {
        Value::Null => None,
        name => Some(krate(name)?),
    };
    Some(Deps { stages, options, several, tokio })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_build_comes_back_and_no_code_or_option_with_it() {
        let wanted = Wanted::from([("serde".to_owned(), "\"1\"".to_owned())]);
        let stage = |name: &str| Stage { crate_name: name.into(), library: "/l.so".into(), wanted: wanted.clone() };
        let deps = |name: &str, option: &str, tokio: &str| Deps {
            stages: vec![stage(name)],
            options: vec!["-Ldependency=/d".into(), option.into()],
            several: vec!["syn".into()],
            tokio: Some(tokio.into()),
        };
        let again = |deps: &Deps| of_json(&to_json(deps));
        let good = deps("xlazy_deps_1", "--extern=serde=/s.rlib", "tokio");
        assert_eq!(again(&good), Some(good));
        assert_eq!(again(&deps("a; evil!()", "--extern=serde=/s.rlib", "tokio")), None);
        assert_eq!(again(&deps("a", "-Clinker=/evil", "tokio")), None);
        assert_eq!(again(&deps("a", "--extern=noprelude:a b=/s.rlib", "tokio")), None);
        assert_eq!(again(&deps("a", "--extern=serde=/s.rlib", "a::b(); c")), None);
        let mut json = to_json(&deps("a", "--extern=type=/s.rlib", "tokio"));
        assert!(of_json(&json).is_some());
        json["stages"][0]["wanted"] = serde_json::json!({ "serde": "\"1\"\n[profile.dev]" });
        assert_eq!(of_json(&json), None);
    }

    #[test]
    fn lines_are_understood_or_refused() {
        let ok = |line: &str| parse(line).map_err(|f| f.message);
        assert_eq!(ok("serde_json = \"1\""), Ok(("serde_json".into(), "\"1\"".into())));
        assert_eq!(ok("regex"), Ok(("regex".into(), "\"*\"".into())));
        let table = "{ version = \"1\", features = [\"derive\"] }";
        assert_eq!(ok(&format!("serde = {table}")), Ok(("serde".into(), table.into())));
        let (_, here) = ok("abspath = { path = 'a b' }").unwrap();
        assert!(is_in_a_folder(&here) && here.contains(&format!("{}/a b", std::env::current_dir().unwrap().display())));
        let (_, plain) = ok("xpath = { version = \"1\", features = [\"path\"] }").unwrap();
        assert!(!is_in_a_folder(&plain) && !is_in_a_folder("\"1\""));
        assert!(ok("se rde = \"1\"").unwrap_err().contains("no crate's name"));
        assert!(ok("serde = 1").unwrap_err().contains("no version"));
    }
}
