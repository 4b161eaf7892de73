//! What cargo knows of crates on this machine: which it has fetched, and the features that its copy of the index names.
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn home() -> PathBuf {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    home.or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cargo"))).unwrap_or_default()
}

fn list(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect()
}

/// Crates that cargo has fetched, with their versions, the oldest first.
pub fn cached() -> BTreeMap<String, Vec<String>> {
    let home = home();
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for registry in ["registry/cache", "registry/src"].iter().flat_map(|d| list(&home.join(d))) {
        for path in list(&registry) {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let file = file.trim_end_matches(".crate");
            let version =
                file.match_indices('-').find(|(i, _)| file[i + 1..].starts_with(|c: char| c.is_ascii_digit()));
            if let Some((at, _)) = version {
                let versions = out.entry(file[..at].to_owned()).or_default();
                if !versions.iter().any(|v| *v == file[at + 1..]) {
                    versions.push(file[at + 1..].to_owned());
                }
            }
        }
    }
    let parts = |v: &String| v.split(['.', '-', '+']).map(|p| p.parse::<u64>().unwrap_or(0)).collect::<Vec<_>>();
    out.values_mut().for_each(|versions| versions.sort_by_key(parts));
    out
}

/// The features of a crate's newest version in the index, and what each turns on.
pub fn features(name: &str) -> Vec<(String, String)> {
    let name = name.to_lowercase();
    if !name.is_ascii() || name.is_empty() || name.contains(['/', '.']) {
        return Vec::new();
    }
    let folder = match name.len() {
        1 | 2 => name.len().to_string(),
        3 => format!("3/{}", &name[..1]),
        _ => format!("{}/{}", &name[..2], &name[2..4]),
    };
    let files = list(&home().join("registry/index")).into_iter().map(|d| d.join(".cache").join(&folder).join(&name));
    files
        .filter_map(|file| std::fs::read(file).ok())
        .map(|bytes| named(&bytes))
        .find(|f| !f.is_empty())
        .unwrap_or_default()
}

/// Of a file of the index as cargo keeps it: versions and what is known of each, in turn, with zeros between, the newest last.
fn named(file: &[u8]) -> Vec<(String, String)> {
    let versions = file.split(|b| *b == 0).filter(|part| part.starts_with(b"{"));
    let versions: Vec<Value> = versions.filter_map(|json| serde_json::from_slice(json).ok()).collect();
    let released = |v: &&Value| {
        v["yanked"].as_bool() != Some(true) && v["vers"].as_str().is_some_and(|number| !number.contains('-'))
    };
    let Some(newest) = versions.iter().rfind(released).or(versions.last()) else { return Vec::new() };
    let mut out: BTreeMap<String, String> = BTreeMap::new();
    let mut hidden = BTreeSet::new();
    for (feature, on) in [&newest["features"], &newest["features2"]].into_iter().filter_map(Value::as_object).flatten()
    {
        let on: Vec<&str> = on.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        hidden.extend(on.iter().filter_map(|other| other.strip_prefix("dep:")).map(str::to_owned));
        out.insert(feature.clone(), on.join(", "));
    }
    // A crate that need not be there is a feature of its name, unless a feature asks for it by `dep:`.
    for dep in newest["deps"].as_array().into_iter().flatten().filter(|d| d["optional"].as_bool() == Some(true)) {
        if let Some(name) = dep["name"].as_str().filter(|name| !hidden.contains(*name)) {
            out.entry(name.to_owned()).or_default();
        }
    }
    out.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_those_of_the_newest_version() {
        let versions = [
            r#"{"vers":"1.0.0","features":{"old":[]},"deps":[]}"#,
            r#"{"vers":"1.1.0","features":{"default":["std"],"std":[],"fast":["dep:rayon"]},"deps":[
                {"name":"rayon","optional":true},{"name":"serde","optional":true},{"name":"libc","optional":false}]}"#,
            r#"{"vers":"2.0.0-beta","features":{"new":[]},"deps":[]}"#,
        ];
        let file =
            ["\u{3}", "etag: x", "1.0.0", versions[0], "1.1.0", versions[1], "2.0.0-beta", versions[2], ""].join("\0");
        let names: Vec<String> = named(file.as_bytes()).into_iter().map(|f| f.0).collect();
        assert_eq!(names, ["default", "fast", "serde", "std"]);
        assert!(named(b"nothing of the kind").is_empty());
    }
}
