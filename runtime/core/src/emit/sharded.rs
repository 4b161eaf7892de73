//! What programs for a mesh have beyond others: constraints on shardings, code for each device, and collectives in it. Where one
//! device runs the program these do what they do for a mesh of one.
use super::builder::{Emit, Reducer, Val};
use super::text::{list, mlir};
use crate::mesh::{Mesh, Sharding};
use crate::ty::{DType, Shape, Type};
use std::fmt::Write;

/// Groups of devices by position, as `dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`; of groups of different sizes the smaller ones
/// end with -1.
fn dense(groups: &[Vec<usize>]) -> String {
    let width = groups.iter().map(Vec::len).max().unwrap_or(0);
    let row = |g: &Vec<usize>| {
        let all = g.iter().map(|&d| d as i64).chain(std::iter::repeat(-1)).take(width);
        format!("[{}]", list(all))
    };
    format!("dense<[{}]> : tensor<{}x{width}xi64>", list(groups.iter().map(row)), groups.len())
}

impl Emit {
    /// The value, to lie on the mesh like this (Shardy: sharding_constraint).
    pub fn constrained(&mut self, x: &Val, sharding: &Sharding) -> Val {
        if self.mesh() != Some(sharding.mesh()) {
            return x.clone();
        }
        let v = self.fresh(x.ty.clone());
        self.line(&format!("{v} = sdy.sharding_constraint {x} {} : {}", sharding.mlir(), mlir(&x.ty)));
        v
    }

    /// What each device computes of its parts of the operands (Shardy: manual_computation); `body` gives its parts of results of
    /// these types.
    pub fn manual(
        &mut self,
        inputs: &[Val],
        ins: &[Sharding],
        outs: &[Sharding],
        gives: &[Type],
        body: impl FnOnce(&mut Emit, &[Val]) -> Vec<Val>,
    ) -> Vec<Val> {
        let Some(mesh) = self.mesh() else { return body(self, inputs) };
        let local = |v: &Val, s: &Sharding| Type::new(v.dtype(), s.shard_shape(v.shape()));
        let around = std::mem::take(self.text_mut());
        let args: Vec<Val> = inputs.iter().zip(ins).map(|(v, s)| self.fresh(local(v, s))).collect();
        // What one device finds is no value of the whole program.
        let results = self.unseen(|e| body(e, &args));
        let text = std::mem::replace(self.text_mut(), around);
        let types = |all: &mut dyn Iterator<Item = &Type>| list(all.map(|t| mlir(t).to_string()));
        let shardings = |all: &[Sharding]| list(all.iter().map(Sharding::mlir));
        let made = self.several(gives.to_vec());
        let named = list(args.iter().map(|a| format!("{a}: {}", mlir(&a.ty))));
        let axes = list(mesh.axes().iter().map(|(name, _)| format!("{name:?}")));
        let (name, n) = (made[0].name(), made.len());
        let mut line = format!(
            "{name}:{n} = sdy.manual_computation({}) in_shardings=[{}] out_shardings=[{}] manual_axes={{{axes}}} ({named}) {{\n{text}",
            list(inputs),
            shardings(ins),
            shardings(outs),
        );
        let _ = write!(
            line,
            "    sdy.return {} : {}\n    }} : ({}) -> ({})",
            list(&results),
            types(&mut results.iter().map(|v| &v.ty)),
            types(&mut inputs.iter().map(|v| &v.ty)),
            types(&mut gives.iter()),
        );
        self.line(&line);
        made
    }

    /// The number that each device has in a list by position, as an i64 scalar.
    pub fn by_device(&mut self, numbers: &[i64]) -> Val {
        if self.mesh().is_none() {
            return self.scalar(numbers.first().map_or(0.0, |&n| n as f64), DType::I64);
        }
        let scalar = Type::new(DType::I64, Shape::default());
        // Unsigned integers of this size are no dtype of ours.
        let (device, id) = (self.fresh(scalar.clone()), self.fresh(scalar));
        let own = if self.mesh().is_some_and(Mesh::is_ranks) { "replica_id" } else { "partition_id" };
        self.line(&format!("{device} = stablehlo.{own} : tensor<ui32>"));
        self.line(&format!("{id} = stablehlo.convert {device} : (tensor<ui32>) -> tensor<i64>"));
        let all = self.ints(numbers, DType::I64);
        let one = self.dynamic_slice(&all, &[id], &[1]);
        self.reshape(&one, &Shape::default())
    }

