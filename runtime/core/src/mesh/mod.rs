//! Meshes of devices, and which part of a value each device of one holds: shardings, as Shardy has them.
mod other;
mod picture;
mod uneven;

use crate::proto::Message;
use crate::ty::Shape;
use std::sync::{Arc, Mutex, PoisonError};

/// The first number that stands for a mesh where otherwise the number of a device is.
pub const FIRST: u8 = 224;
/// Meshes that a session can tell apart.
const MOST: usize = (u8::MAX - FIRST) as usize + 1;

/// Devices in a grid with named axes; those with the same axes are one mesh (`jax.sharding.Mesh`, torch_xla's `xs.Mesh`).
/// Device `i` is at the row-major position `i`.
#[derive(Clone, Copy)]
pub struct Mesh(&'static Known);

struct Known {
    axes: Vec<(String, usize)>,
    /// The devices by position, as the client counts them.
    devices: Vec<u8>,
    place: u8,
    name: String,
    /// Each device runs the whole program, on data of its own.
    ranks: bool,
}

static KNOWN: Mutex<Vec<&'static Known>> = Mutex::new(Vec::new());

impl PartialEq for Mesh {
    fn eq(&self, other: &Mesh) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Mesh {}

impl std::hash::Hash for Mesh {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.place.hash(state);
    }
}

/// `mesh(data=4, model=2)`
impl std::fmt::Display for Mesh {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.0.name)
    }
}

impl std::fmt::Debug for Mesh {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.0.name)
    }
}

impl Mesh {
    /// The mesh of these axes over so many of the client's devices, the first ones.
    ///
    /// Errors: why it is none, as a sentence.
    pub fn of(axes: &[(&str, usize)], devices: usize) -> Result<Mesh, String> {
        let named = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if axes.is_empty() {
            return Err("a mesh has one axis at least, as `Mesh::new(&[(\"data\", 8)])`".into());
        }
        for (i, (name, size)) in axes.iter().enumerate() {
            if !named(name) || *name == "None" {
                return Err(format!("{name:?} is no name of an axis: letters, digits and underscores, a letter first"));
            }
            if *size == 0 {
                return Err(format!("the axis `{name}` has no device: its size is 1 at least"));
            }
            if axes[..i].iter().any(|(other, _)| other == name) {
                return Err(format!("two axes are named `{name}`"));
            }
        }
        let says: Vec<String> = axes.iter().map(|(name, size)| format!("{name}={size}")).collect();
        let name = format!("mesh({})", says.join(", "));
        let wanted = axes.iter().try_fold(1usize, |n, (_, size)| n.checked_mul(*size)).unwrap_or(usize::MAX);
        if wanted > devices {
            return Err(too_few(&name, wanted, devices));
        }
        let axes = axes.iter().map(|(name, size)| (name.to_string(), *size)).collect();
        Mesh::known(name, axes, (0..wanted as u8).collect(), false)
    }

    fn known(name: String, axes: Vec<(String, usize)>, devices: Vec<u8>, ranks: bool) -> Result<Mesh, String> {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.iter().find(|k| k.name == name) {
            return Ok(Mesh(same));
        }
        if known.len() == MOST {
            return Err(format!("this session has {MOST} different meshes already: restart it, or use one of them"));
        }
        let place = FIRST + known.len() as u8;
        let new = Known { axes, devices, place, name, ranks };
        // There are few, and nodes refer to them as long as the session lives.
        let new: &'static Known = Box::leak(Box::new(new));
        known.push(new);
        Ok(Mesh(new))
    }

    /// Whether each device runs the whole program, on data of its own, and nothing is split.
    pub fn is_ranks(self) -> bool {
        self.0.ranks
    }

    /// The mesh that a number stands for where a device's could be.
    pub fn at(place: u8) -> Option<Mesh> {
        if place < FIRST {
            return None;
        }
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.get((place - FIRST) as usize).map(|k| Mesh(k))
    }

