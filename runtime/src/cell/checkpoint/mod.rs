//! Checkpoints: variables in a safetensors file. Tensors and arrays of numbers are its entries, under the variable's name;
//! the rest is JSON in its metadata. The kernel generates a hidden cell that calls what is public here, since only
//! generated code knows the variables' types.
pub mod tree;
pub mod value;

use crate::changes::Changes;
use crate::insight::Cause;
use crate::json::{Value, bundle, json, parse};
use crate::nn::module::{AsPart, Part as Piece, Parts};
use crate::nn::safetensors::{self, Contents, Part};
use crate::optim::Optimizer;
use crate::tensor::{Tensor, no_grad};
use std::any::type_name;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::path::Path;
use tree::Tree;
use value::{Savable, Sink, Source};
use xlazy_core::device::{device_names, upload};
use xlazy_core::ir::Placement;
use xlazy_core::ty::Type;
use xlazy_mime::Bundle;

/// What the file says of a tensor that is on no device, and follows those that it meets.
const NO_DEVICE: &str = "any";

type Result<T> = std::result::Result<T, String>;

thread_local! {
    static SAVER: RefCell<Saver> = RefCell::default();
    static LOADER: RefCell<Option<Loader>> = const { RefCell::new(None) };
}

/// A variable in a checkpoint.
struct Saved {
    name: String,
    type_name: String,
    cell: u64,
    tree: Tree,
}

impl Saved {
    fn json(&self) -> Value {
        json!({ "name": self.name, "type": self.type_name, "cell": self.cell, "value": self.tree.json() })
    }

    fn of(json: &Value) -> Option<Saved> {
        Some(Saved {
            name: json["name"].as_str()?.to_owned(),
            type_name: json["type"].as_str()?.to_owned(),
            cell: json["cell"].as_u64()?,
            tree: Tree::of(json.get("value")?)?,
        })
    }
}

/// Collects what a checkpoint is to hold.
#[derive(Default)]
pub struct Saver {
    parts: Vec<Part>,
    saved: Vec<Saved>,
    /// Entries of tensors that are on another device than the first, and which.
    devices: Vec<(String, String)>,
    /// Variables that cannot be kept, and why.
    refused: Vec<(String, String)>,
}

impl Sink for Saver {
    fn entry(&mut self, name: &str, ty: Type, bytes: Vec<u8>) -> Result<String> {
        xlazy_core::sys::check_interrupt();
        let mut free = name.to_owned();
        let mut n = 1;
        while self.parts.iter().any(|p| p.name == free) {
            n += 1;
            free = format!("{name}#{n}");
        }
        self.parts.push(Part { name: free.clone(), ty, bytes });
        Ok(free)
    }

    /// Reads a tensor, which runs what it needs and leaves the pending graph as it is.
    // `inline`: a vtable that a cell makes needs an instance of its own where the caller is told.
    #[inline]
    #[track_caller]
    fn tensor(&mut self, name: &str, tensor: &Tensor) -> Result<String> {
        let bytes = tensor.bytes(Cause::Read, Location::caller());
        let bytes = bytes.map_err(|e| format!("the value of `{name}` cannot be had: {e}"))?;
        let entry = self.entry(name, tensor.ty(), bytes)?;
        match tensor.placement() {
            Placement::Anywhere if device_names().is_ok_and(|all| all.len() > 1) => {
                self.devices.push((entry.clone(), NO_DEVICE.to_owned()));
            }
            place if !place.is_default() => self.devices.push((entry.clone(), tensor.device())),
            _ => {}
        }
        Ok(entry)
    }
}

impl Saver {
    fn state(&mut self, name: &str, state: Vec<(String, Tensor)>) -> Result<Vec<(String, String)>> {
        let one = |(part, t): (String, Tensor)| Ok((part.clone(), self.tensor(&joined(name, &part), &t)?));
        state.into_iter().map(one).collect()
    }
}

fn joined(name: &str, part: &str) -> String {
    if part.is_empty() { name.to_owned() } else { format!("{name}.{part}") }
}

/// Forgets what was collected.
#[inline(never)]
pub fn begin() {
    SAVER.set(Saver::default());
}