    /// What says of a collective that it goes over the parts of one program; over copies of it is what nothing says.
    fn channel(&mut self) -> String {
        if self.mesh().is_some_and(Mesh::is_ranks) {
            return String::new();
        }
        self.channels += 1;
        format!(", channel_handle = #stablehlo.channel_handle<handle = {}, type = 1>", self.channels)
    }

    /// The same, with groups that are of devices.
    fn channel_of_devices(&mut self) -> String {
        let channel = self.channel();
        if channel.is_empty() { channel } else { channel + ", use_global_device_ids" }
    }

    /// Elements of all devices of a group combined.
    pub fn all_reduce(&mut self, x: &Val, r: Reducer, groups: &[Vec<usize>]) -> Val {
        if self.mesh().is_none() {
            return x.clone();
        }
        let (region, channel) = (self.combining(r, x.dtype()), self.channel_of_devices());
        let attributes = format!("{{replica_groups = {}{channel}}}", dense(groups));
        let [v] = self.with_regions("all_reduce", &[x], &[region], &attributes, [x.ty.clone()]);
        v
    }

    /// The values of all devices of a group, one behind the other along `dim`.
    pub fn all_gather(&mut self, x: &Val, dim: usize, groups: &[Vec<usize>]) -> Val {
        if self.mesh().is_none() {
            return x.clone();
        }
        let mut ty = x.ty.clone();
        ty.shape[dim] *= groups[0].len();
        let (groups, channel) = (dense(groups), self.channel_of_devices());
        let attributes = format!("{{all_gather_dim = {dim} : i64, replica_groups = {groups}{channel}}}");
        self.op("all_gather", &[x], &attributes, ty)
    }

    /// As [`Emit::all_reduce`], of which each device gets its part along `dim`.
    pub fn reduce_scatter(&mut self, x: &Val, r: Reducer, dim: usize, groups: &[Vec<usize>]) -> Val {
        if self.mesh().is_none() {
            return x.clone();
        }
        let mut ty = x.ty.clone();
        ty.shape[dim] /= groups[0].len();
        let (region, channel) = (self.combining(r, x.dtype()), self.channel_of_devices());
        let groups = dense(groups);
        let attributes = format!("{{scatter_dimension = {dim} : i64, replica_groups = {groups}{channel}}}");
        let [v] = self.with_regions("reduce_scatter", &[x], &[region], &attributes, [ty]);
        v
    }

    /// Each device's value is split along one dimension, one part for each of its group, and what it gets is put together along
    /// another.
    pub fn all_to_all(&mut self, x: &Val, split: usize, concat: usize, groups: &[Vec<usize>]) -> Val {
        if self.mesh().is_none() {
            return x.clone();
        }
        let n = groups[0].len();
        let mut ty = x.ty.clone();
        ty.shape[split] /= n;
        ty.shape[concat] *= n;
        let (groups, channel) = (dense(groups), self.channel());
        let attributes = format!(
            "{{split_dimension = {split} : i64, concat_dimension = {concat} : i64, split_count = {n} : i64, \
             replica_groups = {groups}{channel}}}"
        );
        self.op("all_to_all", &[x], &attributes, ty)
    }

    /// Each value goes from one device to another, by pairs of positions; who gets none has zeros.
    pub fn collective_permute(&mut self, x: &Val, pairs: &[(usize, usize)]) -> Val {
        if self.mesh().is_none() {
            return match pairs.is_empty() {
                true => self.constant(0.0, &x.ty),
                false => x.clone(),
            };
        }
        let rows = list(pairs.iter().map(|(a, b)| format!("[{a}, {b}]")));
        let channel = self.channel();
        let attributes = format!("{{source_target_pairs = dense<[{rows}]> : tensor<{}x2xi64>{channel}}}", pairs.len());
        self.op("collective_permute", &[x], &attributes, x.ty.clone())
    }
}
