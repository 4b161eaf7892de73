//! Running a closure as each rank of a mesh.
use super::ranks::{self, Together};
use super::sync::{barrier_of, read_of};
use super::witness::Witness;
use crate::mesh::Mesh;

/// Runs a closure as each rank of a mesh of ranks, and gives what each gave. `begin` is called first on each thread. What is
/// still pending at the end is run.
///
/// Unwinds with what ended a rank first.
#[track_caller]
pub fn ranks<R: Send>(
    by: &'static dyn Witness,
    mesh: Mesh,
    begin: &(dyn Fn() + Sync),
    f: &(dyn Fn(usize) -> R + Sync),
) -> Vec<R> {
    ranks::ranks(Together { by, barrier: barrier_of, read: read_of }, mesh, begin, f)
}
