//! Slices that Google's pods have: their shapes, and the names under which they are sold.
//!
//! libtpu takes any shape that its hosts can make up, also ones that no pod has, so the published ones are listed here.
use super::chips::CHIPS;
use crate::{Error, Result};

/// How the slices of one generation are made up.
struct Pods {
    name: &'static str,
    /// What a product's name is made of, such as `v5litepod` besides `v5e`.
    other_name: &'static str,
    /// Of two dimensions: all of them. Of three: those of fewer than 64 chips; above, each dimension is a multiple of four.
    sizes: &'static [&'static str],
    /// The most chips of a slice of three dimensions.
    most: u32,
    /// Whether the number in a product's name counts cores, two to a chip.
    cores: bool,
}

const FLAT: &[&str] = &["1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16"];
const CUBES: &[&str] = &["1x1x1", "2x2x1", "2x2x2", "2x2x4", "2x4x4"];

const PODS: &[Pods] = &[
    Pods { name: "v2", other_name: "v2", sizes: &["1x1", "2x2", "4x4", "8x8", "8x16", "16x16"], most: 0, cores: true },
    Pods {
        name: "v3",
        other_name: "v3",
        sizes: &["1x1", "2x2", "4x4", "4x8", "8x8", "8x16", "16x16", "16x32", "32x32"],
        most: 0,
        cores: true,
    },
    Pods { name: "v4", other_name: "v4", sizes: CUBES, most: 4096, cores: true },
    Pods { name: "v5e", other_name: "v5litepod", sizes: FLAT, most: 0, cores: false },
    Pods { name: "v5p", other_name: "v5p", sizes: CUBES, most: 6144, cores: true },
    Pods { name: "v6e", other_name: "v6e", sizes: FLAT, most: 0, cores: false },
    Pods { name: "tpu7x", other_name: "tpu7x", sizes: CUBES, most: 9216, cores: true },
];

fn chips_of(layout: &str) -> u32 {
    layout.split('x').filter_map(|d| d.parse::<u32>().ok()).product()
}

impl Pods {
    /// All slices by size, the most cube-like first of those that are as large.
    fn all(&self) -> Vec<String> {
        let mut all: Vec<String> = self.sizes.iter().map(|s| (*s).to_owned()).collect();
        let mut cubes: Vec<[u32; 3]> = Vec::new();
        let fours = || (4..=self.most / 16).step_by(4);
        for a in fours().take_while(|a| a * a * a <= self.most) {
            for b in fours().skip_while(|b| *b < a).take_while(|b| a * b * b <= self.most) {
                let long = fours().skip_while(|c| *c < b).take_while(|c| a * b * c <= self.most);
                cubes.extend(long.map(|c| [a, b, c]));
            }
        }
        cubes.sort_by_key(|c| (c.iter().product::<u32>(), c[2] - c[0]));
        all.extend(cubes.iter().map(|[a, b, c]| format!("{a}x{b}x{c}")));
        all
    }

    /// As a product's name has it.
    fn counted(&self, layout: &str) -> u32 {
        chips_of(layout) * if self.cores { 2 } else { 1 }
    }

    /// The slices around a number of chips: the largest of fewer, and the smallest of more.
    fn nearest(&self, chips: u32) -> Vec<String> {
        let all = self.all();
        let most = all.iter().map(|s| chips_of(s)).filter(|n| *n <= chips).max();
        let less = all.iter().find(|s| Some(chips_of(s)) == most);
        let more = all.iter().find(|s| chips_of(s) > chips);
        let called = |s: &String| format!("{}:{s} ({}-{})", self.name, self.name, self.counted(s));
        less.into_iter().chain(more).map(called).collect()
    }
}

fn refused(message: String) -> Error {
    Error::Usage { message }
}