/// Collects one variable; what cannot be kept leaves nothing behind but its name and the reason.
#[inline(never)]
pub fn put(name: &str, type_name: &str, value: &mut dyn FnMut(&mut Saver) -> Result<Tree>) {
    let mut saver = SAVER.take();
    let parts = saver.parts.len();
    let tree = value(&mut saver).and_then(|tree| {
        // What could not be read back is not kept: nesting beyond what the reader follows, say.
        let same = parse(tree.json().to_string()).is_ok_and(|j| Tree::of(&j).is_some());
        if same { Ok(tree) } else { Err("it is nested too deeply".to_owned()) }
    });
    match tree {
        Ok(tree) => {
            let (name, type_name, cell) = (name.to_owned(), type_name.to_owned(), super::store::cell_of(name));
            saver.saved.push(Saved { name, type_name, cell, tree });
        }
        Err(why) => {
            saver.parts.truncate(parts);
            saver.refused.push((name.to_owned(), why));
        }
    }
    SAVER.set(saver);
}

/// A variable, to choose by autoref how it is kept: as a value, a module, an optimizer, by the notebook's own serde (a
/// trait that the hidden cell declares between the last two), or not.
pub struct Kept<'a, T>(pub &'a T);

pub trait SaveValue {
    fn save(&self, name: &str);
}
impl<T: Savable> SaveValue for &&&&Kept<'_, T> {
    fn save(&self, name: &str) {
        put(name, type_name::<T>(), &mut |saver| self.0.save(saver, name));
    }
}
pub trait SaveModule {
    fn save(&self, name: &str);
}
impl<T: AsPart> SaveModule for &&&Kept<'_, T> {
    fn save(&self, name: &str) {
        put_module(name, type_name::<T>(), &mut || pieces(self.0));
    }
}
pub trait SaveOptimizer {
    fn save(&self, name: &str);
}
impl<T: Optimizer> SaveOptimizer for &&Kept<'_, T> {
    fn save(&self, name: &str) {
        put_optimizer(name, type_name::<T>(), self.0);
    }
}
pub trait SaveNothing {
    fn save(&self, name: &str);
}
impl<T> SaveNothing for Kept<'_, T> {
    fn save(&self, name: &str) {
        refuse(name, type_name::<T>());
    }
}

/// Parameters and buffers under the names that `state_dict()` gives them.
fn pieces(module: &impl AsPart) -> Vec<(String, Tensor)> {
    let mut out = Vec::new();
    let mut visit = |name: &str, piece: Piece| {
        if let Piece::Parameter(t) | Piece::Buffer(t) = piece {
            out.push((name.to_owned(), t.clone()));
        }
    };
    module.show_part("", &mut Parts::all(&mut visit));
    out
}

#[inline(never)]
fn put_module(name: &str, type_name: &str, pieces: &mut dyn FnMut() -> Vec<(String, Tensor)>) {
    put(name, type_name, &mut |saver| saver.state(name, pieces()).map(Tree::Module));
}

#[inline(never)]
fn put_optimizer(name: &str, type_name: &str, optimizer: &dyn Optimizer) {
    put(name, type_name, &mut |saver| match optimizer.state_dict() {
        state if state.is_empty() => Err("it is an optimizer without a `state_dict` of its own".into()),
        state => saver.state(name, state).map(Tree::Optimizer),
    });
}

#[inline(never)]
fn refuse(name: &str, type_name: &str) {
    let short = type_name.rsplit_once("::").map_or(type_name, |(_, last)| last);
    let why = if type_name.contains("dyn core::ops::function::Fn") || type_name.contains("{{closure}}") {
        "it is a closure".to_owned()
    } else if type_name.contains("fn(") {
        "it is a function".to_owned()
    } else if type_name.contains("JoinHandle<") {
        "it is a thread".to_owned()
    } else if type_name.contains("std::fs::File") || type_name.contains("std::net::") {
        "it is an open file or connection".to_owned()
    } else if type_name.starts_with('&') {
        "it borrows: a `.clone()` of its own would be kept".to_owned()
    } else if type_name.starts_with("xlazy") {
        let epoch = if short.ends_with("LR") { ", and `.set_epoch(&mut opt, n)` takes it to where it was" } else { "" };
        format!("its type `{short}` is not one that is kept: its cell makes it again{epoch}")
    } else {
        let serde = "`#[derive(serde::Serialize, serde::Deserialize)]` with `:dep serde = { version = \"1\", features = \
                     [\"derive\"] }` and `:dep serde_json = \"1\"`";
        format!("its type `{short}` is not one that is kept; for one of your own, write {serde}")
    };
    put(name, type_name, &mut |_| Err(why.clone()));
}