    /// The mesh that is shown like this.
    pub fn named(name: &str) -> Option<Mesh> {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|k| k.name == name).map(|k| Mesh(k))
    }

    /// The number that stands for it where a device's could be.
    pub fn place(self) -> u8 {
        self.0.place
    }

    /// As it is shown.
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// The axes with their sizes, the outermost first.
    pub fn axes(self) -> &'static [(String, usize)] {
        &self.0.axes
    }

    /// How many devices it has.
    pub fn size(self) -> usize {
        self.0.devices.len()
    }

    /// Its devices by position, as the client counts them.
    pub fn devices(self) -> &'static [u8] {
        &self.0.devices
    }

    /// The number of an axis.
    pub fn axis(self, name: &str) -> Option<usize> {
        self.0.axes.iter().position(|(n, _)| n == name)
    }

    /// How far apart neighbours along an axis are.
    fn stride(self, axis: usize) -> usize {
        self.0.axes[axis + 1..].iter().map(|(_, size)| size).product()
    }

    /// Where a device is along an axis.
    pub fn coordinate(self, position: usize, axis: usize) -> usize {
        position / self.stride(axis) % self.0.axes[axis].1
    }

    /// The devices that differ along these axes only, by position: the groups of a collective over them.
    pub fn groups(self, axes: &[usize]) -> Vec<Vec<usize>> {
        let key = |p: usize| -> Vec<usize> {
            (0..self.axes().len()).filter(|a| !axes.contains(a)).map(|a| self.coordinate(p, a)).collect()
        };
        let order = |p: usize| -> Vec<usize> { axes.iter().map(|&a| self.coordinate(p, a)).collect() };
        let mut groups: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
        for p in 0..self.size() {
            match groups.iter_mut().find(|(k, _)| *k == key(p)) {
                Some((_, members)) => members.push(p),
                None => groups.push((key(p), vec![p])),
            }
        }
        let sorted = |(_, mut members): (Vec<usize>, Vec<usize>)| {
            members.sort_by_key(|&p| order(p));
            members
        };
        groups.into_iter().map(sorted).collect()
    }

    /// `sdy.mesh @mesh = <["data"=4, "model"=2]>`
    pub fn mlir(self) -> String {
        let axes: Vec<String> = self.axes().iter().map(|(name, size)| format!("{name:?}={size}")).collect();
        format!("sdy.mesh @mesh = <[{}]>", axes.join(", "))
    }
}

fn too_few(name: &str, wanted: usize, devices: usize) -> String {
    let more = format!("; on the CPU there are with {}", crate::host::cpu_devices(wanted));
    let more = if wanted <= FIRST as usize { more } else { String::new() };
    let (have, wanted) = (xlazy_mime::count(devices, "device"), xlazy_mime::count(wanted, "device"));
    let need = if name.ends_with('s') { "need" } else { "needs" };
    format!("{name} {need} {wanted}, and there {} {have}{more}", is(devices))
}

fn is(n: usize) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

/// An axis of a mesh, or a part of one: of the factors of its size those behind `before`, as many as give `size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Part {
    axis: u8,
    before: u32,
    size: u32,
}

/// Which part of a value each device of a mesh holds: each dimension is split over some axes, the first the major one, and
/// over those that no dimension names it is the same (`jax.sharding.NamedSharding`).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Sharding(Arc<Inner>);

#[derive(PartialEq, Eq, Hash)]
struct Inner {
    mesh: Mesh,
    dims: Vec<Vec<Part>>,
}

/// `(data, None)`; of a dimension over two axes `data+model`, of a part of an axis `data:(2)4`, as Shardy has it.
impl std::fmt::Display for Sharding {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let axes = self.0.mesh.axes();
        let part = |p: &Part| match axes[p.axis as usize].1 == p.size as usize {
            true => axes[p.axis as usize].0.clone(),
            false => format!("{}:({}){}", axes[p.axis as usize].0, p.before, p.size),
        };
        let dim = |parts: &Vec<Part>| match parts.is_empty() {
            true => "None".to_owned(),
            false => parts.iter().map(part).collect::<Vec<_>>().join("+"),
        };
        write!(f, "({})", self.0.dims.iter().map(dim).collect::<Vec<_>>().join(", "))
    }
}