/// A slice as libtpu writes it: a product's name (`v3-2048`, `v5e-256`, `v5litepod-16`), a chip with a layout (`v5p:4x4x8`), or a
/// chip alone. Names are in lower case.
///
/// Errors: no such chip, and a size that no pod has, with the nearest that there are.
pub(super) fn slice(text: &str) -> Result<String> {
    let unknown = || {
        let names = CHIPS.iter().map(|c| c.name).collect::<Vec<_>>().join(", ");
        refused(format!(
            "{text:?} is no TPU topology: write a chip and how many there are along each axis, such as v5e:2x2 or v5p:2x2x1, or \
             a slice's name, such as v5e-256 or v3-2048; the chips are {names}"
        ))
    };
    let of = |name: &str| PODS.iter().find(|p| p.name == name || p.other_name == name).ok_or_else(unknown);
    if let Some((name, number)) = text.split_once('-') {
        let (pods, number) = (of(name)?, number.parse::<u32>().map_err(|_| unknown())?);
        let found = pods.all().into_iter().find(|s| pods.counted(s) == number);
        return found.map(|s| format!("{}:{s}", pods.name)).ok_or_else(|| {
            let what = if pods.cores { "cores" } else { "chips" };
            let near = pods.nearest(if pods.cores { number.div_ceil(2) } else { number });
            refused(format!("there is no {name}-{number}, of {number} {what}: the nearest are {}", near.join(" and ")))
        });
    }
    let (name, layout) = text.split_once(':').unwrap_or((text, ""));
    let pods = of(name)?;
    if layout.is_empty() && text == name {
        // A chip alone, as libtpu has always taken it.
        return Ok(format!("{}:1x1", pods.name));
    }
    let dims: Vec<u32> = layout.split('x').map(|d| d.parse().unwrap_or(0)).collect();
    if dims.contains(&0) || !(2..=3).contains(&dims.len()) {
        return Err(unknown());
    }
    let canonical = |dims: &[u32]| {
        let mut all: Vec<u32> = dims.iter().copied().filter(|&d| d > 1).collect();
        all.sort_unstable();
        all
    };
    let same =
        |s: &String| canonical(&s.split('x').filter_map(|d| d.parse().ok()).collect::<Vec<_>>()) == canonical(&dims);
    // A part of one host's chips is there to be tried, too.
    let chips: u32 = dims.iter().fold(1, |n, d| n.saturating_mul(*d));
    if chips <= 4 && dims.iter().all(|&d| d <= 2) || pods.all().iter().any(same) {
        return Ok(format!("{}:{layout}", pods.name));
    }
    let near = pods.nearest(chips).join(" and ");
    Err(refused(format!(
        "no pod has {}:{layout}, which would be {chips} chips: the nearest slices are {near}",
        pods.name
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_slices() {
        let cases = [
            ("v3-2048", "v3:32x32"),
            ("v3-8", "v3:2x2"),
            ("v2-512", "v2:16x16"),
            ("v5e-256", "v5e:16x16"),
            ("v5litepod-16", "v5e:4x4"),
            ("v6e-8", "v6e:2x4"),
            ("v4-8", "v4:2x2x1"),
            ("v4-128", "v4:4x4x4"),
            ("v5p-2048", "v5p:8x8x16"),
            ("v5p-12288", "v5p:16x16x24"),
            ("v5p:16x16x24", "v5p:16x16x24"),
            ("v4:4x4x4", "v4:4x4x4"),
            ("v5e", "v5e:1x1"),
            ("v5e:4x2", "v5e:4x2"),
            ("v5p:2x2x1", "v5p:2x2x1"),
        ];
        for (name, layout) in cases {
            assert_eq!(slice(name).unwrap(), layout, "{name}");
        }
    }

    #[test]
    fn what_no_pod_has_is_refused_with_what_is_near() {
        let cases = [
            ("v3:64x64", "no pod has v3:64x64, which would be 4096 chips: the nearest slices are v3:32x32 (v3-2048)"),
            ("v3-4096", "there is no v3-4096, of 4096 cores: the nearest are v3:32x32 (v3-2048)"),
            ("v5e-24", "there is no v5e-24, of 24 chips: the nearest are v5e:4x4 (v5e-16) and v5e:4x8 (v5e-32)"),
            ("v5e:3x3", "the nearest slices are v5e:2x4 (v5e-8) and v5e:4x4 (v5e-16)"),
            ("v4:16x16x32", "the nearest slices are v4:16x16x16 (v4-8192)"),
            ("v5p:4x4x5", "the nearest slices are v5p:4x4x4 (v5p-128) and v5p:4x4x8 (v5p-256)"),
        ];
        for (name, says) in cases {
            let said = slice(name).unwrap_err().to_string();
            assert!(said.contains(says), "{name}: {said}");
        }
        for wrong in ["v9z:1x1", "v5e:", "v5e:2", "v5e:0x1", "v5e:2x2x2x2", "v5e:axb", "", "v5e-x", "v9-8"] {
            assert!(slice(wrong).unwrap_err().to_string().contains("tpu7x"), "{wrong}");
        }
        // Every slice is one by either of its names, and no two have one name.
        for pods in PODS {
            for layout in pods.all() {
                assert_eq!(slice(&format!("{}:{layout}", pods.name)).unwrap(), format!("{}:{layout}", pods.name));
                let named = slice(&format!("{}-{}", pods.name, pods.counted(&layout))).unwrap();
                assert_eq!(chips_of(named.split_once(':').unwrap().1), chips_of(&layout));
            }
        }
    }
}