/// Says as JSON what was collected and what cannot be kept. Nothing is written yet.
pub(crate) fn kept() -> crate::Result<Bundle> {
    SAVER.with_borrow(|saver| {
        let kept: Vec<&str> = saver.saved.iter().map(|s| s.name.as_str()).collect();
        Ok(bundle(json!({ "kept": kept, "refused": saver.refused })))
    })
}

/// `PATH`, and on a line of its own the path under which what was there is kept, if it is: writes what was collected.
/// Without any, it is forgotten.
pub(crate) fn write(args: &str) -> crate::Result<Bundle> {
    let Saver { parts, saved, devices, .. } = SAVER.take();
    let (path, keep) = args.split_once('\n').map_or((args, None), |(path, keep)| (path, Some(Path::new(keep))));
    if path.is_empty() {
        return Ok(Bundle::default());
    }
    let variables = saved.iter().map(Saved::json).collect::<Value>().to_string();
    let hash = hash(&variables, parts.iter().map(|p| (p.name.as_str(), p.bytes.as_slice())));
    let devices = json!(devices).to_string();
    let metadata = [
        ("xlazy", env!("CARGO_PKG_VERSION")),
        ("xlazy.variables", &variables),
        ("xlazy.hash", &hash),
        ("xlazy.devices", &devices),
    ];
    safetensors::write(Path::new(path), keep, &metadata, &parts)?;
    Ok(Bundle::default())
}

fn hash<'a>(variables: &str, parts: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut all = xxhash_rust::xxh3::Xxh3::new();
    all.update(variables.as_bytes());
    for (name, bytes) in parts {
        all.update(name.as_bytes());
        all.update(&(bytes.len() as u64).to_le_bytes());
        all.update(bytes);
    }
    format!("{:032x}", all.digest128())
}

/// A checkpoint that was read and found whole.
pub struct Loader {
    path: String,
    hash: String,
    contents: Contents,
    /// Where in its contents an entry is.
    entries: HashMap<String, usize>,
    saved: Vec<Saved>,
    devices: Vec<(String, String)>,
    loaded: Vec<String>,
    refused: Vec<(String, String)>,
}

impl Loader {
    fn read(path: &str) -> Result<Loader> {
        let contents = safetensors::read(Path::new(path))?;
        let find = |key: &str| contents.metadata.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        let Some(variables) = find("xlazy.variables") else {
            return Err("it holds tensors, but no variables of xlazy; `nn::load(path)?` reads its tensors".into());
        };
        let hash = hash(variables, contents.entries.iter().map(|e| (e.name.as_str(), contents.bytes(e))));
        if find("xlazy.hash") != Some(&hash) {
            return Err("its contents are not what was written: it is damaged, or another program changed it".into());
        }
        let unknown = || "another version of xlazy wrote it, in a form that this one does not know".to_owned();
        let items = parse(variables).ok();
        let items = items.as_ref().and_then(Value::as_array).ok_or_else(unknown)?;
        let saved: Vec<Saved> = items.iter().map(Saved::of).collect::<Option<_>>().ok_or_else(unknown)?;
        once(saved.iter().map(|s| s.name.as_str()))?;
        // Otherwise a small file could ask for any amount of memory.
        let mut used = Vec::new();
        saved.iter().for_each(|s| s.tree.entries(&mut used));
        once(used.into_iter())?;
        let devices = find("xlazy.devices").and_then(|text| parse(text).ok()).unwrap_or_default();
        let devices = tree::pairs(&devices, |v| v.as_str().map(str::to_owned)).unwrap_or_default();
        let entries = contents.entries.iter().enumerate().map(|(i, e)| (e.name.clone(), i)).collect();
        let (loaded, refused) = Default::default();
        Ok(Loader { path: path.to_owned(), hash, contents, entries, saved, devices, loaded, refused })
    }

