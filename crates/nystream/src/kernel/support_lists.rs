//! Centres of very many columns, by inverted lists: for every feature that occurs, the centres that have it.

use std::collections::HashMap;
use std::ops::Range;

use super::spec::squared_distance;
use crate::rows::{Row, RowBlock};

/// A centre's columns and values.
type Entries = (Vec<u32>, Vec<f64>);

/// Sparse centres that come and go.
#[derive(Debug, Clone, Default)]
pub(super) struct Lists {
    centres: Vec<Entries>,
    /// Centres with their values. No order in it is ever looked at.
    by_feature: HashMap<u32, Vec<(u32, f64)>>,
}

impl Lists {
    /// Puts a row in place `i`, which may be one past the last.
    pub(super) fn put(&mut self, i: usize, row: Row) {
        if i == self.centres.len() {
            self.centres.push(Entries::default());
        }
        self.unlist(i);
        let (indices, values) = &mut self.centres[i];
        indices.clear();
        values.clear();
        for_each_value(row, |k, value| {
            indices.push(k);
            values.push(value);
        });
        self.list(i);
    }

    /// The last centre takes the place of centre `i`.
    pub(super) fn swap_remove(&mut self, i: usize, last: usize) {
        self.unlist(i);
        if i < last {
            self.unlist(last);
        }
        self.centres.swap_remove(i);
        if i < last {
            self.list(i);
        }
    }

    fn list(&mut self, i: usize) {
        let (indices, values) = &self.centres[i];
        for (&k, &value) in indices.iter().zip(values) {
            self.by_feature.entry(k).or_default().push((i as u32, value));
        }
    }

    fn unlist(&mut self, i: usize) {
        for k in &self.centres[i].0 {
            if let Some(list) = self.by_feature.get_mut(k) {
                list.retain(|(centre, _)| *centre as usize != i);
                if list.is_empty() {
                    self.by_feature.remove(k);
                }
            }
        }
    }

    /// Inner products of `x` with every centre.
    pub(super) fn products(&self, x: Row, out: &mut [f64]) {
        out.fill(0.0);
        for_each_value(x, |k, value| {
            for (centre, other) in self.by_feature.get(&k).into_iter().flatten() {
                out[*centre as usize] += value * other;
            }
        });
    }

    /// From differences.
    pub(super) fn squared_distance(&self, i: usize, x: Row) -> f64 {
        let (indices, values) = &self.centres[i];
        squared_distance(x, Row::Sparse { indices, values })
    }

    /// Copies of some centres.
    pub(super) fn copies(&self, which: Range<usize>, features: usize) -> RowBlock {
        let mut rows = RowBlock::sparse(features);
        for (indices, values) in &self.centres[which] {
            rows.push(Row::Sparse { indices, values });
        }
        rows
    }

    /// Bytes held, roughly.
    pub(super) fn size_bytes(&self) -> usize {
        let entry = size_of::<(u32, Vec<(u32, f64)>)>();
        self.centres.iter().map(|(indices, _)| indices.capacity() * 28).sum::<usize>()
            + self.by_feature.capacity() * entry
    }
}

fn for_each_value(row: Row, mut visit: impl FnMut(u32, f64)) {
    match row {
        Row::Dense(values) => {
            for (k, &value) in values.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                visit(k as u32, value);
            }
        }
        Row::Sparse { indices, values } => indices.iter().zip(values).for_each(|(&k, &value)| visit(k, value)),
    }
}
