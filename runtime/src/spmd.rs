//! Code for each device of a mesh, and how the devices hear of one another in it.
pub use crate::ops::collective::ReduceOp::{self, And, Max, Min, Or, Prod, Sum};
pub use crate::ops::collective::{
    Groups, all_gather, all_reduce, all_reduce_many, all_to_all, broadcast, collective_permute, reduce_scatter,
};
pub use crate::ops::{axis_index, manual};