    /// Where the tensor of an entry was; the first device where there is no such one here.
    fn place(&self, entry: &str) -> Placement {
        let name = self.devices.iter().find(|(e, _)| e == entry).map(|(_, device)| device.as_str());
        if name == Some(NO_DEVICE) {
            return Placement::Anywhere;
        }
        let names = device_names().unwrap_or_default();
        Placement::Device(name.and_then(|name| names.iter().position(|n| *n == name)).unwrap_or(0) as u8)
    }

    fn state(&self, state: &[(String, String)]) -> Result<Vec<(String, Tensor)>> {
        state.iter().map(|(name, entry)| Ok((name.clone(), self.tensor(entry)?))).collect()
    }
}

impl Source for Loader {
    fn entry(&self, name: &str) -> Result<(&Type, &[u8])> {
        let place = self.entries.get(name).ok_or_else(|| format!("the file has no entry `{name}`"))?;
        let entry = &self.contents.entries[*place];
        Ok((&entry.ty, self.contents.bytes(entry)))
    }

    #[inline]
    #[track_caller]
    fn tensor(&self, name: &str) -> Result<Tensor> {
        xlazy_core::sys::check_interrupt();
        let (ty, bytes) = self.entry(name)?;
        let place = self.place(name);
        let data = upload(bytes, ty.clone(), place.home()).map_err(|e| e.to_string())?;
        Ok(Tensor::of_data(data, place, Location::caller()))
    }
}

/// What xlazy names once, a file that names it twice has from somebody else.
fn once<'a>(names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(format!("it names {name:?} twice, and xlazy has not written it so"));
        }
    }
    Ok(())
}

/// Reads a checkpoint and says as JSON what it holds. Nothing else happens yet.
pub(crate) fn open(path: &str) -> crate::Result<Bundle> {
    let loader =
        Loader::read(path).map_err(|why| crate::Error::Usage { message: format!("{path} cannot be loaded: {why}") })?;
    let one = |s: &Saved| json!({ "name": s.name, "type": s.type_name, "kind": s.tree.kind() });
    let held = json!({ "hash": loader.hash, "variables": loader.saved.iter().map(one).collect::<Value>() });
    LOADER.set(Some(loader));
    Ok(bundle(held))
}

/// What came of loading, as JSON; the file's contents are let go.
pub(crate) fn close() -> crate::Result<Bundle> {
    let (loaded, refused) = LOADER.take().map(|l| (l.loaded, l.refused)).unwrap_or_default();
    Ok(bundle(json!({ "loaded": loaded, "refused": refused })))
}

/// Makes sure that the file which is open is this one, as it was then: a cell that loads may be run again.
#[inline(never)]
pub fn reopen(path: &str, hash: &str) {
    if LOADER.with_borrow(|l| l.as_ref().is_none_or(|l| l.path != path || l.hash != hash)) {
        match Loader::read(path) {
            Ok(loader) if loader.hash == hash => LOADER.set(Some(loader)),
            Ok(_) => panic!("the checkpoint {path} is another one now"),
            Err(why) => panic!("the checkpoint {path} cannot be loaded: {why}"),
        }
    }
}

/// Restores one variable; a failure leaves its name and the reason.
#[inline(never)]
pub fn get(name: &str, restore: &mut dyn FnMut(&Tree, &Loader) -> Result<()>) {
    let Some(mut loader) = LOADER.take() else { return };
    let result = match loader.saved.iter().find(|s| s.name == name) {
        Some(saved) => unless_it_panics(|| restore(&saved.tree, &loader)),
        None => Err("it is not in the file".into()),
    };
    match result {
        Ok(()) => loader.loaded.push(name.to_owned()),
        Err(why) => loader.refused.push((name.to_owned(), why)),
    }
    LOADER.set(Some(loader));
}

