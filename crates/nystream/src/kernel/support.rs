//! A set of centres that changes one at a time, for one row against all of them: the hot path of online learners.
//!
//! Centres stand in panels of 32, feature by feature: a sparse row of nnz values against m centres is nnz · m fused
//! multiply-adds on contiguous numbers, the sums of a panel staying in registers; dense rows are compared by
//! differences. Changing a centre writes its own values only. Sets whose panels would take more than 64 MiB (many
//! thousand columns) hold an inverted list for every feature instead.
//!
//! Values agree with [`Kernel::pair`] to 1e-12, and depend on the rows in their places only: a set made again from
//! [`SupportSet::rows`] gives the same bits.

use std::ops::Range;

use pulp::Simd;

use super::spec::Kernel;
use super::support_gaussian::{AgainstPanels, fits};
use super::support_lists::Lists;
use super::transform::{NO_POINT, Norms, Transform};
use super::vector::{LANES, Lanes, Vectorised, multiply_add, products, squared_distances, store, vectorised};
use crate::rows::{Row, RowBlock};

/// Panels beyond this many bytes give way to lists.
const PANEL_BYTES: usize = 64 << 20;

/// Centres that come and go, and a kernel.
#[derive(Debug, Clone)]
pub struct SupportSet {
    kernel: Kernel,
    transform: Transform,
    features: usize,
    len: usize,
    /// Squared norms, by panel.
    norms: Vec<Norms>,
    store: Store,
}

#[derive(Debug, Clone)]
enum Store {
    Panels(Panels),
    Lists(Lists),
}

/// Feature `k` of centres `32 p..32 p + 32` is `lanes[p * features + k]`.
#[derive(Debug, Clone)]
struct Panels {
    lanes: Vec<Lanes>,
    slots: Vec<Slot>,
}

/// Which values of a centre are set.
#[derive(Debug, Clone, Default)]
pub(super) struct Slot {
    /// All of them; else only `columns`.
    full: bool,
    columns: Vec<u32>,
}

impl Slot {
    /// Squared distance of the centre, a lane of a panel, to a sparse row, from differences.
    pub(super) fn squared_distance(&self, panel: &[Lanes], lane: usize, indices: &[u32], values: &[f64]) -> f64 {
        let own = |k: usize| panel[k].0[lane];
        let (mut sum, mut next) = (0.0, 0);
        let mut add = |difference: f64| sum += difference * difference;
        if self.full {
            for k in 0..panel.len() {
                let hit = indices.get(next).is_some_and(|&index| index as usize == k);
                add(own(k) - if hit { values[next] } else { 0.0 });
                next += usize::from(hit);
            }
        } else {
            for &k in &self.columns {
                while indices.get(next).is_some_and(|&index| index < k) {
                    add(values[next]);
                    next += 1;
                }
                let hit = indices.get(next) == Some(&k);
                add(own(k as usize) - if hit { values[next] } else { 0.0 });
                next += usize::from(hit);
            }
        }
        values[next..].iter().for_each(|value| add(*value));
        sum
    }
}

