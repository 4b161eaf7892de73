//! Batches on a mesh: their samples are split over one of its axes.
use xlazy_core::mesh::{Mesh, Sharding};
use xlazy_core::ty::Shape;

/// The axis of a mesh that batches are split over.
#[derive(Clone)]
pub(super) struct Over {
    pub mesh: Mesh,
    pub axis: String,
}

impl Over {
    /// How a tensor of a batch lies: its first dimension is split. What has none is on every device.
    pub fn sharding(&self, shape: &Shape) -> Result<Sharding, String> {
        let spec: Vec<Option<&str>> = (0..shape.len()).map(|d| (d == 0).then_some(&*self.axis)).collect();
        let sharding = Sharding::new(self.mesh, &spec)?;
        match sharding.uneven(shape) {
            None => Ok(sharding),
            Some(_) => Err(format!(
                "a batch of {} samples does not split evenly over the {} parts of the axis `{}`: choose another batch size, and \
                 `.drop_last(true)` where the last batch is smaller",
                shape[0],
                sharding.parts(0),
                self.axis
            )),
        }
    }
}