/// A value that cannot be made of what the file has is refused by itself; an interrupt ends all of it.
fn unless_it_panics<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => result,
        Err(payload) if payload.is::<super::Interrupted>() => resume_unwind(payload),
        Err(payload) => Err(format!("it cannot be made of what the file has: {}", super::outcome::said(&*payload))),
    }
}

/// A type, to choose by autoref how a value of it is restored: as a value, or by the notebook's own serde.
pub struct Wanted<T>(PhantomData<fn() -> T>);

impl<T> Wanted<T> {
    pub const TYPE: Wanted<T> = Wanted(PhantomData);
}

pub trait LoadValue<T> {
    fn load(&self, name: &str) -> Option<T>;
}
impl<T: Savable> LoadValue<T> for &&Wanted<T> {
    fn load(&self, name: &str) -> Option<T> {
        let mut value = None;
        get(name, &mut |tree, loader| {
            value = Some(T::load(tree, loader)?);
            Ok(())
        });
        value
    }
}
pub trait LoadNothing<T> {
    fn load(&self, name: &str) -> Option<T>;
}
impl<T> LoadNothing<T> for Wanted<T> {
    fn load(&self, name: &str) -> Option<T> {
        get(name, &mut |_, _| {
            Err("its type needs `:dep serde` and `:dep serde_json` here, as where it was saved".into())
        });
        None
    }
}

/// A tensor variable. A parameter that is there is loaded in place, so that the optimizer that holds it goes on with it.
#[inline(never)]
pub fn load_tensor(name: &str) {
    get(name, &mut |tree, loader| {
        let tensor = Tensor::load(tree, loader)?;
        match super::store::peek::<Tensor>(name) {
            Some(old) if is_parameter(&old) && tensor.requires_grad() && old.ty() == tensor.ty() => {
                replace(&old, tensor);
            }
            _ => super::Handle::keep(tensor, name),
        }
        Ok(())
    });
}

fn is_parameter(tensor: &Tensor) -> bool {
    tensor.is_leaf() && tensor.requires_grad()
}

/// Gives a tensor another value in place. Nothing has to run for it: the value is on the device.
fn replace(old: &Tensor, new: Tensor) {
    no_grad(|| old.assign("load", new.detach()));
}

/// Loads into a module that is there, as `load_state_dict` does.
pub fn load_module(name: &str, module: &impl AsPart) {
    load_pieces(name, pieces(module));
}

#[inline(never)]
fn load_pieces(name: &str, mine: Vec<(String, Tensor)>) {
    get(name, &mut |tree, loader| {
        let Tree::Module(state) = tree else { return Err("it was no module when it was saved".into()) };
        let mut wrong = Vec::new();
        for (part, entry) in state {
            let (ty, _) = loader.entry(entry)?;
            match mine.iter().find(|m| m.0 == *part) {
                None => wrong.push(format!("`{part}` is not part of the module")),
                Some((_, t)) if t.ty() != *ty => wrong.push(format!("`{part}` is {ty}, expected {}", t.ty())),
                Some(_) => {}
            }
        }
        let missing = mine.iter().filter(|m| !state.iter().any(|s| s.0 == m.0));
        wrong.extend(missing.map(|m| format!("`{}` is missing", m.0)));
        if !wrong.is_empty() {
            return Err(format!("the state does not fit: {}", wrong.join("; ")));
        }
        // All values are there before they are put in place, all at once.
        let mut changes = Changes::new();
        for (part, new) in loader.state(state)? {
            let of_name = mine.iter().filter(|m| m.0 == part);
            no_grad(|| of_name.for_each(|(_, old)| changes.assign("load", old, new.detach())));
        }
        changes.apply();
        Ok(())
    });
}

/// Loads into an optimizer that is there, as `load_state_dict` does.
pub fn load_optimizer(name: &str, optimizer: &mut impl Optimizer) {
    load_steps(name, optimizer);
}

#[inline(never)]
fn load_steps(name: &str, optimizer: &mut dyn Optimizer) {
    get(name, &mut |tree, loader| {
        let Tree::Optimizer(state) = tree else { return Err("it was no optimizer when it was saved".into()) };
        optimizer.load_state_dict(&loader.state(state)?).map_err(|e| e.to_string())
    });
}