impl SupportSet {
    /// No centres yet; rows have `features` columns, and there will be `capacity` centres at most (more are taken, but
    /// the layout is chosen for so many).
    pub fn new(kernel: &Kernel, features: usize, capacity: usize) -> Self {
        let bytes = capacity.div_ceil(LANES).saturating_mul(features).saturating_mul(size_of::<Lanes>());
        let store = if bytes <= PANEL_BYTES {
            Store::Panels(Panels { lanes: Vec::new(), slots: Vec::new() })
        } else {
            Store::Lists(Lists::default())
        };
        Self { kernel: *kernel, transform: Transform::new(kernel), features, len: 0, norms: Vec::new(), store }
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Number of columns.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Number of centres.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a centre, at place `len`.
    ///
    /// # Panics
    /// If the row has other columns than the set.
    pub fn push(&mut self, row: Row) {
        if self.len == self.norms.len() * LANES {
            self.norms.push(Norms::NONE);
            if let Store::Panels(panels) = &mut self.store {
                panels.lanes.resize(panels.lanes.len() + self.features, Lanes::ZERO);
            }
        }
        self.len += 1;
        self.put(self.len - 1, row);
    }

    /// Puts another row in place `i`.
    ///
    /// # Panics
    /// If there is no such place, or the row has other columns than the set.
    pub fn replace(&mut self, i: usize, row: Row) {
        assert!(i < self.len, "a place that is taken");
        self.put(i, row);
    }

    /// Removes centre `i`; the last one takes its place.
    ///
    /// # Panics
    /// If there is no such centre.
    pub fn swap_remove(&mut self, i: usize) {
        assert!(i < self.len, "a place that is taken");
        let last = self.len - 1;
        match &mut self.store {
            Store::Panels(panels) => panels.swap_remove(i, last, self.features),
            Store::Lists(lists) => lists.swap_remove(i, last),
        }
        let norm = std::mem::replace(&mut self.norms[last / LANES].lanes.0[last % LANES], NO_POINT);
        self.len = last;
        self.find_largest(last / LANES);
        if i < last {
            self.set_norm(i, norm);
        }
    }

    /// Removes all centres, keeps the memory.
    pub fn clear(&mut self) {
        while self.len > 0 {
            self.swap_remove(self.len - 1);
        }
    }

    fn put(&mut self, i: usize, row: Row) {
        match row {
            Row::Dense(values) => assert_eq!(values.len(), self.features, "columns of the row and of the set"),
            Row::Sparse { indices, .. } => {
                assert!(indices.iter().all(|&k| (k as usize) < self.features), "columns of the row and of the set");
            }
        }
        match &mut self.store {
            Store::Panels(panels) => panels.put(i, row, self.features),
            Store::Lists(lists) => lists.put(i, row),
        }
        self.set_norm(i, row.squared_norm());
    }

    fn set_norm(&mut self, i: usize, norm: f64) {
        let panel = &mut self.norms[i / LANES];
        let before = std::mem::replace(&mut panel.lanes.0[i % LANES], norm);
        if norm >= panel.largest {
            panel.largest = norm;
        } else if before >= panel.largest {
            self.find_largest(i / LANES);
        }
    }

    fn find_largest(&mut self, p: usize) {
        let used = self.len.saturating_sub(p * LANES).min(LANES);
        let panel = &mut self.norms[p];
        panel.largest =
            panel.lanes.0[..used].iter().fold(0.0, |largest, norm| if *norm > largest { *norm } else { largest });
    }

    /// `out[j]` = k(x, z_j) for every centre.
    ///
    /// # Panics
    /// If `out` is not one number per centre, or a dense row has another width than the set.
    pub fn kernels(&self, x: Row, out: &mut [f64]) {
        self.evaluate(x, &[], out);
    }

    /// The same, and the sum of all `weights[j]` k(x, z_j).
    ///
    /// # Panics
    /// If `out` or `weights` is not one number per centre, or a dense row has another width than the set.
    pub fn weighted(&self, x: Row, weights: &[f64], out: &mut [f64]) -> f64 {
        assert_eq!(weights.len(), self.len, "one weight per centre");
        self.evaluate(x, weights, out)
    }

    fn evaluate(&self, x: Row, weights: &[f64], out: &mut [f64]) -> f64 {
        assert_eq!(out.len(), self.len, "one kernel value per centre");
        if let Row::Dense(values) = x {
            assert_eq!(values.len(), self.features, "columns of the row and of the set");
        }
        let mut sum = 0.0;
        vectorised(SupportTask { set: self, x, weights, out, sum: &mut sum });
        sum
    }

    /// Copies of the centres in their places, dense if any of them was.
    pub fn rows(&self) -> RowBlock {
        match &self.store {
            Store::Panels(panels) => panels.copies(0..self.len, self.features),
            Store::Lists(lists) => lists.copies(0..self.len, self.features),
        }
    }

    /// A copy of centre `i`.
    ///
    /// # Panics
    /// If there is no such centre.
    pub fn row(&self, i: usize) -> RowBlock {
        assert!(i < self.len, "a place that is taken");
        match &self.store {
            Store::Panels(panels) => panels.copies(i..i + 1, self.features),
            Store::Lists(lists) => lists.copies(i..i + 1, self.features),
        }
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        let store = match &self.store {
            Store::Panels(panels) => {
                panels.lanes.capacity() * size_of::<Lanes>()
                    + panels.slots.iter().map(|slot| size_of::<Slot>() + slot.columns.capacity() * 4).sum::<usize>()
            }
            Store::Lists(lists) => lists.size_bytes(),
        };
        store + self.norms.capacity() * size_of::<Norms>()
    }
}

impl Panels {
    fn panel(&mut self, i: usize, features: usize) -> &mut [Lanes] {
        &mut self.lanes[i / LANES * features..][..features]
    }