impl std::fmt::Debug for Sharding {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{self} of {}", self.0.mesh)
    }
}

impl Sharding {
    /// The whole value on every device.
    pub fn replicated(mesh: Mesh, rank: usize) -> Sharding {
        Sharding(Arc::new(Inner { mesh, dims: vec![vec![]; rank] }))
    }

    /// Of each dimension the axes that it is split over, by name: `a+b` are two, `a:(2)4` is a part of one.
    ///
    /// Errors: an axis that the mesh has not, or twice, as a sentence.
    pub fn new(mesh: Mesh, spec: &[Option<&str>]) -> Result<Sharding, String> {
        let mut used: Vec<Part> = Vec::new();
        let mut part = |text: &str| -> Result<Part, String> {
            let (name, of) = text.split_once(':').map_or((text, None), |(name, of)| (name, Some(of)));
            let Some(axis) = mesh.axis(name) else {
                let all: Vec<&str> = mesh.axes().iter().map(|(n, _)| n.as_str()).collect();
                return Err(format!("{mesh} has no axis `{name}`: it has {}", all.join(" and ")));
            };
            let whole = mesh.axes()[axis].1 as u32;
            let (before, size) = match of {
                None => (1, whole),
                Some(of) => {
                    let numbers = of.strip_prefix('(').and_then(|of| of.split_once(')'));
                    let numbers = numbers.and_then(|(a, b)| Some((a.parse::<u32>().ok()?, b.parse::<u32>().ok()?)));
                    let fits = |&(a, b): &(u32, u32)| {
                        a > 0 && b > 0 && a.checked_mul(b).is_some_and(|n| whole.is_multiple_of(n))
                    };
                    numbers.filter(fits).ok_or_else(|| format!("`{text}` is no part of the axis `{name}`"))?
                }
            };
            let new = Part { axis: axis as u8, before, size };
            // An axis of one device has but one part, which overlaps itself all the same.
            let overlaps = |p: &Part| {
                p.axis == new.axis && (whole == 1 || p.before < new.before * new.size && new.before < p.before * p.size)
            };
            if used.iter().any(overlaps) {
                return Err(format!("the axis `{name}` is named twice: it can split one dimension only"));
            }
            used.push(new);
            Ok(new)
        };
        let mut dims = Vec::with_capacity(spec.len());
        for dim in spec {
            let parts = dim.map_or(Ok(vec![]), |d| d.split('+').map(|t| part(t.trim())).collect::<Result<_, _>>());
            // One device splits nothing: XLA, which says how results lie, does not name such an axis.
            dims.push(parts?.into_iter().filter(|p| p.size > 1).collect());
        }
        Ok(Sharding(Arc::new(Inner { mesh, dims })))
    }

    /// What [`Display`](std::fmt::Display) writes.
    pub fn parse(mesh: Mesh, text: &str) -> Option<Sharding> {
        let inside = text.strip_prefix('(')?.strip_suffix(')')?;
        let dims: Vec<Option<&str>> = match inside {
            "" => vec![],
            all => all.split(", ").map(|d| (d != "None").then_some(d)).collect(),
        };
        Sharding::new(mesh, &dims).ok()
    }

    pub fn mesh(&self) -> Mesh {
        self.0.mesh
    }

    pub fn rank(&self) -> usize {
        self.0.dims.len()
    }

    /// In how many parts a dimension is split.
    pub fn parts(&self, dim: usize) -> usize {
        self.0.dims[dim].iter().map(|p| p.size as usize).product()
    }

