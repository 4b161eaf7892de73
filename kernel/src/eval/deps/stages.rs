//! What a notebook depends on: as it is written (`:dep`), as it was built, and as the disk keeps that.
use crate::engine::{Failure, sentence};
use crate::eval::text::untrusted;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use xlazy_mime::regular;

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
    /// At which they are optimised, all of them: what a later `:dep` brings is linked to what is there.
    pub level: u8,
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

/// What one `:dep` asks for: `name`, `name = "1"`, `name = { … }`, the folder of a crate (`./name`, `{ path = "name" }`), or a
/// table of several (`{ a = "1", b = "2" }`).
pub fn parse(line: &str) -> Result<Wanted, Failure> {
    // An inline table may go over several lines.
    let line = line.replace('\n', " ");
    let line = line.trim();
    if line.starts_with(['.', '/']) {
        let folder = toml::Table::from_iter([("path".to_owned(), line.into())]);
        return Ok([in_folder(folder)?].into());
    }
    if line.starts_with('{') {
        let Some(toml::Value::Table(table)) = value(line) else { return Err(bad(&format!("`{line}` is no table"))) };
        if table.get("path").is_some_and(toml::Value::is_str) {
            return Ok([in_folder(table)?].into());
        }
        return table.into_iter().map(|(name, what)| one(&name, what)).collect();
    }
    let name = line.split('=').next().unwrap_or_default().trim().trim_matches('"');
    let Some((_, written)) = line.split_once('=') else { return Ok([one(name, "*".into())?].into()) };
    let what = value(written.trim()).ok_or_else(|| bad(&format!("`{}` is no version and no table", written.trim())))?;
    Ok([one(name, what)?].into())
}

fn bad(what: &str) -> Failure {
    sentence(
        "DependencyError",
        format!(
            "{what}: write `:dep name = \"1.2\"` or `:dep name = {{ version = \"1.2\", features = [\"…\"] }}`, and for a crate \
             of your own `:dep ./folder`"
        ),
    )
}

/// A crate's name, and what is wanted of it as a manifest has it.
fn one(name: &str, what: toml::Value) -> Result<(String, String), Failure> {
    if !is_crates_name(name) {
        return Err(bad(&format!("`{name}` is no crate's name")));
    }
    let written = match what {
        toml::Value::Table(mut table) => {
            // Paths are meant from the notebook's folder; the cargo project lies elsewhere.
            if let Some(toml::Value::String(path)) = table.get_mut("path") {
                *path = std::path::absolute(&*path).unwrap_or_else(|_| PathBuf::from(&*path)).display().to_string();
            }
            // As it was written before the edition that the project has.
            if let Some(default) = table.remove("default_features") {
                table.insert("default-features".to_owned(), default);
            }
            toml::Value::Table(table)
        }
        toml::Value::String(_) => what,
        other => return Err(bad(&format!("`{other}` is no version and no table"))),
    };
    Ok((name.to_owned(), written.to_string()))
}

/// A crate in a folder, by the name that its manifest has.
fn in_folder(table: toml::Table) -> Result<(String, String), Failure> {
    let path = table.get("path").and_then(toml::Value::as_str).unwrap_or_default();
    let manifest = std::path::Path::new(path).join("Cargo.toml");
    let no_crate = |why: String| sentence("DependencyError", format!("there is no crate in {path}: {why}"));
    let text = regular::read_to_string(&manifest).map_err(|e| no_crate(format!("{}: {e}", manifest.display())))?;
    let package = text.parse::<toml::Table>().map_err(|e| no_crate(format!("{}: {e}", manifest.display())))?;
    let name = package.get("package").and_then(|p| p.get("name")).and_then(toml::Value::as_str);
    let name = name.ok_or_else(|| no_crate(format!("{} names no package", manifest.display())))?.to_owned();
    one(&name, toml::Value::Table(table))
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
    serde_json::json!({ "stages": stages, "options": deps.options, "several": deps.several, "tokio": deps.tokio,
        "level": deps.level })
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
    let level = json["level"].as_u64().filter(|l| *l <= 3)? as u8;
    Some(Deps { stages, options, several, tokio, level })
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
            level: 2,
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
        let all = |line: &str| parse(line).map_err(|f| f.message);
        let ok = |line: &str| all(line).map(|wanted| wanted.into_iter().next().unwrap());
        assert_eq!(ok("serde_json = \"1\""), Ok(("serde_json".into(), "\"1\"".into())));
        assert_eq!(ok("regex"), Ok(("regex".into(), "\"*\"".into())));
        let table = "{ version = \"1\", features = [\"derive\"] }";
        assert_eq!(value(&ok(&format!("serde = {table}")).unwrap().1), value(table));
        assert_eq!(ok("serde = {\n  version = \"1\",\n  features = [\"derive\"]\n}"), ok(&format!("serde = {table}")));
        let (_, here) = ok("abspath = { path = 'a b' }").unwrap();
        assert!(is_in_a_folder(&here) && here.contains(&format!("{}/a b", std::env::current_dir().unwrap().display())));
        let (_, plain) = ok("xpath = { version = \"1\", features = [\"path\"] }").unwrap();
        assert!(!is_in_a_folder(&plain) && !is_in_a_folder("\"1\""));
        let (_, without) = ok("a = { version = \"1\", default_features = false }").unwrap();
        assert_eq!(value(&without).unwrap()["default-features"].as_bool(), Some(false));
        let several = all("{ rand = \"0.8\", serde = { version = \"1\", default_features = false } }").unwrap();
        assert_eq!(several.keys().collect::<Vec<_>>(), ["rand", "serde"]);
        assert!(several["serde"].contains("default-features"));
        let counter = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cells/crates/counter");
        for folder in [counter.to_owned(), format!("{{ path = \"{counter}\", features = [\"double\"] }}")] {
            let (name, what) = ok(&folder).unwrap();
            assert!(name == "counter" && is_in_a_folder(&what) && what.contains("double") == folder.contains("double"));
        }
        assert!(ok("./nowhere").unwrap_err().contains("no crate in ./nowhere"));
        assert!(ok("se rde = \"1\"").unwrap_err().contains("no crate's name"));
        assert!(ok("{ a = 1 }").unwrap_err().contains("no version"));
        assert!(ok("serde = 1").unwrap_err().contains("no version"));
    }
}