    fn put(&mut self, i: usize, row: Row, features: usize) {
        if self.slots.len() <= i {
            self.slots.resize_with(i + 1, Slot::default);
        }
        let lane = i % LANES;
        match row {
            Row::Dense(values) => {
                self.slots[i].full = true;
                for (lanes, value) in self.panel(i, features).iter_mut().zip(values) {
                    lanes.0[lane] = *value;
                }
            }
            Row::Sparse { indices, values } => {
                self.wipe(i, features);
                self.slots[i].columns.extend_from_slice(indices);
                let panel = self.panel(i, features);
                for (&k, &value) in indices.iter().zip(values) {
                    panel[k as usize].0[lane] = value;
                }
            }
        }
    }

    /// Zeros in place `i`.
    fn wipe(&mut self, i: usize, features: usize) {
        let lane = i % LANES;
        let slot = &mut self.slots[i];
        let panel = &mut self.lanes[i / LANES * features..][..features];
        if slot.full {
            panel.iter_mut().for_each(|lanes| lanes.0[lane] = 0.0);
        } else {
            slot.columns.iter().for_each(|&k| panel[k as usize].0[lane] = 0.0);
        }
        slot.full = false;
        slot.columns.clear();
    }

    fn swap_remove(&mut self, i: usize, last: usize, features: usize) {
        if i < last {
            self.wipe(i, features);
            let mut moved = std::mem::take(&mut self.slots[last].columns);
            let full = self.slots[last].full;
            let (from, to) = (last / LANES * features, i / LANES * features);
            let mut copy = |k: usize| self.lanes[to + k].0[i % LANES] = self.lanes[from + k].0[last % LANES];
            if full {
                (0..features).for_each(&mut copy);
            } else {
                moved.iter().for_each(|&k| copy(k as usize));
            }
            self.slots[i].full = full;
            self.slots[i].columns.extend_from_slice(&moved);
            std::mem::swap(&mut self.slots[last].columns, &mut moved);
        }
        self.wipe(last, features);
    }

    fn copies(&self, which: Range<usize>, features: usize) -> RowBlock {
        let full = self.slots[which.clone()].iter().any(|slot| slot.full);
        let mut rows = if full { RowBlock::dense(features) } else { RowBlock::sparse(features) };
        let mut values = Vec::new();
        for i in which {
            let slot = &self.slots[i];
            let panel = &self.lanes[i / LANES * features..][..features];
            values.clear();
            if slot.full {
                values.extend(panel.iter().map(|lanes| lanes.0[i % LANES]));
                rows.push(Row::Dense(&values));
            } else {
                values.extend(slot.columns.iter().map(|&k| panel[k as usize].0[i % LANES]));
                rows.push(Row::Sparse { indices: &slot.columns, values: &values });
            }
        }
        rows
    }
}

struct SupportTask<'a> {
    set: &'a SupportSet,
    x: Row<'a>,
    /// One a centre, or none.
    weights: &'a [f64],
    out: &'a mut [f64],
    sum: &'a mut f64,
}

