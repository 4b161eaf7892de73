//! Folders of pictures, one for each class.
use super::array::{Array, Failure};
use super::dataset::Dataset;
use super::picture::Picture;
use crate::{Error, Result};
use std::path::{Path, PathBuf};

type Decode = dyn Fn(&Path) -> std::result::Result<Picture, Failure> + Send + Sync;
type Transform = dyn Fn(Picture) -> Array + Send + Sync;

/// Pictures in folders that are named by their classes (`torchvision.datasets.ImageFolder`): a sample's parts are what `transform` makes of
/// the picture, at first [`Picture::to_tensor`], and the number of its class as int64. Classes and files are in the order of
/// their names. Files whose names begin with a dot are passed over.
///
/// ```no_run
/// use xlazy::prelude::*;
/// let pictures = data::ImageFolder::new("pictures/train").unwrap().transform(|p| {
///     let p = p.random_resized_crop(224).random_horizontal_flip(0.5);
///     p.to_tensor().normalize(&[0.485, 0.456, 0.406], &[0.229, 0.224, 0.225])
/// });
/// println!("{:?}", pictures.classes());
/// let loader = data::DataLoader::new(pictures, 32).shuffle(true).drop_last(true).workers(2);
/// ```
pub struct ImageFolder {
    classes: Vec<String>,
    samples: Vec<(PathBuf, i64)>,
    decode: Box<Decode>,
    transform: Box<Transform>,
}

impl ImageFolder {
    /// The pictures below a folder. They are read when a loader comes to them.
    pub fn new(root: impl AsRef<Path>) -> Result<ImageFolder> {
        let root = root.as_ref();
        let failed =
            |folder: &Path, why: String| Error::Usage { message: format!("cannot read {}: {why}", folder.display()) };
        let entries = |folder: &Path| -> Result<Vec<PathBuf>> {
            let list = std::fs::read_dir(folder).and_then(|all| all.map(|e| Ok(e?.path())).collect());
            let mut all: Vec<PathBuf> = list.map_err(|e: std::io::Error| failed(folder, e.to_string()))?;
            let hidden = |p: &PathBuf| p.file_name().is_none_or(|n| n.to_string_lossy().starts_with('.'));
            all.retain(|p| !hidden(p));
            all.sort();
            Ok(all)
        };
        let (mut classes, mut samples) = (Vec::new(), Vec::new());
        for folder in entries(root)?.into_iter().filter(|p| p.is_dir()) {
            let class = classes.len() as i64;
            classes.push(folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default());
            let mut open = vec![folder];
            let mut found = vec![];
            while let Some(folder) = open.pop() {
                for path in entries(&folder)? {
                    if path.is_dir() { open.push(path) } else { found.push(path) }
                }
            }
            found.sort();
            samples.extend(found.into_iter().map(|path| (path, class)));
        }
        if samples.is_empty() {
            return Err(failed(root, "there are no folders with pictures in it, one for each class".into()));
        }
        let (decode, transform) = (Box::new(|p: &Path| Picture::open(p)), Box::new(|p: Picture| p.to_tensor()));
        Ok(ImageFolder { classes, samples, decode, transform })
    }

    /// What is made of each picture, on the thread that makes the batch. What is drawn there follows from the loader's seed, the epoch and
    /// the sample.
    pub fn transform(mut self, transform: impl Fn(Picture) -> Array + Send + Sync + 'static) -> Self {
        self.transform = Box::new(transform);
        self
    }

    /// Another reader of files, such as the crate `image`'s for JPEG.
    pub fn decoder(
        mut self,
        decode: impl Fn(&Path) -> std::result::Result<Picture, Failure> + Send + Sync + 'static,
    ) -> Self {
        self.decode = Box::new(decode);
        self
    }

    /// The classes' names, by number.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The files, with the numbers of their classes.
    pub fn samples(&self) -> &[(PathBuf, i64)] {
        &self.samples
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }
}

impl Dataset<2> for ImageFolder {
    fn len(&self) -> usize {
        self.samples.len()
    }
    fn get(&self, index: usize) -> std::result::Result<[Array; 2], Failure> {
        let Some((path, class)) = self.samples.get(index) else {
            return Err(format!("there are {} pictures", self.samples.len()).into());
        };
        let picture = (self.decode)(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        Ok([(self.transform)(picture), (*class).into()])
    }
}
