//! Cargo.lock, as far as `:dep` needs to change it. One that lies beside a notebook is data: its packages are read, and
//! written anew.
use toml::{Table, Value};

/// The lock that cargo wrote, without what xlazy itself adds to it, and of an older one the packages that it says nothing
/// of: cargo forgets what is not asked for yet, and the next `:dep` of a notebook would take whatever is the newest by then.
pub fn union(new: &str, old: &str) -> String {
    let packages = |lock: &str| -> Vec<Package> {
        let all = packages(lock).unwrap_or_default();
        all.into_iter().filter(|p| !p.name.starts_with("xlazy_deps")).collect()
    };
    let mut all = packages(new);
    let mut missing = packages(old);
    // Two versions of a crate stand side by side where they are not compatible.
    let same = |a: &Package, b: &Package| a.name == b.name && compatible(&a.version) == compatible(&b.version);
    missing.retain(|old| !all.iter().any(|new| same(new, old)));
    all.append(&mut missing);
    all.sort();
    let head = new.split("[[package]]").next().unwrap_or_default().trim_end();
    all.iter().fold(format!("{head}\n"), |text, package| text + "\n" + &package.text())
}

/// Whether it is a lock, or empty; if not, why.
pub fn check(lock: &str) -> Result<(), String> {
    packages(lock).map(drop)
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    source: Option<String>,
    checksum: Option<String>,
    dependencies: Vec<String>,
}

impl Package {
    fn of(package: &Value) -> Option<Package> {
        let plain = |text: &str| text.chars().all(|c| c.is_ascii_graphic() || c == ' ') && !text.contains(['"', '\\']);
        let text = |v: &Value| v.as_str().filter(|t| plain(t)).map(str::to_owned);
        let maybe = |key: &str| package.get(key).map_or(Some(None), |v| text(v).map(Some));
        let needs = package.get("dependencies").map(|v| v.as_array()?.iter().map(text).collect());
        Some(Package {
            name: text(package.get("name")?)?,
            version: text(package.get("version")?)?,
            source: maybe("source")?,
            checksum: maybe("checksum")?,
            dependencies: needs.unwrap_or_else(|| Some(Vec::new()))?,
        })
    }

    /// As cargo writes it.
    fn text(&self) -> String {
        let mut out = format!("[[package]]\nname = \"{}\"\nversion = \"{}\"\n", self.name, self.version);
        for (key, value) in [("source", &self.source), ("checksum", &self.checksum)] {
            out += &value.as_ref().map(|v| format!("{key} = \"{v}\"\n")).unwrap_or_default();
        }
        if !self.dependencies.is_empty() {
            let list: String = self.dependencies.iter().map(|d| format!(" \"{d}\",\n")).collect();
            out += &format!("dependencies = [\n{list}]\n");
        }
        out
    }
}

fn packages(lock: &str) -> Result<Vec<Package>, String> {
    let lock: Table = lock.parse().map_err(|e: toml::de::Error| e.message().to_owned())?;
    let Some(packages) = lock.get("package") else { return Ok(Vec::new()) };
    let all = packages.as_array().and_then(|all| all.iter().map(Package::of).collect::<Option<_>>());
    all.ok_or_else(|| "it has a package without a name and a version, or with something else than text".to_owned())
}

/// The version up to its first number that is not 0.
fn compatible(version: &str) -> String {
    let parts: Vec<&str> = version.split('.').collect();
    let end = parts.iter().position(|p| *p != "0").map_or(parts.len(), |i| i + 1);
    parts[..end].join(".")
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_cargo_forgets_is_kept() {
        let package = |name: &str, version: &str| format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n");
        let head = "# written by cargo\nversion = 4\n\n";
        let old = [head.to_owned(), package("a", "1.0.0"), package("b", "1.0.0"), package("xlazy_deps_2", "0.0.0")];
        let new = [head.to_owned(), package("a", "1.1.0"), package("xlazy_deps_1", "0.0.0")];
        let both = [head.to_owned(), package("a", "1.1.0"), package("b", "1.0.0")];
        let alone = [head.to_owned(), package("a", "1.1.0")];
        let lock = |parts: &[String]| parts[0].clone() + &parts[1..].join("\n");
        assert_eq!(super::union(&lock(&new), &lock(&old)), lock(&both));
        assert_eq!(super::union(&lock(&new), ""), lock(&alone));
        assert_eq!(super::union(&lock(&both), &lock(&new)), lock(&both));
    }

    #[test]
    fn packages_come_back_as_cargo_wrote_them_and_nothing_comes_with_them() {
        let head = "# written by cargo\nversion = 4\n";
        let cargos = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry+https://x/index\"\n\
                      checksum = \"00ff\"\ndependencies = [\n \"b\",\n \"c 1.0.0\",\n]\n";
        let more = "\n[patch.crates-io]\na = { path = \"evil\" }\n";
        assert_eq!(super::union(head, &format!("{head}\n{cargos}{more}")), format!("{head}\n{cargos}"));
        for none in [
            "not a lock",
            "package = 1",
            "[[package]]\nname = \"a\"",
            "[[package]]\nname = \"a\\n[x]\"\nversion = \"1\"",
        ] {
            assert!(super::check(none).is_err(), "{none}");
            assert_eq!(super::union(head, none), head);
        }
        assert!(super::check("").is_ok() && super::check(head).is_ok());
    }
}