    /// The names of the axes that split some dimension.
    pub fn axes(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.0.dims.iter().flatten().map(|p| p.axis as usize).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Every device holds the whole value.
    pub fn is_replicated(&self) -> bool {
        (0..self.rank()).all(|d| self.parts(d) == 1)
    }

    /// What one device holds of a value of this shape.
    pub fn shard_shape(&self, shape: &Shape) -> Shape {
        let mut out = shape.clone();
        (0..self.rank()).for_each(|d| out[d] /= self.parts(d));
        out
    }

    /// Which of the parts of a dimension a device holds.
    pub fn part(&self, position: usize, dim: usize) -> usize {
        self.0.dims[dim].iter().fold(0, |at, p| at * p.size as usize + self.of_part(position, p))
    }

    fn of_part(&self, position: usize, p: &Part) -> usize {
        let (whole, at) = (self.0.mesh.axes()[p.axis as usize].1, self.0.mesh.coordinate(position, p.axis as usize));
        at / (whole / (p.before * p.size) as usize) % p.size as usize
    }

    /// Where what a device holds begins.
    pub fn offsets(&self, position: usize, shape: &Shape) -> Vec<usize> {
        (0..self.rank()).map(|d| self.part(position, d) * (shape[d] / self.parts(d))).collect()
    }

    /// The first device that holds the same part as this one.
    pub fn first_like(&self, position: usize) -> usize {
        let same = |p: &usize| (0..self.rank()).all(|d| self.part(*p, d) == self.part(position, d));
        (0..=position).find(same).unwrap_or(position)
    }

    /// `<@mesh, [{"data"}, {}]>`
    pub fn mlir(&self) -> String {
        let axes = self.0.mesh.axes();
        let part = |p: &Part| match axes[p.axis as usize].1 == p.size as usize {
            true => format!("{:?}", axes[p.axis as usize].0),
            false => format!("{:?}:({}){}", axes[p.axis as usize].0, p.before, p.size),
        };
        let dim = |parts: &Vec<Part>| format!("{{{}}}", parts.iter().map(part).collect::<Vec<_>>().join(", "));
        format!("<@mesh, [{}]>", self.0.dims.iter().map(dim).collect::<Vec<_>>().join(", "))
    }

    /// As a part of a program's key; the mesh stands there already.
    pub fn words(&self, words: &mut Vec<u64>) {
        words.push(self.0.dims.len() as u64);
        for dim in &self.0.dims {
            words.push(dim.len() as u64);
            let word = |p: &Part| u64::from(p.axis) << 56 | u64::from(p.before) << 28 | u64::from(p.size);
            words.extend(dim.iter().map(word));
        }
    }

    /// Of XLA's `OpSharding` of one array; `None` where no axes of the mesh say the same.
    pub fn of_xla(mesh: Mesh, rank: usize, op: &Message) -> Option<Sharding> {
        const REPLICATED: i64 = 0;
        const OTHER: i64 = 3;
        match op.int(1) {
            REPLICATED => return Some(Sharding::replicated(mesh, rank)),
            OTHER => {}
            _ => return None,
        }
        let tiles: Vec<usize> = op.ints(3).iter().map(|&n| n as usize).collect();
        if tiles.len() < rank || tiles.iter().product::<usize>() != mesh.size() {
            return None;
        }
        let explicit: Vec<usize> = op.ints(4).iter().map(|&d| d as usize).collect();
        let devices = match explicit.is_empty() {
            true => iota(&op.ints(9), &op.ints(10))?,
            false => explicit,
        };
        let mut parts = vec![vec![0; rank]; mesh.size()];
        for (i, &device) in devices.iter().enumerate() {
            let mut rest = i;
            let mut index = vec![0; tiles.len()];
            for d in (0..tiles.len()).rev() {
                index[d] = rest % tiles[d];
                rest /= tiles[d];
            }
            *parts.get_mut(device)? = index[..rank].to_vec();
        }
        Sharding::of_parts(mesh, &tiles[..rank], |position, dim| parts[position][dim])
    }

    /// Of which part of each dimension each device holds, by factors of the axes: the minor ones are found first.
    fn of_parts(mesh: Mesh, tiles: &[usize], part: impl Fn(usize, usize) -> usize) -> Option<Sharding> {
        // The prime factors of every axis, as parts of it.
        let mut factors: Vec<Part> = Vec::new();
        for (axis, (_, size)) in mesh.axes().iter().enumerate() {
            let (mut before, mut rest, mut prime) = (1, *size as u32, 2);
            while rest > 1 {
                match rest % prime {
                    0 => {
                        factors.push(Part { axis: axis as u8, before, size: prime });
                        (before, rest) = (before * prime, rest / prime);
                    }
                    _ => prime += 1,
                }
            }
        }
        let replicated = Sharding::replicated(mesh, tiles.len());
        let mut dims = Vec::with_capacity(tiles.len());
        for (dim, &tiles) in tiles.iter().enumerate() {
            let mut left: Vec<usize> = (0..mesh.size()).map(|p| part(p, dim)).collect();
            let (mut rest, mut parts) = (tiles, Vec::<Part>::new());
            while rest > 1 {
                let fits = |f: &&Part| {
                    let n = f.size as usize;
                    rest % n == 0 && (0..mesh.size()).all(|p| left[p] % n == replicated.of_part(p, f))
                };
                let factor = *factors.iter().find(fits)?;
                left.iter_mut().for_each(|at| *at /= factor.size as usize);
                rest /= factor.size as usize;
                match parts.first_mut() {
                    // Neighbours on one axis are one part of it.
                    Some(next) if next.axis == factor.axis && factor.before * factor.size == next.before => {
                        *next = Part { axis: next.axis, before: factor.before, size: factor.size * next.size };
                    }
                    _ => parts.insert(0, factor),
                }
            }
            dims.push(parts);
        }
        Some(Sharding(Arc::new(Inner { mesh, dims })))
    }
}

/// The numbers from 0, laid out in these sizes, their dimensions in another order.
fn iota(sizes: &[i64], order: &[i64]) -> Option<Vec<usize>> {
    let sizes: Vec<usize> = sizes.iter().map(|&n| n as usize).collect();
    let order: Vec<usize> = order.iter().map(|&n| n as usize).collect();
    if order.len() != sizes.len() || order.iter().any(|&d| d >= sizes.len()) {
        return None;
    }
    let mut strides = vec![1; sizes.len()];
    for d in (1..sizes.len()).rev() {
        strides[d - 1] = strides[d] * sizes[d];
    }
    let total = sizes.iter().product();
    let at = |i: usize| {
        let mut rest = i;
        order
            .iter()
            .rev()
            .map(|&d| {
                let here = rest % sizes[d];
                rest /= sizes[d];
                here * strides[d]
            })
            .sum()
    };
    Some((0..total).map(at).collect())
}

/// The runs of elements that lie together, of a block in row-major elements: (where in the whole, where in the block, how many).
pub fn runs(shape: &[usize], offsets: &[usize], block: &[usize]) -> Vec<(usize, usize, usize)> {
    let rank = shape.len();
    // From here on the block has all of the whole.
    let whole = (0..rank).rev().take_while(|&d| shape[d] == block[d]).count();
    let split = (rank - whole).saturating_sub(1);
    let run: usize = block[split.min(rank)..].iter().product();
    let outer: usize = block[..split.min(rank)].iter().product();
    let at = |i: usize| {
        let (mut rest, mut place) = (i, 0);
        let mut stride: usize = shape[split.min(rank)..].iter().product();
        for d in (0..split.min(rank)).rev() {
            place += (offsets[d] + rest % block[d]) * stride;
            rest /= block[d];
            stride *= shape[d];
        }
        let inner: usize = shape[(split + 1).min(rank)..].iter().product();
        (place + if split < rank { offsets[split] * inner } else { 0 }, i * run, run)
    };
    if run == 0 { vec![] } else { (0..outer).map(at).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mesh() -> Mesh {
        Mesh::of(&[("data", 4), ("model", 2)], 8).unwrap()
    }

    #[test]
    fn a_mesh_says_what_is_wrong_with_it() {
        let e = |axes: &[(&str, usize)]| Mesh::of(axes, 8).unwrap_err();
        assert!(e(&[]).contains("one axis at least"));
        assert!(e(&[("a b", 2)]).contains("no name of an axis"));
        assert!(e(&[("a", 2), ("a", 2)]).contains("two axes"));
        assert!(e(&[("a", 0)]).contains("no device"));
        assert!(e(&[("a", 16)]).contains("XLAZY_CPU_DEVICES=16"));
        assert_eq!(mesh(), mesh());
        assert_eq!(mesh().groups(&[1]), [[0, 1], [2, 3], [4, 5], [6, 7]]);
        assert_eq!(mesh().groups(&[0]), [[0, 2, 4, 6], [1, 3, 5, 7]]);
        assert_eq!(mesh().groups(&[1, 0]), [[0, 2, 4, 6, 1, 3, 5, 7]]);
    }

    #[test]
    fn a_spec_is_written_as_it_was_read() {
        for spec in
            ["(data, None)", "(None, model)", "(data+model)", "(model+data, None)", "()", "(data:(1)2, data:(2)2)"]
        {
            let s = Sharding::parse(mesh(), spec).unwrap();
            assert_eq!(s.to_string(), spec);
        }
        let e = |spec: &[Option<&str>]| Sharding::new(mesh(), spec).unwrap_err();
        assert!(e(&[Some("rows")]).contains("no axis `rows`: it has data and model"));
        assert!(e(&[Some("data"), Some("data")]).contains("twice"));
        assert!(e(&[Some("data:(2)4")]).contains("no part"));
    }

    /// What each device holds says which axes split which dimension, parts of axes among them.
    #[test]
    fn the_parts_of_all_devices_give_the_sharding_back() {
        let three = Mesh::of(&[("a", 2), ("b", 6), ("c", 2)], 24).unwrap();
        for (mesh, spec) in [
            (mesh(), "(data, model)"),
            (mesh(), "(model, data)"),
            (mesh(), "(None, model+data)"),
            (mesh(), "(data:(1)2, data:(2)2)"),
            (mesh(), "(data:(2)2+model, None)"),
            (three, "(c+a, b)"),
            (three, "(b:(2)3, None, a+c)"),
            (three, "(b+a+c)"),
        ] {
            let s = Sharding::parse(mesh, spec).unwrap();
            let tiles: Vec<usize> = (0..s.rank()).map(|d| s.parts(d)).collect();
            assert_eq!(Sharding::of_parts(mesh, &tiles, |p, d| s.part(p, d)).unwrap().to_string(), spec);
        }
    }

    #[test]
    fn blocks_cover_the_whole_once() {
        let shapes: [(&[usize], &str); 5] = [
            (&[8, 6], "(data, model)"),
            (&[4, 3, 2], "(None, None, model)"),
            (&[8], "(model+data)"),
            (&[], "()"),
            (&[4, 0], "(data, None)"),
        ];
        for (shape, spec) in shapes {
            let (s, shape) = (Sharding::parse(mesh(), spec).unwrap(), Shape::new(shape));
            let mut seen = vec![0; shape.numel()];
            let block = s.shard_shape(&shape);
            for p in (0..8).filter(|&p| s.first_like(p) == p) {
                let mut next = 0;
                for (from, at, n) in runs(&shape, &s.offsets(p, &shape), &block) {
                    assert_eq!(at, next);
                    next += n;
                    seen[from..from + n].iter_mut().for_each(|x| *x += 1);
                }
                assert_eq!(next, block.numel());
            }
            assert!(seen.iter().all(|&n| n == 1), "{spec} {seen:?}");
        }
    }

    #[test]
    fn an_iota_of_devices_is_laid_out_as_xla_says() {
        assert_eq!(iota(&[2, 4], &[1, 0]).unwrap(), [0, 4, 1, 5, 2, 6, 3, 7]);
        assert_eq!(iota(&[8], &[0]).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(iota(&[8], &[1]).is_none());
    }
}
