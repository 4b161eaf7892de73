//! Cargo.lock, as far as `:dep` needs to change it.

/// The lock that cargo wrote, without what xlazy itself adds to it, and of an older one the packages that it says nothing
/// of: cargo forgets what is not asked for yet, and the next `:dep` of a notebook would take whatever is the newest by then.
pub fn union(new: &str, old: &str) -> String {
    const PACKAGE: &str = "[[package]]";
    let packages = |lock: &str| -> Vec<(String, String)> {
        let named = lock.split(PACKAGE).skip(1).filter_map(|p| Some((name(p)?, p.trim().to_owned())));
        named.filter(|(name, _)| !name.starts_with("xlazy_deps")).collect()
    };
    let mut all = packages(new);
    let mut missing = packages(old);
    // Two versions of a crate stand side by side where they are not compatible.
    let same = |a: &(String, String), b: &(String, String)| a.0 == b.0 && compatible(&a.1) == compatible(&b.1);
    missing.retain(|old| !all.iter().any(|new| same(new, old)));
    all.append(&mut missing);
    all.sort();
    let head = new.split(PACKAGE).next().unwrap_or_default().trim_end();
    all.iter().fold(format!("{head}\n"), |text, (_, package)| format!("{text}\n{PACKAGE}\n{package}\n"))
}

/// The version up to its first number that is not 0.
fn compatible(package: &str) -> String {
    let version = package.lines().find_map(|l| l.strip_prefix("version = ")).unwrap_or_default().trim_matches('"');
    let parts: Vec<&str> = version.split('.').collect();
    let end = parts.iter().position(|p| *p != "0").map_or(parts.len(), |i| i + 1);
    parts[..end].join(".")
}

fn name(package: &str) -> Option<String> {
    Some(package.lines().find_map(|l| l.strip_prefix("name = "))?.trim_matches('"').to_owned())
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
}