impl Vectorised for SupportTask<'_> {
    #[inline(always)]
    fn run<const FMA: bool, S: Simd>(self, simd: S) {
        match (self.set.transform, &self.set.store) {
            (Transform::Gaussian { rate }, Store::Panels(panels)) if FMA && fits::<S>() => {
                let Self { set, x, weights, out, sum } = self;
                let (features, norms, slots) = (set.features, &set.norms[..], &panels.slots[..]);
                let panels = &panels.lanes[..];
                *sum = AgainstPanels { rate, x, panels, features, norms, slots, weights, out }.run(simd);
            }
            (transform, _) => self.panels::<FMA, S>(simd, &transform),
        }
    }
}

impl SupportTask<'_> {
    #[inline(always)]
    fn panels<const FMA: bool, S: Simd>(self, simd: S, transform: &Transform) {
        let Self { set, x, weights, out, sum } = self;
        let features = set.features;
        let norm = x.squared_norm();
        if let Store::Lists(lists) = &set.store {
            lists.products(x, out);
        }
        let mut total = [0.0; LANES];
        for (p, out) in out.chunks_mut(LANES).enumerate() {
            let mut values = match (&set.store, x) {
                (Store::Panels(panels), Row::Dense(point)) => {
                    let panel = &panels.lanes[p * features..(p + 1) * features];
                    if transform.is_radial() {
                        squared_distances::<FMA, LANES>(panel, point)
                    } else {
                        products::<FMA, LANES>(panel, point)
                    }
                }
                (Store::Panels(panels), Row::Sparse { indices, values }) => {
                    let panel = &panels.lanes[p * features..(p + 1) * features];
                    let mut sums = sparse_products::<FMA>(panel, indices, values);
                    if transform.is_radial() {
                        let slots = &panels.slots[p * LANES..];
                        let again = |i: usize| slots[i].squared_distance(panel, i, indices, values);
                        transform.distances::<FMA>(&mut sums, &set.norms[p], norm, out.len(), again);
                    }
                    sums
                }
                (Store::Lists(lists), x) => {
                    let mut sums = [0.0; LANES];
                    sums[..out.len()].copy_from_slice(out);
                    if transform.is_radial() {
                        let again = |i: usize| lists.squared_distance(p * LANES + i, x);
                        transform.distances::<FMA>(&mut sums, &set.norms[p], norm, out.len(), again);
                    }
                    sums
                }
            };
            transform.apply::<FMA, S, LANES>(simd, &mut values);
            store(&values, out);
            if let Some(weights) = weights.get(p * LANES..) {
                add_weighted::<FMA>(&values, weights, out.len(), &mut total);
            }
        }
        *sum = total.iter().sum();
    }
}

/// Inner products of a sparse row with a panel.
#[inline(always)]
fn sparse_products<const FMA: bool>(panel: &[Lanes], indices: &[u32], values: &[f64]) -> [f64; LANES] {
    let mut sums = [0.0; LANES];
    for (&k, &value) in indices.iter().zip(values) {
        // Columns that no centre has add nothing to the products.
        if let Some(feature) = panel.get(k as usize) {
            for i in 0..LANES {
                sums[i] = multiply_add::<FMA>(feature.0[i], value, sums[i]);
            }
        }
    }
    sums
}

/// Adds weights times values, of the lanes that are used.
#[inline(always)]
fn add_weighted<const FMA: bool>(values: &[f64; LANES], weights: &[f64], used: usize, total: &mut [f64; LANES]) {
    if let (LANES, Some(weights)) = (used, weights.first_chunk::<LANES>()) {
        for i in 0..LANES {
            total[i] = multiply_add::<FMA>(values[i], weights[i], total[i]);
        }
    } else {
        for (i, weight) in weights.iter().enumerate().take(used) {
            total[i] = multiply_add::<FMA>(values[i], *weight, total[i]);
        }
    }
}

#[cfg(test)]
mod tests;
